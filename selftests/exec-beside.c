// SPDX-License-Identifier: GPL-2.0-only
/* The exec of a task beside what else goes on in it: children with its memory, a tracer */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define LIBRARY_SIGNAL	33	/* glibc's SIGSETXID: see libpvas/user/stay.h */

TASK(check_outside)
{
	CHECK_EQ(-ESRCH, pvas_task_get_index());
}

/* ---- children with the task's memory ---- */

static void *spawn_for_ever(void *arg)
{
	char *argv[] = { (char *)arg, NULL };
	pid_t pid;

	for (;;)
		if (!posix_spawn(&pid, argv[0], NULL, NULL, argv, environ))
			waitpid(pid, NULL, 0);
	return NULL;
}

/* They make the same calls, from the same instructions, as the task. */
TASK(exec_beside_spawns)
{
	int left = pt_args[0] ? atoi(pt_args[0]) : 20;
	pthread_t t;

	CHECK(pvas_task_get_index() > 0);
	if (!left || pt_failed)
		return;
	CHECK_EQ(0, pthread_create(&t, NULL, spawn_for_ever, "/bin/true"));
	CHECK_EQ(0, pthread_create(&t, NULL, spawn_for_ever, "/nonexistent"));
	usleep(5000);
	pt_exec_as("exec_beside_spawns", pt_number(left - 1));
}

/* while other threads start programs, by vfork children that share the memory */
PVAS_TEST(beside_spawns)
{
	EXPECT_EQ(0, pt_run_task("exec_beside_spawns"));
}

static int exec_in_child(void *arg)
{
	char *argv[] = { (char *)pt_self(), "--task", (char *)arg, NULL };

	execv(argv[0], argv);
	_exit(99);
}

static char child_stack[1 << 16] __attribute__((aligned(16)));

TASK(children_exec)
{
	int flags = SIGCHLD;
	pid_t pid = vfork();

	if (!pid)
		exec_in_child("check_outside");
	CHECK_EQ(0, pt_wait(pid));
	pid = fork();
	if (!pid)
		exec_in_child("check_outside");
	CHECK_EQ(0, pt_wait(pid));
	pid = clone(exec_in_child, child_stack + sizeof(child_stack), CLONE_VM | flags,
		    "check_outside");
	CHECK_EQ(0, pt_wait(pid));
	CHECK(pvas_task_get_index() > 0);
}

/* a child by fork(), vfork() or clone() that execs is an ordinary process */
PVAS_TEST(of_children)
{
	EXPECT_EQ(0, pt_run_task("children_exec"));
}

static int sleep_in_child(void *arg)
{
	struct timespec t = { 3, 0 };

	syscall(SYS_nanosleep, &t, NULL);
	_exit(*(volatile char *)arg);
}

TASK(exec_beside_child)
{
	CHECK(clone(sleep_in_child, child_stack + sizeof(child_stack), CLONE_VM | SIGCHLD,
		    child_stack) > 0);
	pt_exec_as("wait_for_child", NULL);
}

TASK(wait_for_child)
{
	int status = pt_wait(-1);

	CHECK_EQ(-ESRCH, pvas_task_get_index());
	/* The user backend frees it when the program has left. */
	CHECK_EQ(pt_backend() == PVAS_BACKEND_USER ? 256 + SIGSEGV : 0, status);
}

/* a program leaves while such a child still uses the memory */
PVAS_TEST(beside_child)
{
	EXPECT_EQ(0, pt_run_task("exec_beside_child"));
}

/* ---- a tracer ---- */

/* Runs @name under a tracer that keeps the library's signal from it, or not. Exit status */
static int run_traced(struct pvas_space *space, const char *name, int keeps)
{
	int go[2], status = 0, sig;
	pid_t pid;

	if (pipe(go))
		return -errno;
	pid = pt_start_task_fd(space, 1, name, go[0]);
	if (pid < 0)
		return pid;
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL))
		return -errno;
	if (write(go[1], "g", 1) != 1)
		return -errno;
	close(go[0]);
	close(go[1]);
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		sig = WSTOPSIG(status);
		if (status >> 16 || (keeps && sig == LIBRARY_SIGNAL))
			sig = 0;
		ptrace(PTRACE_CONT, pid, NULL, sig);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

TASK(hear_and_exec)
{
	CHECK_EQ('g', pt_hear(atoi(pt_args[0])));
	pt_exec_as("check_inside", pt_number(getpid()));
}

TASK(hear_and_leave)
{
	CHECK_EQ('g', pt_hear(atoi(pt_args[0])));
	pt_exec_as("check_outside_if_user", NULL);
}

/* under a tracer: if that keeps the signal from it, the program leaves */
PVAS_TEST(traced)
{
	struct pvas_space *space = PT_SPACE();

	EXPECT_EQ(0, run_traced(space, "hear_and_exec", 0));
	EXPECT_EQ(0, run_traced(space, "hear_and_leave", 1));
	pvas_space_destroy(space);
}

PT_MAIN()
