// SPDX-License-Identifier: GPL-2.0-only
/*
 * pvasexec: run a program as a task when somebody else starts the processes:
 *
 *	mpirun -n 4 pvasexec ./app
 *	srun --mpi=pmix -n 4 pvasexec ./app
 *
 * All that run it in one job on one node meet in one space, which the first
 * of them makes. The process stays the launcher's child: it becomes the program.
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
#include "malloc_tunables.h"

struct wish {
	const char *key;	/* NULL: find it out */
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

/* One line, one write: all ranks may say it at once. */
__attribute__((format(printf, 1, 2)))
static void say(const char *format, ...)
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

static bool said_yes(const char *name)
{
	const char *value = getenv(name);

	return value && *value && strcmp(value, "0");
}

/* ---- the command line ---- */

/* Returns the index of the argument after the option's value, 0 if it is bad. */
static int take_value(struct wish *wish, int argc, char **argv, int i)
{
	if (i + 1 >= argc) {
		say("%s: needs a value (see --help)", argv[i]);
		return 0;
	}
	if (!strcmp(argv[i], "--key")) {
		wish->key = argv[i + 1];
	} else if (parse_size(argv[i + 1], &wish->partition_size)) {
		say("--partition-size %s: not a size (say for example 64G)", argv[i + 1]);
		return 0;
	}
	return i + 2;
}

/* -1: go on, else pvasexec's exit status */
static int parse(struct wish *wish, int argc, char **argv)
{
	int i = 1;

	wish->fallback = said_yes("PVAS_FALLBACK");
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
			wish->fallback = true;
			i++;
		} else if (!strcmp(argv[i], "--key") || !strcmp(argv[i], "--partition-size")) {
			i = take_value(wish, argc, argv, i);
			if (!i)
				return STATUS_FAILED;
		} else {
			say("%s: no such option (see --help)", argv[i]);
			return STATUS_FAILED;
		}
	}
	if (i >= argc) {
		say("no program given (see --help)");
		return STATUS_FAILED;
	}
	wish->argv = argv + i;
	return -1;
}

/* For who sets PVAS_DEBUG, as libpvas does. */
__attribute__((format(printf, 1, 2)))
static void explain(const char *format, ...)
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

/* NULL: there is none. Ends if there is one whose ranks can't agree. */
static const char *find_key(struct jobkey *job)
{
	char why[512];
	int err = jobkey_find(job, why, sizeof(why));

	if (err == -ENOENT)
		return NULL;
	if (err) {
		say("%s", why);
		exit(STATUS_FAILED);
	}
	explain("the job is named by %s, its secret is from %s", job->named_by, job->secret_by);
	return job->key;
}

static bool number(const char *name, unsigned int *value)
{
	const char *text = getenv(name);

	return text && !parse_count(text, 0, INT_MAX, value);
}

/* The rank among those of this node gives a stable place; any other will do, too. */
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

/*
 * Run from a build tree, Open MPI does not know where its component pvas is.
 * Installed, it is among Open MPI's own, and nothing is to be said.
 */
static void show_component(void)
{
	const char *old = getenv(COMPONENT_PATH);
	char dir[PATH_MAX], *paths;

	if (component_find(dir) != COMPONENT_OWN_DIR)
		return;
	if (asprintf(&paths, "%s:%s", dir, old ? old : "SYSTEM_DEFAULT:USER_DEFAULT") < 0)
		return;
	setenv(COMPONENT_PATH, paths, 1);
	free(paths);
}

/* ---- becoming the program ---- */

static void set_malloc_tunables(void)
{
	char *text = malloc_tunables(getenv(TUNABLES));

	if (text)
		setenv(TUNABLES, text, 1);
	free(text);
}

static int program_status(int err)
{
	return err == -ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_EXECUTE;
}

static int complain_program(const char *name, const char *path, int err)
{
	char why[256] = "";

	if (path)
		pvas_program_check(path, why, sizeof(why));
	if (why[0])
		say("%s: %s", name, why);
	else
		say("%s: %s", name, err == -ENOENT ? "not found" : strerror(-err));
	return program_status(err);
}

static int run_plainly(const struct wish *wish, const char *path)
{
	execv(path, wish->argv);
	say("%s: %s", wish->argv[0], strerror(errno));
	return program_status(-errno);
}

static int complain_space(int err)
{
	const char *why = pvas_error_get();

	say("cannot join the job's address space: %s (%s)", why[0] ? why : strerror(-err),
	    err == -ENODEV ? "load it: modprobe pvas, or run plainly with --fallback" :
	    err == -EACCES ? "let this user open /dev/pvas: see pvas(4)" :
	    err == -EPROTO || err == -ENOSYS ? "install module and tools of one release" :
	    err == -ENOSPC ? "too many spaces: see /proc/pvas" :
	    "see the kernel log: dmesg");
	return STATUS_FAILED;
}

/* A place may be taken by a rank that has not quite ended, or by another launcher's. */
static int become(struct pvas_space *space, const struct wish *wish, const char *path)
{
	unsigned int index = wanted_index(space);
	int err;

	err = pvas_task_exec(space, index, path, wish->argv, environ);
	if (err == -EBUSY) {
		explain("place %u is taken: any other will do", index);
		err = pvas_task_exec(space, PVAS_ANY, path, wish->argv, environ);
	}
	return err;
}

/* The last task may end between the join and the exec, and the space with it. */
static int enter(const struct wish *wish, const char *key, const char *path)
{
	const struct pvas_create_attr attr = {
		.size = sizeof(attr),
		.backend = PVAS_BACKEND_KERNEL,
		.flags = PVAS_KEEP_ON_CLOSE,
		.partition_size = wish->partition_size,
	};
	struct pvas_space *space;
	int tries = 10;
	int err;

	do {
		err = pvas_space_join(&space, key, &attr);
		if ((err == -ENODEV || err == -EACCES) && wish->fallback) {
			explain("%s runs as a plain process (--fallback)", path);
			return run_plainly(wish, path);
		}
		if (err)
			return complain_space(err);
		show_component();
		set_malloc_tunables();
		err = become(space, wish, path);
		if (err == -ENOSPC || err == -EALREADY || err == -EINVAL) {
			say("cannot enter the job's address space: %s", pvas_error_get());
			return STATUS_FAILED;
		}
		pvas_space_destroy(space);
	} while (err == -ESRCH && --tries);
	return complain_program(wish->argv[0], path, err);
}

int main(int argc, char **argv)
{
	struct wish wish = { .key = getenv("PVAS_JOB_KEY") };
	struct jobkey job;
	char path[PATH_MAX];
	int status, err;

	status = parse(&wish, argc, argv);
	if (status >= 0)
		return status;
	err = pvas_program_find(wish.argv[0], NULL, path, sizeof(path));
	if (err)
		return complain_program(wish.argv[0], NULL, err);
	if (!wish.key)
		wish.key = find_key(&job);
	if (!wish.key || !*wish.key) {
		say("no job to join: neither mpirun nor srun started this (start it with one, or name the job: --key NAME)");
		return STATUS_FAILED;
	}
	return enter(&wish, wish.key, path);
}
