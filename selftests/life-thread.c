// SPDX-License-Identifier: GPL-2.0-only
/* Threads of a task: who ends first, who execs, and all of them killed. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

static void *count_thread(void *arg)
{
	__atomic_add_fetch((int *)arg, 1, __ATOMIC_SEQ_CST);
	CHECK(pt_inside(&arg, sizeof(arg)));
	return malloc(100);
}

TASK_TEST(threads_64)
{
	pthread_t t[64];
	int n = 0, i;
	void *p;

	for (i = 0; i < 64; i++)
		CHECK_EQ(0, pthread_create(&t[i], NULL, count_thread, &n));
	for (i = 0; i < 64; i++) {
		CHECK_EQ(0, pthread_join(t[i], &p));
		CHECK(pt_inside(p, 100));
	}
	CHECK_EQ(64, n);
}

static void *last_thread(void *arg)
{
	char *p;

	usleep(200000);
	p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!pt_inside(p, 1 << 20) || munmap((void *)(pt_base() - 4096), 4096) != -1)
		_exit(1);
	memset(p, 1, 1 << 20);
	_exit(21);
	return arg;
}

/* the leader ends first: the task lives on with its thread, bounded as ever */
TASK(leader_goes_first)
{
	pthread_t t;

	CHECK_EQ(0, pthread_create(&t, NULL, last_thread, NULL));
	pthread_exit(NULL);
}

PVAS_TEST(leader_exits_first)
{
	EXPECT_EQ(21, pt_run_task("leader_goes_first"));
}

static void *exec_from_thread(void *arg)
{
	execl("/bin/sh", "sh", "-c", "exit 17", (char *)NULL);
	_exit(99);
	return arg;
}

TASK(thread_execs)
{
	pthread_t t;
	int i;

	for (i = 0; i < 4; i++)
		CHECK_EQ(0, pthread_create(&t, NULL, pt_idle_thread, NULL));
	CHECK_EQ(0, pthread_create(&t, NULL, exec_from_thread, NULL));
	pause();
}

/* a thread, not the leader, execs out of the space */
PVAS_TEST(exec_by_a_thread)
{
	struct pvas_space *space = PT_SPACE();
	pid_t pid;
	int i;

	for (i = 0; i < 5; i++) {
		ASSERT_EQ(1, pt_start_task_fds(space, 1, "thread_execs", 0, 0, &pid));
		EXPECT_EQ(17, pt_wait(pid));
		EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	}
	pvas_space_destroy(space);
}

/* a task killed with all its threads in the middle of things */
static void *busy_thread(void *arg)
{
	for (;;) {
		void *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		memset(p, 1, 65536);
		munmap(p, 65536);
	}
	return arg;
}

TASK(busy_threads)
{
	pthread_t t;
	int i;

	for (i = 0; i < 8; i++)
		CHECK_EQ(0, pthread_create(&t, NULL, busy_thread, NULL));
	pt_say("r");
	pause();
}

PVAS_TEST(kill_busy_threads)
{
	struct pvas_space *space = PT_SPACE();
	int fds[2], i;
	pid_t pid;

	ASSERT_EQ(0, pipe(fds));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(1, pt_start_task_fds(space, 1, "busy_threads", fds[1], 0, &pid));
		ASSERT_EQ('r', pt_hear(fds[0]));
		usleep(i * 1000);
		pt_kill(pid);
		ASSERT_EQ(0, pvas_task_list(space, NULL, 0));
	}
	pvas_space_destroy(space);
}

PT_MAIN()
