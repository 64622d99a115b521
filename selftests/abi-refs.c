// SPDX-License-Identifier: GPL-2.0-only
/* PVAS_IOC_REFS: references to a task's pages; without libpvas. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define PAGE	4096L
#define INDEX	7

/** struct refs - a task with three pages of its own */
struct refs {
	struct pt_raw raw;
	pid_t pid;
	long fd;
	long at;
};

static long call(struct refs *r, long nr, long a, long b, long c, long d)
{
	return pt_raw_call(&r->raw, INDEX, nr, a, b, c, d, -1, 0);
}

/* On one processor, which puts new pages on its lists then */
static long begin(struct refs *r)
{
	cpu_set_t one;
	long n;

	if (pt_raw_make(&r->raw))
		return -1;
	r->fd = pt_raw_spawn_open(&r->raw, INDEX, &r->pid);
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (r->fd < 0 || sched_setaffinity(r->pid, sizeof(one), &one))
		return -2;
	r->at = call(r, SYS_mmap, 0, 4 * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS);
	n = call(r, SYS_getrandom, r->at, 3 * PAGE, 0, 0);
	return n == 3 * PAGE ? call(r, SYS_madvise, r->at + 3 * PAGE, PAGE, MADV_FREE, 0) : n;
}

static void end(struct refs *r)
{
	pt_kill(r->pid);
	pt_raw_close(&r->raw);
}

/* Bytes, or -errno */
static long clear_of(struct refs *r, long at, long len)
{
	struct pvas_refs *arg = (struct pvas_refs *)r->raw.data;
	long err;

	*arg = (struct pvas_refs){ .size = sizeof(*arg), .addr = at, .len = len };
	err = call(r, SYS_ioctl, r->fd, PVAS_IOC_REFS, PT_DATA_AT, 0);
	return err ? err : (long)arg->clear;
}

/* A page in a pipe has a reference, until it is read from there */
PVAS_TEST(in_pipe)
{
	struct iovec *page;
	struct refs r;
	int *ends;

	ASSERT_EQ(0, begin(&r));
	EXPECT_EQ(3 * PAGE, clear_of(&r, r.at, 3 * PAGE));
	ASSERT_EQ(0, call(&r, SYS_pipe2, PT_DATA_AT, 0, 0, 0));
	ends = (int[]){ ((int *)r.raw.data)[0], ((int *)r.raw.data)[1] };
	page = (struct iovec *)r.raw.data;
	*page = (struct iovec){ (void *)(r.at + PAGE), PAGE };
	ASSERT_EQ(PAGE, call(&r, SYS_vmsplice, ends[1], PT_DATA_AT, 1, 0));
	EXPECT_EQ(PAGE, clear_of(&r, r.at, 3 * PAGE));
	EXPECT_EQ(0, clear_of(&r, r.at + PAGE, 2 * PAGE));
	EXPECT_EQ(PAGE, clear_of(&r, r.at + 2 * PAGE, PAGE));
	ASSERT_EQ(PAGE, call(&r, SYS_read, ends[0], r.at + 2 * PAGE, PAGE, 0));
	EXPECT_EQ(3 * PAGE, clear_of(&r, r.at, 3 * PAGE));
	end(&r);
}

/* A page that is not there is not clear; one that may not be read can be */
PVAS_TEST(absent)
{
	struct refs r;

	ASSERT_EQ(0, begin(&r));
	ASSERT_EQ(0, call(&r, SYS_munmap, r.at + 2 * PAGE, PAGE, 0, 0));
	EXPECT_EQ(2 * PAGE, clear_of(&r, r.at, 3 * PAGE));
	ASSERT_EQ(0, call(&r, SYS_mprotect, r.at + PAGE, PAGE, PROT_NONE, 0));
	/* The first look at such a page can bring it to another list. */
	clear_of(&r, r.at + PAGE, PAGE);
	ASSERT_EQ(0, call(&r, SYS_madvise, r.at + 3 * PAGE, PAGE, MADV_FREE, 0));
	EXPECT_EQ(PAGE, clear_of(&r, r.at + PAGE, PAGE));
	end(&r);
}

/* Bad ranges, and memory that isn't the caller's */
PVAS_TEST(refused)
{
	struct pvas_refs arg = {
		.size = sizeof(arg), .addr = (uintptr_t)&arg & -PAGE, .len = PAGE,
	};
	struct refs r;
	int fd = pt_open();
	long base;

	EXPECT_EQ(-EPERM, pt_ioctl(fd, PVAS_IOC_REFS, &arg));
	close(fd);
	ASSERT_EQ(0, begin(&r));
	base = (long)INDEX << PVAS_SHIFT_DEFAULT;
	EXPECT_EQ(-EINVAL, clear_of(&r, r.at, 0));
	EXPECT_EQ(-EINVAL, clear_of(&r, r.at + 1, PAGE));
	EXPECT_EQ(-EINVAL, clear_of(&r, r.at, PAGE + 1));
	EXPECT_EQ(-EPERM, clear_of(&r, base - PAGE, PAGE));
	EXPECT_EQ(-EPERM, clear_of(&r, base - PAGE, 2 * PAGE));
	EXPECT_EQ(-EPERM, clear_of(&r, PT_DATA_AT, PAGE));
	EXPECT_EQ(-EPERM, clear_of(&r, r.at, (1L << PVAS_SHIFT_DEFAULT)));
	EXPECT_EQ(-EPERM, clear_of(&r, r.at, -PAGE));
	end(&r);
}

PT_MAIN()
