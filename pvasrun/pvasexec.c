// SPDX-License-Identifier: GPL-2.0-only
/*
 * pvasexec: run a program as a task when another launcher starts the processes:
 *
 *	mpirun -n 4 pvasexec ./app
 *	srun --mpi=pmix -n 4 pvasexec ./app
 *
 * All processes of a job on one node that run it share one space, which the first of
 * them creates. The process remains the launcher's child: it executes the program.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../libpvas/pvas.h"
#include "component.h"
#include "job.h"
#include "jobkey.h"
#include "parse.h"
#include "python.h"
#include "malloc_tunables.h"

struct cmdline {
	const char *key;	/* NULL: find it by jobkey_find() */
	uint64_t partition_size;
	bool fallback;
	char **argv;		/* the program's */
};

static const char usage[] =
"usage: pvasexec [options] program [argument]...\n"
"\n"
"Runs the program as a task of the space that all processes of this job on this\n"
"node share. To be started by a job launcher: mpirun -n 4 pvasexec ./app\n"
"\n"
"  --key KEY       the job's name (default: PVAS_JOB_KEY, or what the launcher says)\n"
"  --partition-size SIZE  4G to 8T, a power of two (default 64G); the first decides\n"
"  --fallback      without /dev/pvas run the program as an ordinary process\n"
"                  (also: PVAS_FALLBACK=1)\n"
"  --help          this text\n"
"  --version       the version\n"
"\n"
"Exit status: the program's; 1 if pvasexec fails, 126 if the program can't be\n"
"executed, 127 if it is not found.\n";

/* One write() per line: all ranks may print it at the same time. */
__attribute__((format(printf, 1, 2)))
static void print_error(const char *format, ...)
{
	char line[1024] = "pvasexec: ";
	size_t used = strlen(line);
	va_list args;

	va_start(args, format);
	vsnprintf(line + used, sizeof(line) - used - 1, format, args);
	va_end(args);
	strcat(line, "\n");
	if (write(STDERR_FILENO, line, strlen(line)) < 0)
		return;
}

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value && strcmp(value, "0");
}

/* ---- the command line ---- */

/* The index of the argument after the option's value; 0: an error was printed. */
static int take_value(struct cmdline *cmdline, int argc, char **argv, int i)
{
	if (i + 1 >= argc) {
		print_error("%s: needs a value (see --help)", argv[i]);
		return 0;
	}
	if (!strcmp(argv[i], "--key")) {
		cmdline->key = argv[i + 1];
	} else if (parse_size(argv[i + 1], &cmdline->partition_size)) {
		print_error("--partition-size %s: not a size (say for example 64G)", argv[i + 1]);
		return 0;
	}
	return i + 2;
}

/* -1: continue, else the exit status */
static int parse(struct cmdline *cmdline, int argc, char **argv)
{
	int i = 1;

	cmdline->fallback = is_set("PVAS_FALLBACK");
	while (i < argc && argv[i][0] == '-') {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(usage, stdout);
			return 0;
		} else if (!strcmp(argv[i], "--version")) {
			printf("pvasexec %d.%d\n", PVAS_VERSION_MAJOR, PVAS_VERSION_MINOR);
			return 0;
		} else if (!strcmp(argv[i], "--")) {
			i++;
			break;
		} else if (!strcmp(argv[i], "--fallback")) {
			cmdline->fallback = true;
			i++;
		} else if (!strcmp(argv[i], "--key") || !strcmp(argv[i], "--partition-size")) {
			i = take_value(cmdline, argc, argv, i);
			if (!i)
				return STATUS_FAILED;
		} else {
			print_error("%s: no such option (see --help)", argv[i]);
			return STATUS_FAILED;
		}
	}
	if (i >= argc) {
		print_error("no program given (see --help)");
		return STATUS_FAILED;
	}
	cmdline->argv = argv + i;
	return -1;
}

/* If PVAS_DEBUG is set, as in libpvas */
__attribute__((format(printf, 1, 2)))
static void debug_line(const char *format, ...)
{
	const char *debug = getenv("PVAS_DEBUG");
	char line[512];
	va_list args;

	if (!debug || !*debug || !strcmp(debug, "0"))
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fprintf(stderr, "pvas: pvasexec: %s\n", line);
}

/* ---- the job ---- */

/* NULL: there is no job. Exits if its ranks can't agree on a secret. */
static const char *find_key(struct jobkey *job)
{
	char why[512];
	int err = jobkey_find(job, why, sizeof(why));

	if (err == -ENOENT)
		return NULL;
	if (err) {
		print_error("%s", why);
		exit(STATUS_FAILED);
	}
	debug_line("the job is named by %s, its secret is from %s", job->named_by, job->secret_by);
	return job->key;
}

static bool number(const char *name, unsigned int *value)
{
	const char *text = getenv(name);

	return text && !parse_count(text, 0, INT_MAX, value);
}

/* By the rank on this node, if the launcher provides it. */
static unsigned int wanted_index(const struct pvas_space *space)
{
	unsigned int first, last, rank;

	if (!number("OMPI_COMM_WORLD_LOCAL_RANK", &rank) && !number("SLURM_LOCALID", &rank) &&
	    !number("MPI_LOCALRANKID", &rank) && !number("PMIX_RANK", &rank))
		return PVAS_ANY;
	pvas_space_get_bounds(space, &first, &last, NULL);
	return rank <= last - first ? first + rank : PVAS_ANY;
}

/* ---- Open MPI ---- */

/* In a build tree Open MPI does not find its components pvas. Installed, it does. */
static void set_open_mpi(void)
{
	const char *old = getenv(COMPONENT_PATH);
	char dir[PATH_MAX], *paths;
	const char *btl;

	setenv(SM_INLINE, SM_INLINE_MAX, 0);
	if (component_find(dir, &btl) != COMPONENT_OWN_DIR)
		return;
	if (!old)
		old = getenv(COMPONENT_PATH_SHORT);
	if (asprintf(&paths, "%s:%s", dir, old ? old : "SYSTEM_DEFAULT:USER_DEFAULT") < 0)
		return;
	setenv(COMPONENT_PATH, paths, 1);
	free(paths);
}

/*
 * libpmix 5 maps the job's description at the address that it has in the server, which is
 * in no partition of the task. A client without that store is sent the data.
 */
static void avoid_fixed_addresses(void)
{
	const char *stores = getenv("PMIX_GDS_MODULE");

	if (!stores || !strstr(stores, "shmem"))
		return;
	setenv("PMIX_GDS_MODULE", "hash", 1);
	setenv("PMIX_MCA_gds", "hash", 1);
}

/* ---- executing the program ---- */

static void set_malloc_tunables(void)
{
	char *text = malloc_tunables(getenv(TUNABLES), 0);

	if (text)
		setenv(TUNABLES, text, 1);
	free(text);
}

/* By this libpvas knows in a program that it should be a task: not in one that a task starts. */
static void set_launcher(void)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", getppid());
	setenv("PVAS_LAUNCHER", text, 1);
}

static int program_status(int err)
{
	return err == -ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_EXECUTE;
}

static int report_program_error(const char *name, const char *path, int err)
{
	char why[256] = "";

	if (path)
		pvas_program_check(path, why, sizeof(why));
	if (why[0])
		print_error("%s: %s", name, why);
	else
		print_error("%s: %s", name, err == -ENOENT ? "not found" : strerror(-err));
	return program_status(err);
}

static int run_plainly(const struct cmdline *cmdline, const char *path)
{
	execv(path, cmdline->argv);
	print_error("%s: %s", cmdline->argv[0], strerror(errno));
	return program_status(-errno);
}

static int report_space_error(int err)
{
	const char *why = pvas_error_get();

	print_error("cannot join the job's address space: %s (%s)", why[0] ? why : strerror(-err),
	    err == -ENODEV ? "load it: modprobe pvas, or run plainly with --fallback" :
	    err == -EACCES ? "let this user open /dev/pvas: see pvas(4)" :
	    err == -EPROTO || err == -ENOSYS ? "install module and tools of one release" :
	    err == -ENOSPC ? "too many spaces: see /proc/pvas" :
	    "see the kernel log: dmesg");
	return STATUS_FAILED;
}

/* A partition may be in use by a rank that is still ending, or by another launcher's. */
static int exec_task(struct pvas_space *space, const struct cmdline *cmdline, const char *path)
{
	unsigned int index = wanted_index(space);
	int err;

	err = pvas_task_exec(space, index, path, cmdline->argv, environ);
	if (err == -EBUSY) {
		debug_line("place %u is taken: any other will do", index);
		err = pvas_task_exec(space, PVAS_ANY, path, cmdline->argv, environ);
	}
	return err;
}

/* Between join and exec the last task may end, and the space with it: try again. */
static int join_and_exec(const struct cmdline *cmdline, const char *key, const char *path)
{
	const struct pvas_create_attr attr = {
		.size = sizeof(attr),
		.backend = PVAS_BACKEND_KERNEL,
		.flags = PVAS_KEEP_ON_CLOSE,
		.partition_size = cmdline->partition_size,
	};
	struct pvas_space *space;
	int tries = 10;
	int err;

	do {
		err = pvas_space_join(&space, key, &attr);
		if ((err == -ENODEV || err == -EACCES) && cmdline->fallback) {
			debug_line("%s runs as a plain process (--fallback)", path);
			return run_plainly(cmdline, path);
		}
		if (err)
			return report_space_error(err);
		set_open_mpi();
		avoid_fixed_addresses();
		set_malloc_tunables();
		set_launcher();
		err = exec_task(space, cmdline, path);
		if (err == -ENOSPC || err == -EALREADY || err == -EINVAL) {
			print_error("cannot enter the job's address space: %s", pvas_error_get());
			return STATUS_FAILED;
		}
		pvas_space_destroy(space);
	} while (err == -ESRCH && --tries);
	return report_program_error(cmdline->argv[0], path, err);
}

/* The system's Python can't be a task, but its host can. */
static int take_host(struct cmdline *cmdline, char path[static PATH_MAX])
{
	struct python_host host;
	char why[512];
	int ret, err = pvas_program_check(path, NULL, 0);

	if (err && err != -ENOEXEC)
		return 0;
	ret = python_host_find(path, cmdline->argv, &host, why, sizeof(why));
	if (!ret || (ret < 0 && !err))
		return 0;
	if (ret < 0) {
		print_error("%s: %s", cmdline->argv[0], why);
		return program_status(-ENOEXEC);
	}
	debug_line("%s: Python is not position-independent: %s runs it", path, host.path);
	strcpy(path, host.path);
	cmdline->argv = host.argv;
	return 0;
}

int main(int argc, char **argv)
{
	struct cmdline cmdline = { .key = getenv("PVAS_JOB_KEY") };
	struct jobkey job;
	char path[PATH_MAX];
	int status, err;

	status = parse(&cmdline, argc, argv);
	if (status >= 0)
		return status;
	err = pvas_program_find(cmdline.argv[0], NULL, path, sizeof(path));
	if (err)
		return report_program_error(cmdline.argv[0], NULL, err);
	status = take_host(&cmdline, path);
	if (status)
		return status;
	if (!cmdline.key)
		cmdline.key = find_key(&job);
	if (!cmdline.key || !*cmdline.key) {
		print_error("no job to join: neither mpirun nor srun started this (start it with one, or name the job: --key NAME)");
		return STATUS_FAILED;
	}
	return join_and_exec(&cmdline, cmdline.key, path);
}
