// SPDX-License-Identifier: GPL-2.0-only
/* Starting the tasks. */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <numaif.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "clock.h"
#include "env.h"
#include "precheck.h"
#include "diagnose.h"
#include "report.h"

#define MAX_SKIPPED 2

/* What a new task does on its way to execve(), and its standard descriptors */
struct start {
	const struct run *run;
	pid_t launcher;
	bool own_group;
	bool terminal;		/* a terminal controls this session */
	cpu_set_t *cpus;	/* NULL: not bound */
	int null;		/* /dev/null */
	int fds[3];
};

/* ---- in the new process ---- */

/* Only async-signal-safe calls: see pvas_spawn_attr */
static int ignore_again(const struct start *start)
{
	const sigset_t *ignored = &start->run->signals.ignored;
	static const int candidates[] = { SIGINT, SIGHUP, SIGQUIT };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	size_t i;

	for (i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++)
		if (sigismember(ignored, candidates[i]) == 1 &&
		    sigaction(candidates[i], &ignore, NULL) < 0)
			return -errno;
	return 0;
}

/*
 * All but the one that reads from the terminal are in its background. Reading
 * shall fail there (EIO), setting it and, with "stty tostop", printing succeed,
 * rather than stop a task for which the others wait.
 */
static int ignore_terminal_stops(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	return sigaction(SIGTTIN, &ignore, NULL) < 0 || sigaction(SIGTTOU, &ignore, NULL) < 0 ?
	       -errno : 0;
}

static int setup(void *arg)
{
	const struct start *start = arg;
	const struct memory *memory = &start->run->memory;

	/* a killed pvasrun takes its tasks with it, even one that is not in the space yet */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	if (getppid() != start->launcher)
		return -ECANCELED;
	if (start->own_group && setpgid(0, 0) < 0)
		return -errno;
	if (start->cpus &&
	    sched_setaffinity(0, start->run->places.cpu_set_size, start->cpus) < 0)
		return -errno;
	if (memory->mode >= 0 &&
	    set_mempolicy(memory->mode, memory->nodes, memory->max_node) < 0)
		return -errno;
	if (start->own_group && start->terminal && ignore_terminal_stops() < 0)
		return -errno;
	/* its number may be above the task's limit, which is for new ones only */
	if (mpi_setup_child(&start->run->mpi) < 0)
		return -errno;
	if (setrlimit(RLIMIT_NOFILE, &start->run->files) < 0)
		return -errno;
	return ignore_again(start);
}

/* ---- in pvasrun ---- */

static int open_input(struct run *run, struct start *start, unsigned int rank)
{
	const struct options *opt = run->opt;

	if (opt->stdin_to == STDIN_ALL)
		return input_attach(&run->input, rank, &start->fds[0]);
	if (opt->stdin_to == STDIN_RANK && opt->stdin_rank == rank)
		start->fds[0] = -1;	/* pvasrun's own */
	else
		start->fds[0] = start->null;
	return 0;
}

static int open_streams(struct run *run, struct start *start, unsigned int rank)
{
	int err;

	start->fds[0] = start->fds[1] = start->fds[2] = -1;
	err = open_input(run, start, rank);
	if (!err && output_forwards(&run->output))
		err = output_attach(&run->output, rank, start->fds + 1);
	return err;
}

static void close_streams(const struct start *start)
{
	int i;

	for (i = 0; i < 3; i++)
		if (start->fds[i] >= 0 && start->fds[i] != start->null)
			close(start->fds[i]);
}

/*
 * Each task leads a process group, so that a signal reaches what it started
 * too. But a terminal serves only the group in its foreground, pvasrun's: the
 * one task that reads from it has to be in there, as if the shell had started
 * it itself.
 */
static bool wants_own_group(const struct run *run, unsigned int rank)
{
	const struct options *opt = run->opt;

	return !(opt->stdin_to == STDIN_RANK && opt->stdin_rank == rank && isatty(STDIN_FILENO));
}

static bool have_terminal(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static int spawn(struct run *run, struct start *start, const struct env *env, unsigned int rank)
{
	const struct app *app = run->job.tasks[rank].app;
	struct pvas_spawn_attr attr = {
		.size = sizeof(attr),
		.flags = run->opt->no_aslr ? PVAS_SPAWN_NO_ASLR : 0,
		.set_fds = 1,
		.cwd = app->wdir,
		.setup = setup,
		.setup_arg = start,
	};
	unsigned int index = 0;
	pid_t pid;
	int ret;

	start->own_group = wants_own_group(run, rank);
	ret = places_mask(&run->places, rank, &start->cpus);
	if (ret)
		return ret;
	memcpy(attr.fds, start->fds, sizeof(attr.fds));
	/*
	 * Without a limit of the stack the vdso lies amidst the partitions, and takes
	 * one or two of them: those are nobody's.
	 */
	ret = mpi_prepare_rank(&run->mpi, rank);
	while (!ret) {
		index = run->first + rank + run->skipped;
		ret = pvas_task_spawn(run->space, index, app->path, app->argv, env->vars, &attr,
				      &pid);
		if (ret != -EINVAL || run->skipped >= MAX_SKIPPED)
			break;
		run->skipped++;
		ret = 0;
	}
	mpi_rank_started(&run->mpi);
	CPU_FREE(start->cpus);
	if (ret < 0)
		return ret;
	run->job.tasks[rank].index = index;
	job_started(&run->job, rank, pid, start->own_group);
	return 0;
}

static const char *spawn_hint(const struct run *run, int err)
{
	static char limit[192];
	char text[128];

	switch (err) {
	case -EACCES:
	case -EPERM:
		if (pvas_space_get_backend(run->space) != PVAS_BACKEND_USER ||
		    !diagnose_write_execute())
			return "";
		return " (writable memory may not become executable: systemd's MemoryDenyWriteExecute=, PR_SET_MDWE or SELinux's execmem; allow it, or use --backend kernel)";
	case -EAGAIN:
		return " (too many processes: see ulimit -u and the cgroup's pids.max)";
	case -ENOMEM:
		if (diagnose_memory_limit(text, sizeof(text))) {
			snprintf(limit, sizeof(limit), " (%s: raise it)", text);
			return limit;
		}
		return " (see vm.max_map_count and the memory limits, or take a larger --partition-size)";
	case -EMFILE:
		return " (raise the limit of open files: ulimit -n)";
	case -E2BIG:
		return " (arguments and environment are too long)";
	default:
		return "";
	}
}

static void complain_start(const struct run *run, unsigned int rank, int err)
{
	const char *why = pvas_error_get();

	complain("cannot start rank %u (%s): %s%s", rank, run->job.tasks[rank].app->argv[0],
		 why[0] ? why : strerror(-err), spawn_hint(run, err));
}

static int launch_one(struct run *run, struct start *start, struct env *env, unsigned int rank)
{
	int err;

	err = open_streams(run, start, rank);
	if (!err) {
		env_set_rank(env, rank);
		err = spawn(run, start, env, rank);
	}
	if (err)
		complain_start(run, rank, err);
	close_streams(start);
	if (err)
		job_end(&run->job, precheck_status(err));
	return err;
}

/* Tasks may end, print or fail, and time go by, while others are being started. */
static bool go_on(struct run *run, unsigned int rank)
{
	progress_update(rank + 1, run->opt->tasks);
	loop_turn(&run->loop, 0);
	job_deadline(&run->job, now_ms());
	if (run->job.interrupt)
		job_end_after(&run->job, run->job.interrupt);
	return !run->job.ending;
}

static int launch_app(struct run *run, struct start *start, const struct app *app)
{
	struct env env;
	unsigned int i;
	int err;

	err = env_init(&env, environ, app, run->opt->tasks, pvas_space_get_id(run->space));
	if (!err)
		err = env_set_malloc_tunables(&env);
	if (!err)
		err = mpi_env(&run->mpi, &env);
	/* ranks parse the topology as XML; libxml2 would leave floating-point exceptions set */
	if (!err && run->mpi.pmix)
		err = env_default(&env, "HWLOC_LIBXML", "0");
	/* ranks would ask an X server, which can be anybody who has taken its name */
	if (!err && run->opt->mpi != MPI_NONE)
		err = env_default(&env, "HWLOC_COMPONENTS", "-gl");
	if (err) {
		complain_start(run, app->first_rank, err);
		job_end(&run->job, STATUS_FAILED);
		return err;
	}
	for (i = 0; i < app->tasks && !err; i++) {
		err = launch_one(run, start, &env, app->first_rank + i);
		if (!err && !go_on(run, app->first_rank + i))
			err = -ECANCELED;
	}
	env_free(&env);
	return err;
}

void launch(struct run *run)
{
	struct start start = {
		.run = run,
		.launcher = getpid(),
		.terminal = have_terminal(),
	};
	unsigned int i;

	start.null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (start.null < 0) {
		complain("cannot open /dev/null: %s", strerror(errno));
		job_end(&run->job, STATUS_FAILED);
		return;
	}
	progress_begin();
	for (i = 0; i < run->opt->nr_apps; i++)
		if (launch_app(run, &start, &run->opt->apps[i]))
			break;
	progress_end();
	close(start.null);
	mpi_serve(&run->mpi);
	if (run->opt->stdin_to == STDIN_ALL)
		input_begin(&run->input);
}
