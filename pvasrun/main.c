// SPDX-License-Identifier: GPL-2.0-only
/* pvasrun - run programs as tasks of one partitioned address space. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answers.h"
#include "clock.h"
#include "far.h"
#include "guard.h"
#include "inherited.h"
#include "launch.h"
#include "left.h"
#include "map.h"
#include "measure.h"
#include "orphans.h"
#include "precheck.h"
#include "pretend.h"
#include "program.h"
#include "report.h"
#include "signals.h"

/* The lowest limit of descriptors for tasks, which inherit some of pvasrun's at first */
#define MIN_FILES 64
#define MIN_STACK (64UL << 10)

/* After the last task has ended, how long to read what is left in its pipes */
#define DRAIN_MS 1000

/* Interval to retry pvasrun's own messages, if their reader is slow */
#define REPORT_MS 100

/* Set while pvasrun executes itself to leave a space, so that it happens only once */
#define LEAVING "PVASRUN_LEAVES_SPACE"
#define PVAS_EXEC "PVAS_EXEC"

/* All parts of a run */
struct run {
	struct options *opt;
	struct loop loop;
	struct signals signals;
	struct job job;
	struct mpi mpi;
	struct places places;
	struct memory memory;
	struct output output;	/* used if output_forwards() */
	struct input input;	/* used with --stdin all */
	struct rlimit files;	/* as inherited; precheck.c may raise pvasrun's own */
	struct rlimit processor_time;	/* as inherited */
	struct job_space space;
	struct subreaper orphans;
	struct left left;
	struct guard guard;	/* while tasks are started */
	struct launcher launcher;
	bool hangs;		/* a call in the first thread */
};

/*
 * If a standard descriptor is closed, the next open() would return its number, and
 * tasks would write to that file.
 */
static void open_standard_fds(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	} while (fd >= 0 && fd <= STDERR_FILENO && !fcntl(fd, F_SETFD, 0));
	if (fd > STDERR_FILENO)
		close(fd);
}

/*
 * If pvasrun is itself a task, it lies in a partition and has no room for a space of
 * its own. Executing itself again leaves the outer space.
 */
static void leave_space(char **argv)
{
	char path[PATH_MAX];
	ssize_t len;

	if (pvas_task_get_index() < 0 || getenv(LEAVING)) {
		/* The user's own PVAS_EXEC=leave is for the tasks. */
		if (getenv(LEAVING) && !strcmp(getenv(LEAVING), "1"))
			unsetenv(PVAS_EXEC);
		unsetenv(LEAVING);
		return;
	}
	len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (len <= 0)
		return;
	path[len] = '\0';
	setenv(LEAVING, getenv(PVAS_EXEC) ? "as the user wants" : "1", 1);
	setenv(PVAS_EXEC, "leave", 1);
	execv(path, argv);
	unsetenv(LEAVING);
}

static int fail(const char *what, int err)
{
	report_error("%s: %s", what, strerror(-err));
	return STATUS_FAILED;
}

static int bind_prepare(struct run *run)
{
	static const char *const names[] = { [BIND_CORE] = "cores", [BIND_NUMA] = "NUMA nodes" };
	int err;

	err = places_init(&run->places, run->opt->bind_to, run->opt->tasks);
	/* the default is not worth an error */
	if (err && run->opt->bind_to == BIND_DEFAULT)
		err = 0;
	if (err)
		return fail("cannot find out this machine's processors (try --bind-to none)", err);
	if (run->places.how == BIND_NONE)
		report_note("tasks are not bound");
	else
		report_note("tasks are bound to %s, of which there are %u", names[run->places.how],
			    run->places.sets.nr);
	err = memory_init(&run->memory, run->opt->mem_bind);
	return err ? fail("cannot find out this machine's memory nodes", err) : 0;
}

static void end_hung_start(void *arg);

/* Make all checks that are possible before the first task. */
static int prepare(struct run *run)
{
	int status, err;

	status = answers_wait(run->opt);
	if (!status)
		status = precheck_limits(run->opt);
	if (!status)
		status = far_prepare(run->opt);
	if (!status)
		status = pretend_check(run->opt);
	if (!status)
		status = bind_prepare(run);
	if (status)
		return status;
	err = loop_open(&run->loop);
	if (!err)
		err = job_init(&run->job, run->opt);
	if (!err)
		err = signals_open(&run->signals, &run->loop, &run->job);
	if (!err)
		guard_open(&run->guard, &run->signals.end, run->opt->timeout_at, end_hung_start,
			   run);
	if (!err)
		err = output_open(&run->output, &run->loop, &run->job);
	if (!err && run->opt->stdin_to == STDIN_ALL)
		err = input_open(&run->input, &run->loop, run->opt->tasks);
	if (err)
		return fail("cannot prepare the job", err);
	run->job.input = run->opt->stdin_to == STDIN_ALL ? &run->input : NULL;
	err = mpi_open(&run->mpi, run->opt, &run->loop, &run->job, &run->places,
		       &run->output);
	if (err) {
		report_error("cannot listen on 127.0.0.1 for MPI programs: %s (--mpi pmi1 needs no port and serves MPICH, --mpi none serves none)",
			     strerror(-err));
		return STATUS_FAILED;
	}
	err = space_open(&run->space, run->opt);
	run->job.space = run->space.space;
	if (!err && far_watch(&run->loop, &run->job))
		return fail("cannot watch the pager", -errno);
	return err;
}

/* For loop_turn(); -1: no limit */
static int wait_ms(int64_t now, int64_t until)
{
	if (until < 0)
		return -1;
	if (until - now > INT32_MAX)
		return INT32_MAX;
	return until > now ? until - now : 0;
}

/* Messages of pvasrun itself may wait for their reader, too, and those that ranks had it print. */
static int64_t or_report(struct run *run, int64_t now, int64_t until)
{
	const bool texts = mpi_texts_wait(&run->mpi), report = report_waits();

	if (!texts && !report)
		return until;
	return until < 0 || until > now + REPORT_MS ? now + REPORT_MS : until;
}

static void wait_for_tasks(struct run *run)
{
	while (job_goes_on(&run->job)) {
		int64_t now = now_ms(), until = job_deadline(&run->job, now);

		if (!job_goes_on(&run->job))
			break;
		until = left_report(&run->left, now, until);
		loop_turn(&run->loop, wait_ms(now, or_report(run, now, until)));
	}
}

/*
 * A process that a task left running may keep the pipes open: do not wait for it. But
 * wait for a slow reader of pvasrun's own output, unless --timeout or a signal ends
 * that: after an earlier signal, @interrupt, it ends within GRACE_MS. Returns such a
 * signal if output is lost by it, or 0.
 */
static int drain_output(struct run *run, int interrupt)
{
	struct job *job = &run->job;
	int64_t until = now_ms() + DRAIN_MS, last = job->timeout_at, now, stuck;

	if (interrupt)
		last = now_ms() + GRACE_MS;
	else if (last && last < until)
		last = until;
	job->interrupt = 0;
	output_tasks_ended(&run->output);
	while (!job->interrupt) {
		now = now_ms();
		if (now >= until && !run->output.finishing)
			output_finish_reading(&run->output);
		stuck = output_stuck_at(&run->output);
		/* Unless it was pvasrun that has not gone on meanwhile. */
		if (stuck >= 0 && now >= stuck) {
			loop_turn(&run->loop, 0);
			if (output_stuck_at(&run->output) == stuck)
				output_give_up(&run->output);
		}
		if (!output_reading(&run->output) && !output_writing(&run->output))
			break;
		if (last && now >= last) {
			report_error("the time is over, and output was not read: it is lost");
			job->status = job->failed ? job->status : STATUS_TIMEOUT;
			break;
		}
		if (!run->output.finishing)
			stuck = until;
		else if (last && (stuck < 0 || last < stuck))
			stuck = last;
		loop_turn(&run->loop, wait_ms(now, stuck));
	}
	if (!job->interrupt || (!output_reading(&run->output) && !output_writing(&run->output)))
		return 0;
	report_error("output was not read: it is lost");
	return job->interrupt;
}

static void start_tasks(struct run *run)
{
	run->launcher = (struct launcher){
		.opt = run->opt,
		.loop = &run->loop,
		.job = &run->job,
		.space = &run->space,
		.mpi = &run->mpi,
		.places = &run->places,
		.memory = &run->memory,
		.output = &run->output,
		.input = &run->input,
		.guard = &run->guard,
		.ignored = &run->signals.ignored,
		.files = run->files,
		.processor_time = run->processor_time,
	};

	launch(&run->launcher);
	guard_close(&run->guard);
}

/* A space in which a start hangs ends with pvasrun. */
static void close_space(struct run *run)
{
	if (!run->hangs)
		space_close(&run->space);
}

static int end_job(struct run *run)
{
	int interrupt, again;

	wait_for_tasks(run);
	interrupt = run->job.interrupt;
	again = orphans_end(&run->orphans);
	if (again)
		run->job.death_signal = interrupt = again;
	mpi_flush(&run->mpi);
	again = output_forwards(&run->output) ? drain_output(run, interrupt) : 0;
	if (again && !run->job.failed)
		run->job.death_signal = interrupt = again;
	if ((run->output.failed || run->input.failed) && !run->job.status)
		run->job.status = STATUS_FAILED;
	far_report();
	mpi_close(&run->mpi);
	if (run->job.death_signal && run->job.death_signal == interrupt) {
		close_space(run);
		far_end();
		report_flush();
		output_close(&run->output);
		signals_die_from(interrupt);
	}
	return run->job.status;
}

static int run_job(struct run *run)
{
	int status = prepare(run);

	if (status)
		return status;
	orphans_open(&run->orphans, &run->loop, &run->job,
		     pvas_space_get_backend(run->space.space) == PVAS_BACKEND_USER);
	start_tasks(run);
	left_begin(&run->left, &run->job, &run->space);
	if (run->opt->map)
		map_print(&run->job, &run->space, &run->places);
	return end_job(run);
}

/* Nor one that the library has made, which sends no SIGCHLD: somebody has to wait for it. */
static bool have_child(void)
{
	return !waitid(P_ALL, 0, NULL, WEXITED | WNOHANG | WNOWAIT | __WALL) || errno != ECHILD;
}

/*
 * When no task is left, and no process of one, the kernel's end of this process is also that of
 * a space of the user backend. To end its threads one by one before would take as long as the
 * start of a small job.
 */
static bool space_ends_with_us(const struct run *run)
{
	return job_is_over(&run->job) && !run->opt->far.ram &&
	       pvas_space_get_backend(run->space.space) == PVAS_BACKEND_USER && !have_child();
}

static void clean_up(struct run *run)
{
	if (!run->hangs)
		guard_close(&run->guard);
	mpi_close(&run->mpi);
	/* Their children first, or space_ends_with_us() sees them. */
	input_close(&run->input);
	output_close(&run->output);
	if (!space_ends_with_us(run))
		close_space(run);
	far_end();
	signals_close(&run->signals);
	job_free(&run->job);
	places_free(&run->places);
	loop_close(&run->loop);
}

/* In the guard's thread, while the first one starts a task and stays in that. */
static void end_hung_start(void *arg)
{
	struct run *run = arg;
	int status;

	run->hangs = true;
	launch_given_up(&run->launcher);
	status = end_job(run);
	clean_up(run);
	report_flush();
	_exit(status);
}

/*
 * With the user backend the mapping calls of all tasks are pvasrun's time. Each task may stay
 * below a limit that all have inherited while the sum doesn't.
 */
static void raise_processor_time(struct rlimit *inherited)
{
	struct rlimit all;

	getrlimit(RLIMIT_CPU, inherited);
	all = *inherited;
	all.rlim_cur = all.rlim_max;
	setrlimit(RLIMIT_CPU, &all);
}

static int run_options(struct options *opt)
{
	static struct run run;	/* large, and zero to begin with */
	int status;

	run.opt = opt;
	run.loop.self.fd = -1;
	run.signals.event.fd = run.signals.child.event.fd = -1;
	if (!getrlimit(RLIMIT_NOFILE, &run.files) && run.files.rlim_cur < MIN_FILES)
		run.files.rlim_cur = run.files.rlim_max < MIN_FILES ? run.files.rlim_max :
									 MIN_FILES;
	raise_processor_time(&run.processor_time);
	report_setup(opt->verbose, opt->quiet);
	status = run_job(&run);
	clean_up(&run);
	return status;
}

/* It would end by a fault in the middle of things, which says nothing. */
static int has_stack(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= MIN_STACK)
		return 1;
	report_error("the stack limit of %lu KiB is too low: %lu are needed (ulimit -s)",
		     (unsigned long)limit.rlim_cur >> 10, MIN_STACK >> 10);
	return 0;
}

int main(int argc, char **argv)
{
	struct options opt;
	char why[512];
	int status = STATUS_FAILED;

	leave_space(argv);
	open_standard_fds();
	if (!has_stack())
		return STATUS_FAILED;
	status = inherited_note();
	if (status) {
		report_error("cannot list its open files: %s", strerror(-status));
		return STATUS_FAILED;
	}
	status = STATUS_FAILED;
	if (options_parse(&opt, argc, argv, why, sizeof(why))) {
		report_error("%s", why);
	} else if (opt.action == ACTION_RUN) {
		status = run_options(&opt);
	} else if (opt.action == ACTION_CHECK) {
		status = program_check_all(opt.check);
		if (fflush(stdout))
			status = STATUS_FAILED;
	} else if (opt.action == ACTION_CHECK_RUN) {
		status = program_check(opt.check[0]);
		status = status ? status : measure_run(opt.check);
		if (fflush(stdout))
			status = STATUS_FAILED;
	} else {
		(opt.action == ACTION_HELP ? help_print : version_print)(stdout);
		status = fflush(stdout) ? STATUS_FAILED : 0;
	}
	options_free(&opt);
	report_flush();
	return status;
}
