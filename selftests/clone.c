// SPDX-License-Identifier: GPL-2.0-only
/*
 * clone() in a task with every legal combination of what can be shared. A child
 * without CLONE_VM is an ordinary process, with CLONE_THREAD a thread of the
 * task, else a guest in its partition: bounded alike, and gone with its exit.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "maps.h"

#define STACK	(64UL << 10)

static const unsigned int flags_of[] = {
	CLONE_VM, CLONE_FILES, CLONE_SIGHAND, CLONE_THREAD, CLONE_FS, CLONE_VFORK,
	CLONE_SYSVSEM, CLONE_IO,
};

/* In shared memory, so that a child with its own mm can answer too. */
struct answer {
	volatile int done;	/* cleared by the kernel at a thread's end too */
	volatile int what;	/* 1 right; else what was wrong */
};

static struct answer *answer;
static unsigned int child_flags;

/* On a stack of its own, with the parent's thread pointer: system calls only. */
static long raw(long nr, long a, long b, long c, long d)
{
	register long r10 asm("r10") = d;
	register long r8 asm("r8") = -1;
	register long r9 asm("r9") = 0;
	long ret;

	asm volatile("syscall" : "=a"(ret) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
		     "r"(r9) : "rcx", "r11", "memory");
	return ret;
}

static int child_wrong(unsigned long base, unsigned long size)
{
	bool bounded = child_flags & CLONE_VM;
	long p = raw(SYS_mmap, 0, PAGE, RW, ANON);
	long foreign;

	if (p < 0)
		return 2;
	if (bounded && ((unsigned long)p < base || (unsigned long)p >= base + size))
		return 3;
	if (raw(SYS_munmap, p, PAGE, 0, 0))
		return 4;
	foreign = raw(SYS_munmap, base - PAGE, PAGE, 0, 0);
	if (foreign != (bounded ? -EPERM : 0))
		return 5;
	return 1;
}

static unsigned long own_base, own_size;

static int child(void *unused)
{
	(void)unused;
	answer->what = child_wrong(own_base, own_size);
	raw(SYS_exit, 0, 0, 0, 0);
	return 0;
}

static bool legal(unsigned int flags)
{
	if ((flags & CLONE_SIGHAND) && !(flags & CLONE_VM))
		return false;
	return !(flags & CLONE_THREAD) || (flags & CLONE_SIGHAND);
}

/* 0, or what went wrong */
static int try_flags(unsigned int flags, char *stack)
{
	int tid, st;

	answer->what = 0;
	answer->done = 1;
	child_flags = flags;
	tid = clone(child, stack + STACK, flags | CLONE_CHILD_CLEARTID | SIGCHLD, NULL, NULL, NULL,
		    (void *)&answer->done);
	if (!legal(flags))
		return tid == -1 && errno == EINVAL ? 0 : 100;
	if (tid < 0)
		return 101;
	if (flags & CLONE_THREAD) {
		while (answer->done)
			sched_yield();
	} else if (waitpid(tid, &st, __WALL) != tid || st) {
		return 102;
	}
	return answer->what == 1 ? 0 : answer->what;
}

TASK_TEST(all_combinations)
{
	unsigned int set, i, flags;
	char *stack = mmap(NULL, STACK, RW, ANON, -1, 0);
	int wrong;

	own_base = pt_base();
	own_size = pt_size();
	answer = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(answer != MAP_FAILED);
	CHECK(stack != MAP_FAILED);
	for (set = 0; set < 1U << PT_ARRAY_SIZE(flags_of); set++) {
		flags = 0;
		for (i = 0; i < PT_ARRAY_SIZE(flags_of); i++)
			flags |= set & (1U << i) ? flags_of[i] : 0;
		wrong = try_flags(flags, stack);
		if (wrong)
			pt_check_failed(__FILE__, __LINE__, "clone", flags, wrong);
	}
}

/* The child with CLONE_PARENT is the launcher's; it keeps the partition until it ends. */
TASK(leave_a_brother)
{
	char *stack = mmap(NULL, STACK, RW, ANON, -1, 0);
	int pid;

	own_base = pt_base();
	own_size = pt_size();
	child_flags = CLONE_VM;
	answer = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid = clone(child, stack + STACK, CLONE_VM | CLONE_PARENT | SIGCHLD, NULL);
	CHECK(pid > 0);
	while (!answer->what)
		sched_yield();
	CHECK_EQ(1, answer->what);
}

PVAS_TEST(clone_parent)
{
	struct pvas_space *space = PT_SPACE();
	pid_t pid;
	int st, n = 0;

	pid = pt_start_task(space, 1, "leave_a_brother");
	ASSERT_LT(0, pid);
	while ((pid = wait(&st)) > 0) {
		EXPECT_EQ(0, st);
		n++;
	}
	EXPECT_EQ(2, n);
	EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	EXPECT_EQ(0, pvas_space_destroy(space));
}

PT_MAIN()
