// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bounds: what a task maps lies in its partition. Each test's body runs in a task,
 * unless it says otherwise.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "maps.h"

/* a MAP_FIXED outside: ENOMEM */
TASK_TEST(map_fixed)
{
	void *p;

	FOR_EACH_FOREIGN(p) {
		CHECK_ERR(ENOMEM, mmap(p, PAGE, RW, ANON | MAP_FIXED, -1, 0));
		CHECK_ERR(ENOMEM, mmap(p, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0));
	}
	CHECK_ERR(ENOMEM, mmap(straddling(), 2 * PAGE, RW, ANON | MAP_FIXED, -1, 0));
	CHECK_ERR(ENOMEM, mmap((void *)(pt_base() - PAGE), 2 * PAGE, RW, ANON | MAP_FIXED, -1, 0));
	CHECK_ERR(ENOMEM, mmap((void *)pt_base(), pt_size() + PAGE, RW, ANON | MAP_FIXED, -1, 0));
	CHECK_ERR(ENOMEM, mmap((void *)pt_base(), pt_size(), RW, ANON | MAP_FIXED, -1, 0));
	/* Inside it works, of course. */
	p = anon(2 * PAGE);
	CHECK(mmap(p, PAGE, RW, ANON | MAP_FIXED, -1, 0) == p);
	CHECK_ERR(EEXIST, mmap(p, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0));
}

/* a hint outside is no reason to go there */
TASK_TEST(hints)
{
	void *p, *q;

	FOR_EACH_FOREIGN(p) {
		q = mmap(p, PAGE, RW, ANON, -1, 0);
		CHECK(q != MAP_FAILED && pt_inside(q, PAGE));
		munmap(q, PAGE);
	}
	q = mmap(straddling(), 2 * PAGE, RW, ANON, -1, 0);
	CHECK(pt_inside(q, 2 * PAGE));
	/* One inside is taken. */
	p = (void *)(pt_base() + pt_size() / 2);
	CHECK(mmap(p, PAGE, RW, ANON, -1, 0) == p);
}

/* addresses below 4 GiB, stacks that grow: ENOMEM */
TASK_TEST(map_32bit_and_growsdown)
{
	CHECK_ERR(ENOMEM, mmap(NULL, PAGE, RW, ANON | MAP_32BIT, -1, 0));
	CHECK_ERR(ENOMEM, mmap(NULL, PAGE, RW, ANON | MAP_GROWSDOWN, -1, 0));
	CHECK_ERR(ENOMEM, mmap((void *)(pt_base() + pt_size() / 2), PAGE, RW,
			       ANON | MAP_GROWSDOWN | MAP_FIXED, -1, 0));
}

/* 10000 mappings, of all kinds and sizes, all inside */
TASK_TEST(random_mappings)
{
	enum { SLOTS = 100 };
	static struct { void *p; size_t len; } m[SLOTS];
	int fd = open("/proc/self/exe", O_RDONLY), i, n = 0;
	unsigned int seed = 1;

	for (i = 0; i < 10000; i++) {
		int s = rand_r(&seed) % SLOTS;
		int file = rand_r(&seed) % 4 == 0;
		void *hint = rand_r(&seed) % 3 ? NULL :
			     (void *)(((unsigned long)rand_r(&seed) << 16) & ~4095UL);

		if (m[s].p)
			munmap(m[s].p, m[s].len);
		m[s].len = PAGE << rand_r(&seed) % 15;
		m[s].p = mmap(hint, m[s].len, PROT_READ,
			      (file ? MAP_PRIVATE : rand_r(&seed) % 2 ? ANON :
			       MAP_SHARED | MAP_ANONYMOUS) | MAP_NORESERVE, file ? fd : -1, 0);
		n += m[s].p == MAP_FAILED || !pt_inside(m[s].p, m[s].len);
	}
	CHECK_EQ(0, n);
}

/* until nothing fits: ENOMEM, and all of it inside */
TASK_TEST(no_room_left)
{
	size_t len, total = 0;
	void *p;

	for (len = pt_size(); len >= 1UL << 20; len /= 2) {
		while ((p = mmap(NULL, len, PROT_NONE, ANON | MAP_NORESERVE, -1, 0)) !=
		       MAP_FAILED) {
			CHECK(pt_inside(p, len));
			total += len;
		}
		CHECK_EQ(ENOMEM, errno);
	}
	CHECK(total > pt_size() / 2);
	CHECK(total < pt_size());
	CHECK_ERR(ENOMEM, mmap(NULL, -PAGE, PROT_NONE, ANON, -1, 0));
}

/* transparent huge pages: large areas are inside, usable, and really huge */
PVAS_TEST(thp)
{
	PT_NEED_HUGE_PAGES();
	EXPECT_EQ(0, pt_run_task("thp"));
}

TASK(thp)
{
	size_t len = 16UL << 20;
	char *p = anon(len), line[256];
	unsigned long huge = 0, kb;
	FILE *f;

	CHECK_EQ(0, madvise(p, len, MADV_HUGEPAGE));
	memset(p, 1, len);
	CHECK(pt_inside(p, len));
	f = fopen("/proc/self/smaps", "r");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "AnonHugePages: %lu", &kb) == 1)
			huge += kb;
	CHECK(huge >= 8 << 10);
}

/* Was it mapped inside, without the last page, or not at all? Unmaps it. */
static bool not_at_the_end(char *p, size_t len)
{
	bool ok = p == MAP_FAILED || (pt_inside(p, len) &&
				      (uintptr_t)p + len < pt_base() + pt_size());

	return (p == MAP_FAILED || !munmap(p, len)) && ok;
}

/* hugetlbfs pages lie inside */
TASK(hugetlb)
{
	char *p = mmap(NULL, 4UL << 20, RW, ANON | MAP_HUGETLB, -1, 0);

	CHECK(p != MAP_FAILED);
	if (p == MAP_FAILED)
		return;
	CHECK(pt_inside(p, 4UL << 20));
	memset(p, 1, 4UL << 20);
	CHECK_ERR(ENOMEM, mmap((void *)(pt_base() + pt_size()), 2UL << 20, RW,
			       ANON | MAP_HUGETLB | MAP_FIXED, -1, 0));
	CHECK_ERR(ENOMEM, mmap((void *)(pt_base() + pt_size() - (2UL << 20)), 2UL << 20, RW,
			       ANON | MAP_HUGETLB | MAP_FIXED, -1, 0));
	CHECK_ERR(ENOMEM, mmap((void *)pt_base(), 2UL << 20, RW,
			       ANON | MAP_HUGETLB | MAP_FIXED, -1, 0));
	/* The kernel rounds a hint up, which may not lead to the last page. */
	CHECK(not_at_the_end(mmap((void *)(pt_base() + pt_size() - (2UL << 20) - PAGE), 2UL << 20,
				  RW, ANON | MAP_HUGETLB, -1, 0), 2UL << 20));
	CHECK_EQ(0, munmap(p, 4UL << 20));
}

PVAS_TEST(hugetlbfs)
{
	char n[32] = "0";

	if (pt_write_file("/proc/sys/vm/nr_hugepages", "4"))
		SKIP(return, "huge pages can't be reserved");
	pt_read_file("/proc/sys/vm/nr_hugepages", n, sizeof(n));
	if (atoi(n) < 4)
		SKIP(return, "no huge pages to be had");
	EXPECT_EQ(0, pt_run_task("hugetlb"));
	/* And they are back. */
	pt_read_file("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", n, sizeof(n));
	EXPECT_EQ(4, atoi(n));
	pt_write_file("/proc/sys/vm/nr_hugepages", "0");
}

#define GIGA (1UL << 30)
#define GIGA_POOL "/sys/kernel/mm/hugepages/hugepages-1048576kB/"

/* also those that have no page table at all, and their end */
TASK(hugetlb_1g)
{
	char *p = mmap(NULL, GIGA, RW, ANON | MAP_HUGETLB | 30 << MAP_HUGE_SHIFT, -1, 0);

	CHECK(p != MAP_FAILED);
	if (p == MAP_FAILED)
		return;
	CHECK(pt_inside(p, GIGA));
	p[0] = p[GIGA - 1] = 1;
	CHECK_ERR(ENOMEM, mmap((void *)(pt_base() + pt_size()), GIGA, RW,
			       ANON | MAP_HUGETLB | 30 << MAP_HUGE_SHIFT | MAP_FIXED, -1, 0));
	CHECK_ERR(EPERM, munmap((void *)(pt_base() + pt_size()), GIGA));
}

/* To be had with the kernel's arguments hugepagesz=1G hugepages=1, else seldom. */
MODULE_TEST(hugetlbfs_1g, "as hugetlbfs")
{
	char n[32] = "0";

	if (pt_write_file(GIGA_POOL "nr_hugepages", "1"))
		SKIP(return, "no huge pages of 1 GiB");
	pt_read_file(GIGA_POOL "nr_hugepages", n, sizeof(n));
	if (atoi(n) < 1)
		SKIP(return, "no huge page of 1 GiB to be had");
	EXPECT_EQ(0, pt_run_task("hugetlb_1g"));
	pt_read_file(GIGA_POOL "free_hugepages", n, sizeof(n));
	EXPECT_EQ(1, atoi(n));
	pt_write_file(GIGA_POOL "nr_hugepages", "0");
}

/* the hooks can't be switched off while there is a space: EBUSY */
MODULE_TEST(ftrace_sysctl, "it has no hooks")
{
	struct pvas_space *space = PT_SPACE();
	char now[16] = "";

	PT_NEED_ROOT();
	if (pt_read_file("/proc/sys/kernel/ftrace_enabled", now, sizeof(now)))
		SKIP(return, "no ftrace sysctl");
	EXPECT_STREQ("1", now);
	EXPECT_EQ(-EBUSY, pt_write_file("/proc/sys/kernel/ftrace_enabled", "0"));
	EXPECT_EQ(0, pt_read_file("/proc/sys/kernel/ftrace_enabled", now, sizeof(now)));
	EXPECT_STREQ("1", now);
	EXPECT_EQ(0, pt_run_task("map_fixed"));
	pvas_space_destroy(space);
}

PT_MAIN()
