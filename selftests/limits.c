// SPDX-License-Identifier: GPL-2.0-only
/*
 * Resource limits and their exhaustion in tasks: what one task can use up of
 * what all share, and that it comes back with the task's end.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "maps.h"

TASK(nothing)
{
	CHECK(pt_inside(calloc(1, 1 << 20), 1 << 20));
}

/* ---- address space: the limit is a process's, what is counted is the space's ---- */

TASK_TEST(rlimit_as)
{
	struct rlimit limit = { 64UL << 20, RLIM_INFINITY };
	void *p;

	CHECK_EQ(0, setrlimit(RLIMIT_AS, &limit));
	CHECK_ERR(ENOMEM, (long)mmap(NULL, 1UL << 30, RW, ANON, -1, 0));
	limit.rlim_cur = RLIM_INFINITY;
	CHECK_EQ(0, setrlimit(RLIMIT_AS, &limit));
	p = mmap(NULL, 1UL << 30, RW, ANON, -1, 0);
	CHECK(pt_inside(p, 1UL << 30));
}

static int small_as(void *arg)
{
	struct rlimit limit = { 1UL << 20, RLIM_INFINITY };

	(void)arg;
	return setrlimit(RLIMIT_AS, &limit) ? -errno : 0;
}

/* Too little to start in: an error or a dead task, and the partition is free again. */
PVAS_TEST(start_under_rlimit_as)
{
	struct pvas_spawn_attr attr = { .size = sizeof(attr), .setup = small_as };
	struct pvas_space *space = PT_SPACE();
	pid_t pid;
	int i, ret;

	for (i = 0; i < 5; i++) {
		ret = pvas_task_spawn(space, 1, pt_self(), pt_task_argv("nothing"), environ, &attr,
				      &pid);
		if (ret > 0)
			EXPECT_NE(0, pt_wait(pid));
		EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	}
	pid = pt_start_task(space, 1, "nothing");
	EXPECT_LT(0, pid);
	EXPECT_EQ(0, pt_wait(pid));
	pvas_space_destroy(space);
}

/* ---- as many mappings as an mm may have ---- */

TASK(eat_mappings)
{
	unsigned long n = 0;
	int failed = 0;

	/* Neighbours differ in protection, so that none is merged. */
	while (n < 200000 && failed < 10) {
		void *p = mmap(NULL, PAGE, n & 1 ? PROT_READ : PROT_NONE, ANON, -1, 0);

		failed += p == MAP_FAILED;
		n++;
	}
	CHECK_EQ(10, failed);
	pt_say("f");
	pause();
}

PVAS_TEST(map_count)
{
	struct pvas_space *space = PT_SPACE();
	char count[32] = "", c = 0;
	int fds[2], ret;
	pid_t pid, peer;

	PT_NEED_ROOT();
	ASSERT_EQ(0, pt_read_file("/proc/sys/vm/max_map_count", count, sizeof(count)));
	ASSERT_EQ(0, pt_write_file("/proc/sys/vm/max_map_count", "2000"));
	ASSERT_EQ(0, pipe(fds));
	pid = pt_start_task_fd(space, 1, "eat_mappings", fds[1]);
	ASSERT_LT(0, pid);
	ASSERT_EQ(1, read(fds[0], &c, 1));
	/* There is none for a peer: it is refused or dies, and takes nothing with it. */
	ret = pvas_task_spawn(space, 2, pt_self(), pt_task_argv("nothing"), environ, NULL, &peer);
	if (ret > 0)
		EXPECT_NE(0, pt_wait(peer));
	EXPECT_EQ(0, waitpid(pid, NULL, WNOHANG));
	pt_kill(pid);
	EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	/* And with the glutton's end all are back. */
	peer = pt_start_task(space, 2, "nothing");
	EXPECT_LT(0, peer);
	EXPECT_EQ(0, pt_wait(peer));
	EXPECT_EQ(0, pt_write_file("/proc/sys/vm/max_map_count", count));
	pvas_space_destroy(space);
}

/* ---- processes ---- */

/* Children that fork as long as they may, each in a copy of the partition. */
static void bomb(void)
{
	for (;;) {
		pid_t pid = fork();

		if (pid < 0)
			break;
	}
	pause();
	_exit(0);
}

TASK(fork_bomb)
{
	struct rlimit limit = { 60, 60 };
	pid_t pid;

	CHECK_EQ(0, setrlimit(RLIMIT_NPROC, &limit));
	CHECK_EQ(0, setpgid(0, 0));
	pid = fork();
	if (!pid) {
		/* An ordinary user: root has no limit. */
		if (!geteuid() && (syscall(SYS_setresgid, 65534, 65534, 65534) ||
				   syscall(SYS_setresuid, 65534, 65534, 65534)))
			_exit(1);
		if (!fork())
			bomb();
		bomb();
	}
	CHECK(pid > 0);
	usleep(300000);
	/* In the middle of it there is still a partition to map in. */
	CHECK(pt_inside(mmap(NULL, PAGE, RW, ANON, -1, 0), PAGE));
	CHECK_EQ(0, pt_failed);
	kill(0, SIGKILL);
}

PVAS_TEST(fork_bomb)
{
	struct pvas_space *space = PT_SPACE();
	pid_t pid = pt_start_task(space, 1, "fork_bomb");

	ASSERT_LT(0, pid);
	EXPECT_EQ(256 + SIGKILL, pt_wait(pid));
	EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	pid = pt_start_task(space, 1, "nothing");
	EXPECT_LT(0, pid);
	EXPECT_EQ(0, pt_wait(pid));
	pvas_space_destroy(space);
}

/* Guests instead of copies: each vfork child stands in the partition. */
TASK_TEST(vfork_bomb)
{
	volatile int i;
	int st;

	for (i = 0; i < 500; i++) {
		pid_t pid = vfork();

		if (!pid)
			_exit(i & 127);
		CHECK_EQ(pid, waitpid(pid, &st, 0));
		CHECK_EQ((i & 127) << 8, st);
	}
}

/* ---- stack ---- */

static int deep(volatile char *above)
{
	volatile char here[4096];

	here[0] = above[0];
	/* Never the end; but the compiler may not know that. */
	return here[0] ? here[0] + deep(here) : 0;
}

TASK(overflow_the_stack)
{
	volatile char start = 1;

	deep(&start);
}

PVAS_TEST(stack_overflow)
{
	struct pvas_space *space = PT_SPACE();
	pid_t peer, pid;
	int fds[2], i;
	char c;

	ASSERT_EQ(0, pipe(fds));
	peer = pt_start_task_fd(space, 2, "ready_and_pause", fds[1]);
	ASSERT_LT(0, peer);
	ASSERT_EQ(1, read(fds[0], &c, 1));
	for (i = 1; i <= 3; i += 2) {
		pid = pt_start_task(space, i, "overflow_the_stack");
		ASSERT_LT(0, pid);
		EXPECT_EQ(256 + SIGSEGV, pt_wait(pid));
	}
	EXPECT_EQ(0, waitpid(peer, NULL, WNOHANG));
	pt_kill(peer);
	pvas_space_destroy(space);
}

PT_MAIN()
