// SPDX-License-Identifier: GPL-2.0-only
/* A task's heap: brk() inside its partition. Each test's body runs in a task. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "maps.h"
#include "window.h"

TASK_TEST(brk_moves)
{
	uintptr_t start = raw_brk(0), page = (start + 2 * PAGE) & ~(PAGE - 1);

	CHECK(pt_inside((void *)start, 1));
	CHECK_EQ(page + 100 * PAGE, raw_brk(page + 100 * PAGE));
	memset((void *)page, 7, 100 * PAGE);
	CHECK_EQ(page, raw_brk(page));
	CHECK_EQ(page + PAGE, raw_brk(page + PAGE));
	/* Memory that brk() gave back is zero when it is taken again. */
	CHECK_EQ(0, *(char *)page);
	CHECK_EQ(page + 17, raw_brk(page + 17));
	CHECK_EQ(page + 17, raw_brk(0));
}

/* outside, huge, below the start, around the end: stays where it is */
TASK_TEST(brk_refused)
{
	uintptr_t now = raw_brk(0);
	uintptr_t bad[] = { 1, PAGE, pt_base(), pt_base() - 1, pt_base() + pt_size(),
			    pt_base() + pt_size() - PAGE, now + pt_size(), -1UL, -PAGE, 1UL << 47,
			    1UL << 63, (uintptr_t)&now };
	size_t i;

	for (i = 0; i < PT_ARRAY_SIZE(bad); i++)
		CHECK_EQ(now, raw_brk(bad[i]));
	CHECK_EQ(now, raw_brk(0));
}

/* the heap ends where a mapping is */
TASK_TEST(brk_meets_a_mapping)
{
	uintptr_t now = raw_brk(0);
	char *wall = (char *)((now + 64 * PAGE) & ~(PAGE - 1));

	CHECK(mmap(wall, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) == wall);
	wall[0] = 42;
	CHECK_EQ(now, raw_brk((uintptr_t)wall + PAGE));
	CHECK_EQ(now, raw_brk((uintptr_t)wall + 1));
	CHECK_EQ((uintptr_t)wall, raw_brk((uintptr_t)wall));
	CHECK_EQ(42, wall[0]);
	CHECK_EQ(now, raw_brk(now));
}

/* RLIMIT_DATA holds for the heap */
TASK_TEST(brk_and_rlimit_data)
{
	struct rlimit limit = { 16UL << 20, 16UL << 20 };
	uintptr_t now = raw_brk(0);

	CHECK_EQ(0, setrlimit(RLIMIT_DATA, &limit));
	CHECK_EQ(now, raw_brk(now + (17UL << 20)));
}

static volatile int stop;

static void *brk_thread(void *arg)
{
	uintptr_t start = (uintptr_t)arg, at;
	unsigned int seed = (unsigned int)(uintptr_t)&seed;

	while (!stop) {
		at = raw_brk(start + rand_r(&seed) % (1 << 20));
		if (at < start || at > start + (1 << 20))
			return (void *)at;
	}
	return NULL;
}

/* two threads at it: the break is always one that somebody asked for */
TASK_TEST(brk_race)
{
	uintptr_t start;
	pthread_t t[2];
	void *ret;
	int i;

	for (i = 0; i < 2; i++)
		free(malloc(100));
	start = raw_brk(0);
	for (i = 0; i < 2; i++)
		CHECK_EQ(0, pthread_create(&t[i], NULL, brk_thread, (void *)start));
	usleep(500000);
	stop = 1;
	for (i = 0; i < 2; i++) {
		CHECK_EQ(0, pthread_join(t[i], &ret));
		CHECK(ret == NULL);
	}
	CHECK_EQ(start, raw_brk(start));
}

static int remove_module(void)
{
	return syscall(SYS_delete_module, "pvas", O_NONBLOCK) ? errno : 0;
}

/* a call that is in the module's own brk() keeps the module, and nothing else need do so */
MODULE_TEST(brk_keeps_the_module, "there is no module")
{
	static struct window window;
	struct pt_raw raw;
	pid_t pid;
	long now;
	int err;

	PT_NEED_ROOT();
	err = window_make_at(&window, "vm_mmap", WINDOW_PID);
	if (window_is_missing(err))
		SKIP(return, "no BPF program can be attached: %s", strerror(-err));
	ASSERT_EQ(0, err);
	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.create.flags = 0;
	ASSERT_EQ(0, pt_raw_create(&raw));
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	now = pt_raw_call(&raw, 1, SYS_brk, 0);
	ASSERT_LT(0, now);
	close(raw.fd);
	window_hold(&window, pid);
	pt_raw_ask(&raw, 1, SYS_brk, (long[6]){ now + (1 << 20) });
	ASSERT_TRUE(window_is_open(&window));
	EXPECT_EQ(EWOULDBLOCK, remove_module());
	kill(pid, SIGKILL);
	EXPECT_EQ(EWOULDBLOCK, remove_module());
	EXPECT_TRUE(window_close(&window));
	EXPECT_EQ(256 + SIGKILL, pt_wait(pid));
	raw.fd = pt_open();
	EXPECT_EQ(0, pt_raw_spaces_left(raw.fd));
	pt_raw_close(&raw);
	window_break(&window);
}

PT_MAIN()
