// SPDX-License-Identifier: GPL-2.0-only
/* Checks before any task is started. */
#include "precheck.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/pvas.h>

#include "../libpvas/pvas.h"
#include "job.h"
#include "elf_needed.h"
#include "program.h"
#include "pty.h"
#include "python.h"
#include "report.h"

/* Memory maps of one task: minimum, small program, MPI program */
#define MAPS_LEAST	16
#define MAPS_SMALL	40
#define MAPS_MPI	400

/* A user's address space on x86-64, log2 */
#define ADDRESS_BITS	47

/* The lowest address of a position-independent program that the kernel starts */
#define PVASRUN_LIES_AT	0x555555554000ULL

/* ---- programs ---- */

int precheck_status(int err)
{
	switch (err) {
	case -ENOENT:
	case -ENOTDIR:
		return STATUS_NOT_FOUND;
	case -EACCES:
	case -EPERM:
	case -ENOEXEC:
	case -ELIBBAD:
		return STATUS_CANNOT_EXECUTE;
	default:
		return STATUS_FAILED;
	}
}

static int check_wdir(const struct app *app)
{
	struct stat st;
	int err = 0;

	if (!app->wdir)
		return 0;
	if (stat(app->wdir, &st) < 0 || access(app->wdir, X_OK) < 0)
		err = errno;
	else if (!S_ISDIR(st.st_mode))
		err = ENOTDIR;
	if (!err)
		return 0;
	report_error("--wdir %s: %s (give a directory that the tasks can enter)", app->wdir,
		     strerror(err));
	return STATUS_FAILED;
}

/* The working directory is changed before execve(): the path must be absolute then. */
static int set_path(struct app *app, const char *path)
{
	if (app->wdir && path[0] != '/')
		app->path = realpath(path, NULL);
	else
		app->path = strdup(path);
	if (app->path) {
		app->condition = program_condition(app->path);
		return 0;
	}
	report_error("cannot start %s: %s", app->argv[0], strerror(errno));
	return STATUS_FAILED;
}

/*
 * The system's Python can't be a task, but its host can. A script that begins with "env python3"
 * can be started, but env would execute Python outside of the space. Sets the path in both
 * cases, and returns as python_host_find().
 */
static int take_host(struct app *app, const char *path, char *why, size_t len)
{
	struct python_host host;
	int ret;

	if (set_path(app, path))
		return -ENOMEM;
	ret = python_host_find(app->path, app->argv, &host, why, len);
	if (ret <= 0)
		return ret;
	report_note("%s: Python is not position-independent: %s runs it", path, host.path);
	free(app->path);
	app->path = strdup(host.path);
	app->argv = app->own_argv = host.argv;
	app->own_words = host.nr_words;
	return app->path ? 1 : -ENOMEM;
}

static int check_program(struct app *app)
{
	char path[PATH_MAX], why[512];
	int err, ret = 0;

	err = program_find(app->argv[0], app->wdir, path, why, sizeof(why));
	if (!err || err == -ENOEXEC)
		ret = take_host(app, path, why, sizeof(why));
	if (ret < 0 && !err)
		report_warning("%s: Python will leave the space: %s", path, why);
	if (ret > 0 || !err) {
		app->elf = app->path ? elf_needed(app->path) : 0;
		return app->path ? 0 : STATUS_FAILED;
	}
	report_error("cannot start %s: %s", path[0] ? path : app->argv[0], why);
	return precheck_status(err);
}

int precheck_programs(struct options *opt)
{
	unsigned int i;
	int status;

	for (i = 0; i < opt->nr_apps; i++) {
		status = check_wdir(&opt->apps[i]);
		if (!status)
			status = check_program(&opt->apps[i]);
		if (status)
			return status;
	}
	return 0;
}

/* ---- limits ---- */

bool precheck_enough(uint64_t size, unsigned int places, unsigned int tasks)
{
	return places >= (size > 1ULL << PVAS_SHIFT_DEFAULT ? 2 * tasks : tasks);
}

/*
 * The lowest and the topmost partition can't be used, and with the user backend none
 * from pvasrun's own address on. Large sizes are chosen the same for both backends.
 */
static unsigned int places_of(unsigned int shift)
{
	if (shift > PVAS_SHIFT_DEFAULT)
		return (PVASRUN_LIES_AT >> shift) - 1;
	return (1U << (ADDRESS_BITS - shift)) - 2;
}

uint64_t precheck_partition_size(unsigned int tasks)
{
	unsigned int shift = PVAS_SHIFT_MAX;

	while (shift > PVAS_SHIFT_MIN && !precheck_enough(1ULL << shift, places_of(shift), tasks))
		shift--;
	return 1ULL << shift;
}

enum maps_verdict precheck_maps(unsigned int tasks, uint64_t limit)
{
	if (limit < (uint64_t)tasks * MAPS_LEAST)
		return MAPS_TOO_FEW;
	if (limit < (uint64_t)tasks * MAPS_SMALL)
		return MAPS_FEW;
	if (limit < (uint64_t)tasks * MAPS_MPI)
		return MAPS_FEW_FOR_MPI;
	return MAPS_FINE;
}

static bool any_mpi(const struct options *opt)
{
	unsigned int i;

	for (i = 0; i < opt->nr_apps; i++)
		if (opt->apps[i].elf & ELF_NEEDS_MPI)
			return true;
	return false;
}

/* vm.max_map_count limits an address space, here all tasks together. */
static int check_maps(const struct options *opt)
{
	unsigned int tasks = opt->tasks, wanted = tasks * MAPS_MPI;
	enum maps_verdict verdict;
	uint64_t limit;
	FILE *file;
	int n;

	file = fopen("/proc/sys/vm/max_map_count", "re");
	if (!file)
		return 0;
	n = fscanf(file, "%" SCNu64, &limit);
	fclose(file);
	if (n != 1)
		return 0;
	verdict = precheck_maps(tasks, limit);
	if (verdict == MAPS_FEW_FOR_MPI && any_mpi(opt))
		verdict = MAPS_FEW;
	switch (verdict) {
	case MAPS_TOO_FEW:
		report_error("vm.max_map_count is %" PRIu64 ", too few memory maps for %u tasks (as root: sysctl vm.max_map_count=%u)",
			     limit, tasks, wanted);
		return STATUS_FAILED;
	case MAPS_FEW:
		report_warning("vm.max_map_count is %" PRIu64 ": %u tasks may run out of memory maps (as root: sysctl vm.max_map_count=%u)",
			       limit, tasks, wanted);
		return 0;
	case MAPS_FEW_FOR_MPI:
		report_note("vm.max_map_count is %" PRIu64 ": enough for %u small tasks, but not if they are MPI programs (as root: sysctl vm.max_map_count=%u)",
			    limit, tasks, wanted);
		return 0;
	default:
		return 0;
	}
}

/* Processes of this user; not its threads, which are limited, too: that takes too long. */
static rlim_t processes_now(void)
{
	struct dirent *entry;
	struct stat st;
	rlim_t count = 0;
	DIR *proc;

	proc = opendir("/proc");
	if (!proc)
		return 0;
	while ((entry = readdir(proc)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    !fstatat(dirfd(proc), entry->d_name, &st, 0) && st.st_uid == getuid())
			count++;
	closedir(proc);
	return count;
}

static int check_processes(unsigned int tasks)
{
	struct rlimit limit;

	/* root is not limited; above the number of usual processes, do not count them */
	if (!geteuid() || getrlimit(RLIMIT_NPROC, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
	    limit.rlim_cur > tasks + 8192)
		return 0;
	if (limit.rlim_cur >= tasks + processes_now())
		return 0;
	report_error("the limit of %ju processes is too low for %u more tasks (raise it: ulimit -u)",
		     (uintmax_t)limit.rlim_cur, tasks);
	return STATUS_FAILED;
}

/* It needs a descriptor for each task. libpvas chooses by the same test. */
static bool may_be_user_backend(const struct options *opt)
{
	return opt->backend == PVAS_BACKEND_USER ||
	       (opt->backend == PVAS_BACKEND_AUTO && access("/dev/pvas", R_OK | W_OK));
}

/* A descriptor for each copied stream, and some for pvasrun and libpvas */
static rlim_t files_needed(const struct options *opt)
{
	rlim_t need = 64;

	if (opt->tag_output)
		need += 2 * opt->tasks;
	else if (pty_wanted(opt))
		need += opt->tasks;
	if (pty_wanted(opt))
		need += opt->tasks;	/* of each pseudo-terminal both ends */
	if (opt->stdin_to == STDIN_ALL)
		need += opt->tasks;
	if (may_be_user_backend(opt))
		need += opt->tasks;
	if (opt->mpi == MPI_AUTO || opt->mpi == MPI_PMI1)
		need += opt->tasks;	/* PMI_FD */
	return need;
}

/* A job can do without pseudo-terminals. */
static void spare_files(struct options *opt, rlim_t max)
{
	if (opt->pty != PTY_AUTO || !pty_wanted(opt) || files_needed(opt) <= max)
		return;
	opt->pty = PTY_NEVER;
	if (files_needed(opt) <= max)
		report_warning("no pseudo-terminals for the tasks' output: the limit of %ju open files is too low: what a task has not written when it is killed is lost",
			       (uintmax_t)max);
}

static int check_files(struct options *opt)
{
	struct rlimit limit;
	rlim_t need;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	spare_files(opt, limit.rlim_max);
	need = files_needed(opt);
	if (limit.rlim_cur >= need)
		return 0;
	if (limit.rlim_max >= need) {
		limit.rlim_cur = need;	/* launch.c restores it in tasks */
		if (!setrlimit(RLIMIT_NOFILE, &limit))
			return 0;
	}
	report_error("the limit of %ju open files is too low: %ju are needed%s (raise it: ulimit -n)",
		     (uintmax_t)limit.rlim_max, (uintmax_t)need,
		     opt->tag_output ? " with --tag-output" : "");
	return STATUS_FAILED;
}

/* Each would wait in MPI_Init for ranks that it can't know of. */
int precheck_mpi(const struct options *opt)
{
	const char *mpich = NULL, *other = NULL;
	unsigned int i, flags;

	if (opt->mpi != MPI_AUTO)
		return 0;
	for (i = 0; i < opt->nr_apps; i++) {
		flags = opt->apps[i].elf;
		if (flags & ELF_NEEDS_MPICH)
			mpich = opt->apps[i].argv[0];
		else if (flags & ELF_NEEDS_MPI)
			other = opt->apps[i].argv[0];
	}
	if (!mpich || !other)
		return 0;
	report_error("%s is linked with MPICH, %s with Open MPI: the ranks of a job need the same MPI (start two jobs)",
		     mpich, other);
	return STATUS_FAILED;
}

int precheck_limits(struct options *opt)
{
	int status;

	status = check_maps(opt);
	if (!status)
		status = check_processes(opt->tasks);
	if (!status)
		status = check_files(opt);
	return status;
}
