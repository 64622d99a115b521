// SPDX-License-Identifier: GPL-2.0-only
/*
 * The process of an exec: an armed one whose exec fails or that has threads, and a
 * task that execs out of its space or fails to.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "program.h"

struct armed {
	struct pt_raw *raw;
	const char *path;
};

/* An armed process whose exec has failed can still cancel. */
static int exec_fails_then_cancel(void *arg)
{
	struct armed *a = arg;
	char *argv[] = { (char *)a->path, NULL };
	int err = pt_raw_arm(a->raw->fd, 0, 1, 0);

	if (err)
		return err;
	execv(a->path, argv);
	err = errno;
	return pt_raw_arm(a->raw->fd, 0, 0, PVAS_SPAWN_CANCEL) ? -EIO : -err;
}

/* a non-PIE program: ENOEXEC, not run outside of the space either; still armed */
MODULE_TEST(et_exec, "the ABI of /dev/pvas")
{
	struct pt_raw raw;
	struct armed a = { &raw, pt_beside("nopie") };

	ASSERT_EQ(0, access(a.path, X_OK));
	ASSERT_EQ(0, pt_raw_make(&raw));
	EXPECT_EQ(-ENOEXEC, pt_in_child(exec_fails_then_cancel, &a));
	a.path = "/nonexistent";
	EXPECT_EQ(-ENOENT, pt_in_child(exec_fails_then_cancel, &a));
	EXPECT_EQ(0, pt_raw_count(raw.fd));
	pt_raw_close(&raw);
}

static int armed_only(void *arg)
{
	const struct pt_raw *raw = arg;

	return pt_raw_arm(raw->fd, 0, 1, 0);
}

/* armed, then gone without exec: the index is free when wait() returns */
MODULE_TEST(armed_exit, "the ABI of /dev/pvas")
{
	struct pt_raw raw;
	int i;

	ASSERT_EQ(0, pt_raw_make(&raw));
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(0, pt_in_child(armed_only, &raw)) TH_LOG("round %d", i);
		ASSERT_EQ(0, pt_raw_count(raw.fd)) TH_LOG("round %d", i);
	}
	pt_raw_close(&raw);
}

static void *exec_thread(void *arg)
{
	execl(pt_self(), pt_self(), (char *)NULL);
	_exit(99);
	return arg;
}

/* an armed process with threads: they go, the caller enters, leader or not */
MODULE_TEST(threaded_exec, "the ABI of /dev/pvas")
{
	struct pt_raw raw;
	pthread_t t;
	pid_t pid;
	int by_leader, i;

	ASSERT_EQ(0, pt_raw_make(&raw));
	pt_raw_forget(&raw, 1);
	for (by_leader = 0; by_leader < 2; by_leader++) {
		pid = fork();
		if (!pid) {
			for (i = 0; i < 8; i++)
				if (pthread_create(&t, NULL, pt_idle_thread, NULL))
					_exit(98);
			if (pt_raw_arm(raw.fd, 0, 1, 0))
				_exit(97);
			if (by_leader)
				exec_thread(NULL);
			pthread_create(&t, NULL, exec_thread, NULL);
			pause();
		}
		EXPECT_EQ(pid, pt_raw_call(&raw, 1, SYS_getpid));
		EXPECT_EQ(pid, pt_raw_call(&raw, 1, SYS_gettid));
		pt_kill(pid);
		pt_raw_forget(&raw, 1);
		EXPECT_EQ(0, pt_raw_count(raw.fd));
	}
	pt_raw_close(&raw);
}

/* Outside of the space, as a plain program. */
TASK(say_hello)
{
	CHECK_EQ(-ESRCH, pvas_task_get_index());
	CHECK_EQ(1, write(atoi(pt_args[0]), "h", 1));
	pause();
}

TASK(exec_out)
{
	char *argv[] = { (char *)pt_self(), (char *)"--task", (char *)"say_hello", pt_args[0],
			 NULL };

	setenv("PVAS_EXEC", "leave", 1);
	execv(pt_self(), argv);
	_exit(99);
}

/* an exec out of the space: its partition is free before the new program runs */
PVAS_TEST(exec_out_of_the_space)
{
	struct pvas_space *space = PT_SPACE();
	char fd[16], c, exe[4096];
	char *argv[] = { (char *)pt_self(), (char *)"--task", (char *)"exec_out", fd, NULL };
	int fds[2], round;
	pid_t pid;

	ASSERT_EQ(0, pipe(fds));
	snprintf(fd, sizeof(fd), "%d", fds[1]);
	for (round = 0; round < 5; round++) {
		ASSERT_EQ(3, pvas_task_spawn(space, 3, pt_self(), argv, environ, NULL, &pid));
		ASSERT_EQ(1, read(fds[0], &c, 1));
		EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
		EXPECT_EQ(0, pt_exe_of(pid, exe, sizeof(exe)));
		EXPECT_STREQ(pt_self(), exe);
		/* It is no task any more: the space's end is not its end. */
		if (round == 4) {
			pvas_space_destroy(space);
			EXPECT_EQ(0, kill(pid, 0));
		}
		kill(pid, SIGKILL);
		EXPECT_EQ(256 + SIGKILL, pt_wait(pid));
	}
}

TASK(exec_fails)
{
	char *argv[] = { (char *)"x", NULL };

	CHECK_ERR(ENOENT, execv("/nonexistent", argv));
	CHECK_ERR(EACCES, execv("/tmp", argv));
	CHECK_ERR(ENOEXEC, execv(pt_args[0], argv));
	/* All is as it was. */
	CHECK(pvas_task_get_index() > 0);
	CHECK(pt_inside(malloc(1 << 22), 1 << 22));
}

/* a failed exec of a task leaves it the task it was */
PVAS_TEST(exec_of_a_task_fails)
{
	struct pvas_space *space = PT_SPACE();
	char *argv[] = { (char *)pt_self(), (char *)"--task", (char *)"exec_fails", NULL, NULL };
	pid_t pid;

	argv[3] = strdup(pt_put_file("junk", "\1\2\3\4", 4, 0755));
	ASSERT_LT(0, pvas_task_spawn(space, PVAS_ANY, pt_self(), argv, environ, NULL, &pid));
	EXPECT_EQ(0, pt_wait(pid));
	pvas_space_destroy(space);
}

PT_MAIN()
