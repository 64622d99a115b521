// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bounds and those next to them: stacks that overflow, peers that map at the same
 * time, processes outside of any space.
 */
#define _GNU_SOURCE
#include <linux/aio_abi.h>
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

static int __attribute__((noinline)) eat(int depth)
{
	volatile char page[4096];

	page[0] = depth;
	return depth ? eat(depth - 1) + page[0] : 0;
}

/* it grows to its limit (8 MiB), and a fault beyond it is the task's own */
TASK(grow_stack)
{
	struct rlimit limit;
	char here;

	CHECK_EQ(0, getrlimit(RLIMIT_STACK, &limit));
	CHECK(pt_inside(&here, 1));
	if (limit.rlim_cur == RLIM_INFINITY)
		return;
	eat((limit.rlim_cur >> 12) - 64);
}

TASK(overflow_stack)
{
	eat(1 << 26);
}

TASK(bystander)
{
	volatile char *p = anon(1 << 20);
	int i;

	for (i = 0; i < 1 << 20; i++)
		p[i] = i * 3;
	pt_say("r");
	CHECK_EQ(1, read(atoi(pt_args[1]), (char *)&i, 1));
	for (i = 0; i < 1 << 20; i++)
		if (p[i] != (char)(i * 3))
			break;
	CHECK_EQ(1 << 20, i);
	p = malloc(1 << 16);
	CHECK(pt_inside((void *)p, 1 << 16));
}

static int set_core_0(void *arg)
{
	struct rlimit none = { 0, 0 };

	(void)arg;
	return setrlimit(RLIMIT_CORE, &none) ? -errno : 0;
}

PVAS_TEST(stack)
{
	static const struct { const char *name; int status; } steps[] = {
		{ "grow_stack", 0 }, { "overflow_stack", 256 + SIGSEGV }, { "grow_stack", 0 },
	};
	struct pvas_space *space = PT_SPACE();
	struct pvas_spawn_attr attr = { .size = sizeof(attr), .setup = set_core_0 };
	int up[2], down[2];
	pid_t pid, peer[2];
	size_t i;
	char c;

	ASSERT_EQ(0, pipe(up));
	ASSERT_EQ(0, pipe(down));
	ASSERT_EQ(1, pt_start_task_fds(space, 1, "bystander", up[1], down[0], &peer[0]));
	ASSERT_EQ(3, pt_start_task_fds(space, 3, "bystander", up[1], down[0], &peer[1]));
	ASSERT_EQ(1, read(up[0], &c, 1));
	ASSERT_EQ(1, read(up[0], &c, 1));
	for (i = 0; i < PT_ARRAY_SIZE(steps); i++) {
		ASSERT_EQ(2, pvas_task_spawn(space, 2, pt_self(), pt_task_argv(steps[i].name),
					     environ,
					     &attr, &pid));
		EXPECT_EQ(steps[i].status, pt_wait(pid));
	}
	ASSERT_EQ(2, write(down[1], "gg", 2));
	EXPECT_EQ(0, pt_wait(peer[0]));
	EXPECT_EQ(0, pt_wait(peer[1]));
	pvas_space_destroy(space);
}

static int stack_1g(void *arg)
{
	struct rlimit limit = { 1UL << 30, RLIM_INFINITY };

	(void)arg;
	return setrlimit(RLIMIT_STACK, &limit) ? -errno : 0;
}

TASK(stack_of_1g)
{
	eat(100 << 20 >> 12);
	CHECK(pt_inside(anon(1UL << 30), 1UL << 30));
	eat(200 << 20 >> 12);
}

static int stack_unlimited(void *arg)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	(void)arg;
	return setrlimit(RLIMIT_STACK, &limit) ? -errno : 0;
}

/* On a slow machine the memory of the one before is freed a moment after its end. */
static int start_large(struct pvas_space *space, int (*limit)(void *arg), pid_t *pid)
{
	struct pvas_spawn_attr attr = { .size = sizeof(attr), .setup = limit };
	int tries, ret = -EBUSY;

	for (tries = 0; tries < 600 && ret == -EBUSY; tries++, usleep(50000))
		ret = pvas_task_spawn(space, 1, pt_self(), pt_task_argv("stack_of_1g"), environ,
				      &attr, pid);
	return ret;
}

/* a limit of 1 GiB, and none at all */
PVAS_TEST(large_stacks)
{
	struct pvas_space *space = PT_SPACE();
	pid_t pid;

	ASSERT_EQ(1, start_large(space, stack_1g, &pid));
	EXPECT_EQ(0, pt_wait(pid));
	ASSERT_EQ(1, start_large(space, stack_unlimited, &pid));
	EXPECT_EQ(0, pt_wait(pid));
	pvas_space_destroy(space);
}

TASK(storm)
{
	unsigned int seed = pvas_task_get_index();
	int i;

	for (i = 0; i < 100; i++) {
		size_t len = PAGE << rand_r(&seed) % 8;
		char *p = anon(len);

		memset(p, pvas_task_get_index(), len);
		CHECK(p[len - 1] == (char)pvas_task_get_index());
		free(malloc(rand_r(&seed) % (1 << 18)));
		CHECK_EQ(0, munmap(p, len));
	}
}

/* 16 tasks that map and unmap: nobody hurts anybody */
PVAS_TEST(mapping_storm)
{
	struct pvas_space *space = PT_SPACE();
	pid_t pid[16];
	size_t i;

	for (i = 0; i < PT_ARRAY_SIZE(pid); i++) {
		pid[i] = pt_start_task(space, PVAS_ANY, "storm");
		ASSERT_LT(0, pid[i]);
	}
	for (i = 0; i < PT_ARRAY_SIZE(pid); i++) {
		EXPECT_EQ(0, pt_wait(pid[i]));
	}
	EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	pvas_space_destroy(space);
}

/* a process outside of any space is not bounded, though one exists */
PVAS_TEST(outsiders_are_free)
{
	struct pvas_space *space = PT_SPACE();
	uintptr_t at = 7UL << 36, now = raw_brk(0);
	aio_context_t ctx = 0;
	void *p;

	p = mmap((void *)at, 2 * PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0);
	EXPECT_EQ((void *)at, p);
	EXPECT_EQ(0, mprotect(p, PAGE, PROT_READ));
	EXPECT_EQ(0, madvise(p, PAGE, MADV_DONTNEED));
	EXPECT_EQ(0, munmap(p, 2 * PAGE));
	p = mmap(NULL, PAGE, RW, ANON | MAP_32BIT, -1, 0);
	EXPECT_NE(MAP_FAILED, p);
	EXPECT_EQ(now + PAGE, raw_brk(now + PAGE));
	EXPECT_EQ(0, syscall(SYS_io_setup, 1, &ctx));
	EXPECT_EQ(0, syscall(SYS_io_destroy, ctx));
	pvas_space_destroy(space);
}

PT_MAIN()
