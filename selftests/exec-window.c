// SPDX-License-Identifier: GPL-2.0-only
/*
 * A task is a kernel thread to others for a moment of its exec: signals, a freeze and cgroup.kill
 * that come just then.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "window.h"

#define QUEUED	(SIGRTMIN + 1)
#define KILLED	(SIGRTMIN + 2)
#define THREADS	(SIGRTMIN + 3)

/* ---- a task that execs in the window ---- */

struct job {
	struct window window;
	struct pvas_space *space;
	int in[2], out[2];
	pid_t pid;
	bool killed;
};

/* A task that waits for job_exec(), or -errno. */
static int job_start(struct job *job, const char *name)
{
	int ret = window_make(&job->window);

	if (ret)
		return ret;
	ret = pt_create(&job->space, 0, 0);
	if (ret || pipe(job->in) || pipe(job->out))
		return ret ?: -errno;
	ret = pt_start_task_fds(job->space, 1, name, job->out[1], job->in[0], &job->pid);
	return ret < 0 ? ret : 0;
}

/* Returns in the window. */
static bool job_exec(struct job *job)
{
	if (pt_hear(job->out[0]) != 'r')
		return false;
	window_hold(&job->window, (uint64_t)job->pid);
	return write(job->in[1], "x", 1) == 1 && window_is_open(&job->window);
}

static void job_end(struct job *job)
{
	pvas_space_destroy(job->space);
	window_break(&job->window);
}

/* No BPF, or no probes: then the window can't be held open. */
#define JOB_START(job, name) do { \
	int ret__ = job_start(job, name); \
	if (window_is_missing(ret__)) \
		SKIP(return, "no BPF program can be attached: %s", strerror(-ret__)); \
	ASSERT_EQ(0, ret__); \
} while (0)

/* ---- signals ---- */

static void take(int sig, int code, siginfo_t *info)
{
	struct timespec soon = { 5, 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	CHECK_EQ(sig, sigtimedwait(&set, info, &soon));
	CHECK_EQ(code, info->si_code);
}

static void check_none_left(void)
{
	sigset_t set;

	CHECK_EQ(0, sigpending(&set));
	CHECK(sigisemptyset(&set));
}

TASK(check_signals)
{
	siginfo_t info;
	int i;

	for (i = 0; i < 3; i++) {
		take(QUEUED, SI_QUEUE, &info);
		CHECK_EQ(i, info.si_value.sival_int);
		CHECK_EQ(getppid(), info.si_pid);
	}
	take(KILLED, SI_USER, &info);
	CHECK_EQ(getppid(), info.si_pid);
	/* That is how glibc shows SI_TKILL. */
	take(THREADS, SI_USER, &info);
	CHECK_EQ(getppid(), info.si_pid);
	/* Of these only the first is queued. */
	take(SIGUSR1, SI_QUEUE, &info);
	CHECK_EQ(7, info.si_value.sival_int);
	take(SIGALRM, SI_KERNEL, &info);
	/* It has taken the stop back. */
	take(SIGCONT, SI_USER, &info);
	check_none_left();
}

static void block_all(void)
{
	sigset_t set;

	sigfillset(&set);
	CHECK_EQ(0, sigprocmask(SIG_BLOCK, &set, NULL));
}

TASK(exec_and_take)
{
	struct itimerval soon = { .it_value = { 0, 100000 } };

	block_all();
	pt_say("r");
	CHECK_EQ('x', pt_hear(atoi(pt_args[1])));
	CHECK_EQ(0, setitimer(ITIMER_REAL, &soon, NULL));
	pt_exec_as("check_signals", NULL);
}

/* signals arrive with all that belongs to them, and each of them */
MODULE_TEST(signals, "no window")
{
	union sigval value;
	struct job job;

	PT_NEED_ROOT();
	JOB_START(&job, "exec_and_take");
	ASSERT_TRUE(job_exec(&job));
	for (value.sival_int = 0; value.sival_int < 3; value.sival_int++) {
		EXPECT_EQ(0, sigqueue(job.pid, QUEUED, value));
	}
	EXPECT_EQ(0, kill(job.pid, KILLED));
	EXPECT_EQ(0, syscall(SYS_tgkill, job.pid, job.pid, THREADS));
	for (value.sival_int = 7; value.sival_int < 9; value.sival_int++) {
		EXPECT_EQ(0, sigqueue(job.pid, SIGUSR1, value));
	}
	EXPECT_EQ(0, kill(job.pid, SIGTSTP));
	EXPECT_EQ(0, kill(job.pid, SIGCONT));
	/* Its timer interrupts it in the window. */
	usleep(300000);
	EXPECT_TRUE(window_close(&job.window));
	EXPECT_EQ(0, pt_wait(job.pid));
	job_end(&job);
}

TASK(check_without_room)
{
	siginfo_t info;

	take(SIGUSR1, SI_USER, &info);
	CHECK_EQ(getppid(), info.si_pid);
	take(KILLED, SI_USER, &info);
	check_none_left();
}

TASK(exec_without_room)
{
	struct rlimit none = { 0, 0 };

	block_all();
	CHECK_EQ(0, setrlimit(RLIMIT_SIGPENDING, &none));
	pt_say("r");
	CHECK_EQ('x', pt_hear(atoi(pt_args[1])));
	pt_exec_as("check_without_room", NULL);
}

/* who queues one more than may be queued is told, as always */
MODULE_TEST(signals_without_room, "no window")
{
	union sigval value = { .sival_int = 1 };
	struct job job;

	PT_NEED_ROOT();
	JOB_START(&job, "exec_without_room");
	ASSERT_TRUE(job_exec(&job));
	EXPECT_EQ(-1, sigqueue(job.pid, QUEUED, value));
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_EQ(0, kill(job.pid, SIGUSR1));
	EXPECT_EQ(0, kill(job.pid, KILLED));
	EXPECT_TRUE(window_close(&job.window));
	EXPECT_EQ(0, pt_wait(job.pid));
	job_end(&job);
}

/* ---- control groups ---- */

/* Any directory will do: only the test itself sees what is mounted there. */
#define GROUP	"/mnt/window"

/* A hierarchy and a group in it; 0 or -errno */
static int make_group(const char *type, const char *options)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/mnt", type, 0, options))
		return -errno;
	return mkdir(GROUP, 0755) && errno != EEXIST ? -errno : 0;
}

/* Has the file got that line, in the end? */
static bool group_says(const char *file, const char *line)
{
	int64_t end = now_ns() + 20 * CLOCK_NS_PER_S;

	while (pt_file_kib(file, line) < 0)
		if (now_ns() > end)
			return false;
		else
			usleep(10000);
	return true;
}

/* It makes no system call in which it could notice. */
TASK(spin)
{
	for (;;)
		;
}

TASK(exec_and_spin)
{
	pt_say("r");
	CHECK_EQ('x', pt_hear(atoi(pt_args[1])));
	pt_exec_as("spin", NULL);
}

/* Writes to the file in the window. */
static void write_in_window(struct __test_metadata *_metadata, struct job *job, const char *file,
			    const char *text)
{
	char pid[16];

	JOB_START(job, "exec_and_spin");
	snprintf(pid, sizeof(pid), "%d", job->pid);
	ASSERT_EQ(0, pt_write_file(GROUP "/cgroup.procs", pid));
	ASSERT_TRUE(job_exec(job));
	EXPECT_EQ(0, pt_write_file(file, text));
	EXPECT_TRUE(window_close(&job->window));
}

static void end_in_group(struct job *job)
{
	if (!job->killed)
		pt_kill(job->pid);
	job_end(job);
	rmdir(GROUP);
}

/* it freezes, if the freezer is that of cgroup v1 */
MODULE_TEST(old_freezer, "no window")
{
	struct job job = { .pid = 0 };

	PT_NEED_ROOT();
	if (make_group("cgroup", "freezer"))
		SKIP(return, "no freezer of cgroup v1");
	write_in_window(_metadata, &job, GROUP "/freezer.state", "FROZEN");
	if (!job.pid)
		return;
	EXPECT_TRUE(group_says(GROUP "/freezer.state", "FROZEN"));
	EXPECT_EQ(0, pt_write_file(GROUP "/freezer.state", "THAWED"));
	end_in_group(&job);
}

/* and if it is that of cgroup v2 */
MODULE_TEST(freezer, "no window")
{
	struct job job = { .pid = 0 };

	PT_NEED_ROOT();
	if (make_group("cgroup2", NULL))
		SKIP(return, "no cgroup2");
	write_in_window(_metadata, &job, GROUP "/cgroup.freeze", "1");
	if (!job.pid)
		return;
	EXPECT_TRUE(group_says(GROUP "/cgroup.events", "frozen 1"));
	EXPECT_EQ(0, pt_write_file(GROUP "/cgroup.freeze", "0"));
	end_in_group(&job);
}

/* cgroup.kill kills it */
MODULE_TEST(group_kill, "no window")
{
	struct job job = { .pid = 0 };

	PT_NEED_ROOT();
	if (make_group("cgroup2", NULL))
		SKIP(return, "no cgroup2");
	if (access(GROUP "/cgroup.kill", F_OK))
		SKIP(return, "no cgroup.kill in this kernel");
	write_in_window(_metadata, &job, GROUP "/cgroup.kill", "1");
	if (!job.pid)
		return;
	EXPECT_EQ(256 + SIGKILL, pt_wait(job.pid));
	job.killed = true;
	end_in_group(&job);
}

/* ---- readers of /proc ---- */

TASK(say_and_pause)
{
	pt_say("x");
	pause();
}

TASK(exec_and_say)
{
	pt_say("r");
	CHECK_EQ('x', pt_hear(atoi(pt_args[1])));
	pt_exec_as("say_and_pause", pt_args[0]);
}

/* Lets the reader go on when the task's exec is over. */
static pid_t let_reader_go(struct window *reader, int fd)
{
	pid_t pid = fork();

	if (!pid)
		_exit(pt_hear(fd) != 'x' || !window_close(reader));
	return pid;
}

/*
 * one that has found the task a kernel thread, and reads the name of such a thread when it is none
 * any more, reads the task's: the kernel does not warn
 */
MODULE_TEST(reader_of_the_name, "no window")
{
	char path[32], name[32] = "", want[32] = "";
	struct window reader;
	struct job job;
	pid_t helper;

	PT_NEED_ROOT();
	if (pt_kernel_before(5, 17))
		SKIP(return, "kernel threads have no names of their own");
	JOB_START(&job, "exec_and_say");
	ASSERT_EQ(0, window_make_after(&reader, "get_kthread_comm", WINDOW_PID, &job.window));
	snprintf(path, sizeof(path), "/proc/%d/comm", job.pid);
	ASSERT_TRUE(job_exec(&job));
	helper = let_reader_go(&reader, job.out[0]);
	window_hold(&reader, getpid());
	EXPECT_EQ(0, pt_read_file(path, name, sizeof(name)));
	EXPECT_EQ(0, pt_wait(helper));
	EXPECT_EQ(1, reader.control->open);
	EXPECT_EQ(0, pt_read_file(path, want, sizeof(want)));
	EXPECT_STREQ(want, name);
	pt_kill(job.pid);
	window_break(&reader);
	job_end(&job);
}

PT_MAIN()
