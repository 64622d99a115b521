// SPDX-License-Identifier: GPL-2.0-only
/* Start the tasks. */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "clock.h"
#include "env.h"
#include "far.h"
#include "inherited.h"
#include "precheck.h"
#include "ask.h"
#include "diagnose.h"
#include "reopen.h"
#include "report.h"

#define MAX_SKIPPED 2
#define FEW 8			/* so many tasks have few descriptors */

/* Parameters of a task: what setup() does before execve(), and standard descriptors */
struct start {
	const struct launcher *launcher;
	pid_t parent;
	bool own_group;
	bool terminal;		/* there is a controlling terminal */
	const cpu_set_t *cpus;	/* NULL: not bound */
	int null;		/* /dev/null */
	int fds[3];
};

/* ---- in the new process ---- */

/* The spawn resets all signals. Only async-signal-safe calls: see pvas_spawn_attr */
static int ignore_again(const struct start *start)
{
	const sigset_t *ignored = start->launcher->ignored;
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	int signo;

	for (signo = 1; signo <= SIGRTMAX; signo++)
		if (sigismember(ignored, signo) == 1 && sigaction(signo, &ignore, NULL) < 0)
			return -errno;
	return 0;
}

/*
 * All tasks but the one that reads from the terminal are background processes of it.
 * With these signals ignored, read() fails there (EIO), and tcsetattr() and, with
 * "stty tostop", write() succeed; otherwise they would stop a task for which others wait.
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

	/* tasks end with pvasrun, even if that is killed before they have entered the space */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	if (getppid() != start->parent)
		return -ECANCELED;
	if (start->own_group && setpgid(0, 0) < 0)
		return -errno;
	if (start->cpus &&
	    sched_setaffinity(0, start->launcher->places->sets.size, start->cpus) < 0)
		return -errno;
	if (memory_apply(start->launcher->memory) < 0)
		return -errno;
	if (start->own_group && start->terminal && ignore_terminal_stops() < 0)
		return -errno;
	/* before the limit is set: its number may be above it */
	if (mpi_setup_child(start->launcher->mpi) < 0)
		return -errno;
	inherited_close_peers();
	if (setrlimit(RLIMIT_NOFILE, &start->launcher->files) < 0 ||
	    setrlimit(RLIMIT_CPU, &start->launcher->processor_time) < 0)
		return -errno;
	return ignore_again(start);
}

/* ---- in pvasrun ---- */

static int open_input(const struct launcher *launcher, struct start *start, unsigned int rank)
{
	const struct options *opt = launcher->opt;

	if (opt->stdin_to == STDIN_ALL)
		return input_attach(launcher->input, &start->fds[0]);
	if (opt->stdin_to == STDIN_RANK && opt->stdin_rank == rank)
		start->fds[0] = -1;	/* pvasrun's own */
	else
		start->fds[0] = start->null;
	return 0;
}

static int open_streams(const struct launcher *launcher, struct start *start, unsigned int rank)
{
	int err;

	start->fds[0] = start->fds[1] = start->fds[2] = -1;
	err = open_input(launcher, start, rank);
	if (!err && output_forwards(launcher->output))
		err = output_attach(launcher->output, rank, start->fds + 1);
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
 * Each task leads a process group, so that signals reach its children, too. But only
 * the foreground process group, pvasrun's, can read from the terminal: the task that
 * has standard input stays in that group.
 */
static bool wants_own_group(const struct launcher *launcher, unsigned int rank)
{
	const struct options *opt = launcher->opt;

	return !(opt->stdin_to == STDIN_RANK && opt->stdin_rank == rank &&
		 is_terminal(STDIN_FILENO));
}

static bool have_terminal(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* With the user backend, the memory of tasks is in this address space. */
static void leave_out_tasks(const struct job_space *space, unsigned int last)
{
	if (pvas_space_get_backend(space->space) == PVAS_BACKEND_USER)
		ask_without((void *)(space->first * space->partition_size),
			    (last - space->first + 1) * space->partition_size);
}

/* inherited_only() keeps the promise. */
static void name_kept(const struct launcher *launcher, struct pvas_spawn_attr *attr)
{
	const ssize_t nr = inherited_list(mpi_child_fd(launcher->mpi), &attr->keep);

	if (nr < 0)
		return;
	attr->nr_keep = (size_t)nr;
	attr->flags |= PVAS_SPAWN_KEEP;
}

static int spawn(const struct launcher *launcher, struct start *start, const struct env *env,
		 unsigned int rank)
{
	const struct app *app = launcher->job->tasks[rank].app;
	struct job_space *space = launcher->space;
	struct pvas_spawn_attr attr = {
		.size = sizeof(attr),
		.flags = PVAS_SPAWN_SAME_RIGHTS |
			 (launcher->opt->no_aslr ? PVAS_SPAWN_NO_ASLR : 0),
		.set_fds = 1,
		.cwd = app->wdir,
		.setup = setup,
		.setup_arg = start,
	};
	unsigned int index = 0;
	pid_t pid;
	int ret;

	name_kept(launcher, &attr);
	start->own_group = wants_own_group(launcher, rank);
	start->cpus = places_set(launcher->places, rank);
	memcpy(attr.fds, start->fds, sizeof(attr.fds));
	/*
	 * With an unlimited stack the kernel places the vdso amidst the partitions. The
	 * one or two that it occupies can't be used (EINVAL).
	 */
	ret = mpi_prepare_rank(launcher->mpi, rank);
	inherited_only();
	while (!ret) {
		index = space->first + rank + space->skipped;
		guard_enter(launcher->guard);
		ret = pvas_task_spawn(space->space, index, app->path, app->argv, env->vars, &attr,
				      &pid);
		guard_leave(launcher->guard);
		if (ret != -EINVAL || space->skipped >= MAX_SKIPPED)
			break;
		space->skipped++;
		ret = 0;
	}
	mpi_rank_started(launcher->mpi);
	if (ret < 0)
		return ret;
	launcher->job->tasks[rank].index = index;
	leave_out_tasks(space, index);
	job_started(launcher->job, rank, pid, start->own_group);
	return 0;
}

static const char *spawn_hint(const struct launcher *launcher, int err)
{
	static char limit[192];
	char text[128];

	switch (err) {
	case -EACCES:
	case -EPERM:
		if (pvas_space_get_backend(launcher->space->space) != PVAS_BACKEND_USER ||
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

static void report_start_error(const struct launcher *launcher, unsigned int rank, int err)
{
	const char *why = pvas_error_get();

	report_error("cannot start rank %u (%s): %s%s", rank, launcher->job->tasks[rank].app->argv[0],
		     why[0] ? why : strerror(-err), spawn_hint(launcher, err));
}

static int launch_one(const struct launcher *launcher, struct start *start, struct env *env,
		      unsigned int rank)
{
	int err;

	err = open_streams(launcher, start, rank);
	if (!err) {
		env_set_rank(env, rank);
		err = spawn(launcher, start, env, rank);
	}
	if (err) {
		job_end(launcher->job, precheck_status(err));
		report_start_error(launcher, rank, err);
	}
	close_streams(start);
	return err;
}

/* Between two tasks: others may end, print or fail. False: start no more. */
static bool handle_events(const struct launcher *launcher, unsigned int rank)
{
	progress_update(rank + 1, launcher->opt->tasks);
	loop_turn(launcher->loop, 0);
	job_deadline(launcher->job, now_ms());
	if (launcher->job->interrupt)
		job_end_after(launcher->job, launcher->job->interrupt);
	return !launcher->job->ending;
}

/*
 * On a terminal programs start a pager, which reads keys from /dev/tty if there is one; to the
 * file or pipe that the user has named, they would not.
 */
static bool needs_no_pager(const struct launcher *launcher, const struct start *start)
{
	return launcher->output->pty && launcher->opt->pty == PTY_AUTO && start->terminal;
}

/*
 * hwloc in ranks would connect to an X server, which may be any user's process. And ranks parse
 * the topology as XML, and libxml2 leaves floating-point exceptions set. Nor shall it load the
 * plugins that are then unused: they bring a sixth of all that MPI_Init() loads.
 */
static int set_hwloc(const struct launcher *launcher, struct env *env)
{
	bool no_gl = !env_get(env, "HWLOC_COMPONENTS");
	bool no_xml = launcher->mpi->pmix && !env_get(env, "HWLOC_LIBXML");
	const char *unused = no_gl && no_xml ? "hwloc_gl.so,hwloc_xml_libxml.so" :
			     no_gl ? "hwloc_gl.so" : "hwloc_xml_libxml.so";
	int err = 0;

	if (no_xml)
		err = env_set(env, "HWLOC_LIBXML", "0");
	if (!err && no_gl)
		err = env_set(env, "HWLOC_COMPONENTS", "-gl");
	if (!err && (no_gl || no_xml))
		err = env_default(env, "HWLOC_PLUGINS_BLACKLIST", unused);
	return err;
}

static int launch_app(const struct launcher *launcher, struct start *start, const struct app *app)
{
	struct env env;
	unsigned int i;
	int err;

	err = env_init(&env, environ, app, launcher->opt->tasks,
		       pvas_space_get_id(launcher->space->space));
	if (!err && launcher->opt->verbose)
		err = env_set(&env, "PVAS_VERBOSE", "1");
	if (!err)
		err = env_set_malloc_tunables(&env, launcher->opt->far.threshold);
	if (!err)
		err = far_env(&env);
	if (!err)
		err = mpi_env(launcher->mpi, &env);
	if (!err && launcher->opt->mpi != MPI_NONE)
		err = set_hwloc(launcher, &env);
	if (!err && needs_no_pager(launcher, start))
		err = env_set_pagers(&env, app);
	if (err) {
		job_end(launcher->job, STATUS_FAILED);
		report_start_error(launcher, app->first_rank, err);
		return err;
	}
	for (i = 0; i < app->tasks && !err; i++) {
		err = launch_one(launcher, start, &env, app->first_rank + i);
		if (!err && !handle_events(launcher, app->first_rank + i))
			err = -ECANCELED;
	}
	env_free(&env);
	return err;
}

void launch_given_up(const struct launcher *launcher)
{
	struct job *job = launcher->job;
	const unsigned int rank = job->started;

	progress_end();
	loop_turn(launcher->loop, 0);
	job_deadline(job, now_ms());
	if (job->interrupt)
		job_end_after(job, job->interrupt);
	report_error("rank %u (%s) has not started yet (a file server does not answer?)", rank,
		     job->tasks[rank].app->argv[0]);
	output_begin(launcher->output);
}

void launch(const struct launcher *launcher)
{
	struct start start = {
		.launcher = launcher,
		.parent = getpid(),
		.terminal = have_terminal(),
	};
	unsigned int i;

	start.null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (start.null < 0) {
		report_error("cannot open /dev/null: %s", strerror(errno));
		job_end(launcher->job, STATUS_FAILED);
		return;
	}
	if (launcher->opt->tasks > FEW)
		inherited_mark();
	progress_begin();
	for (i = 0; i < launcher->opt->nr_apps; i++)
		if (launch_app(launcher, &start, &launcher->opt->apps[i]))
			break;
	progress_end();
	close(start.null);
	mpi_serve(launcher->mpi);
	output_begin(launcher->output);
	if (launcher->opt->stdin_to == STDIN_ALL)
		input_begin(launcher->input);
}
