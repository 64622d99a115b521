// SPDX-License-Identifier: GPL-2.0
/*
 * The bounds: what a task maps lies in its partition, and its calls can't touch
 * anything outside of it. Each test's body runs in a task, unless it says
 * otherwise.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#ifndef __NR_set_mempolicy_home_node
#define __NR_set_mempolicy_home_node 450
#endif
#ifndef __NR_mseal
#define __NR_mseal 462
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

extern char **environ;

#define PAGE	4096UL
#define RW	(PROT_READ | PROT_WRITE)
#define ANON	(MAP_PRIVATE | MAP_ANONYMOUS)

static void *anon(size_t len)
{
	void *p = mmap(NULL, len, RW, ANON, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* Addresses that are not ours: below, above, the header's, at the far end, the kernel's. */
static void *foreign(int i)
{
	uintptr_t at[] = {
		pt_base() - PAGE, pt_base() + pt_size(), pt_base() - pt_size(),
		pt_base() + 5 * pt_size(), 256UL << 20, 0x10000, (1UL << 47) - 2 * PAGE,
	};

	return i < (int)PT_ARRAY_SIZE(at) ? (void *)at[i] : NULL;
}

/* The last page of ours and the first of the next partition's. */
static void *straddling(void)
{
	return (void *)(pt_base() + pt_size() - PAGE);
}

#define FOR_EACH_FOREIGN(p) \
	for (int i__ = 0; ((p) = foreign(i__)) != NULL; i__++)

/* ---- placement ---- */

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
TASK_TEST(thp)
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

/* ---- calls on what is another's: EPERM ---- */

TASK_TEST(munmap_outside)
{
	void *p;

	FOR_EACH_FOREIGN(p) {
		CHECK_ERR(EPERM, munmap(p, PAGE));
	}
	CHECK_ERR(EPERM, munmap(straddling(), 2 * PAGE));
	CHECK_ERR(EPERM, munmap((void *)(pt_base() - PAGE), 2 * PAGE));
	CHECK_ERR(EPERM, munmap((void *)PAGE, (1UL << 47) - 2 * PAGE));
	CHECK_EQ(0, munmap(anon(PAGE), PAGE));
	/* What is nonsense anywhere stays so. */
	CHECK_ERR(EINVAL, munmap(anon(PAGE), 0));
	CHECK_ERR(EINVAL, munmap(anon(PAGE), -PAGE));
}

TASK_TEST(mprotect_outside)
{
	void *p, *own = anon(PAGE);

	FOR_EACH_FOREIGN(p) {
		CHECK_ERR(EPERM, mprotect(p, PAGE, PROT_READ));
		CHECK_ERR(EPERM, syscall(SYS_pkey_mprotect, p, PAGE, PROT_READ, -1));
	}
	CHECK_ERR(EPERM, mprotect(straddling(), 2 * PAGE, PROT_READ));
	CHECK_EQ(0, mprotect(own, PAGE, PROT_READ));
	CHECK_EQ(0, syscall(SYS_pkey_mprotect, own, PAGE, RW, -1));
}

TASK_TEST(madvise_outside)
{
	static const int advice[] = { MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE, MADV_DONTFORK,
				      MADV_WIPEONFORK, MADV_MERGEABLE, MADV_PAGEOUT, MADV_REMOVE };
	void *p, *own = anon(PAGE);
	size_t i;

	for (i = 0; i < PT_ARRAY_SIZE(advice); i++) {
		FOR_EACH_FOREIGN(p) {
			CHECK_ERR(EPERM, madvise(p, PAGE, advice[i]));
		}
		CHECK_ERR(EPERM, madvise(straddling(), 2 * PAGE, advice[i]));
	}
	CHECK_EQ(0, madvise(own, PAGE, MADV_DONTNEED));
}

TASK_TEST(mlock_outside)
{
	void *p, *own = anon(PAGE);

	FOR_EACH_FOREIGN(p) {
		CHECK_ERR(EPERM, mlock(p, PAGE));
		CHECK_ERR(EPERM, mlock2(p, PAGE, MLOCK_ONFAULT));
		CHECK_ERR(EPERM, munlock(p, PAGE));
	}
	CHECK_ERR(EPERM, mlock(straddling(), 2 * PAGE));
	CHECK_ERR(EPERM, munlock(straddling(), 2 * PAGE));
	CHECK_EQ(0, mlock(own, PAGE));
	CHECK_EQ(0, munlock(own, PAGE));
	CHECK_EQ(0, mlock2(own, PAGE, MLOCK_ONFAULT));
	CHECK_EQ(0, munlock(own, PAGE));
}

TASK_TEST(numa_policy_outside)
{
	unsigned long nodes = 1;
	void *p, *own = anon(PAGE);

	if (syscall(SYS_get_mempolicy, NULL, NULL, 0, NULL, 0) && errno == ENOSYS)
		return;
	FOR_EACH_FOREIGN(p) {
		CHECK_ERR(EPERM, syscall(SYS_mbind, p, PAGE, MPOL_BIND, &nodes, 64, 0));
		CHECK_ERR(EPERM, syscall(__NR_set_mempolicy_home_node, p, PAGE, 0, 0));
	}
	CHECK_EQ(0, syscall(SYS_mbind, own, PAGE, MPOL_BIND, &nodes, 64, 0));
	CHECK_EQ(0, syscall(__NR_set_mempolicy_home_node, own, PAGE, 0, 0));
}

TASK_TEST(mremap_outside)
{
	void *p, *own = anon(4 * PAGE), *q;

	FOR_EACH_FOREIGN(p) {
		CHECK_ERR(EPERM, mremap(p, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
		CHECK_ERR(EPERM, mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, own));
		CHECK_ERR(EPERM, mremap(own, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p));
		CHECK_ERR(EPERM, mremap(own, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED |
					MREMAP_DONTUNMAP, p));
	}
	CHECK_ERR(EPERM, mremap(own, PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, straddling()));
	CHECK_ERR(EPERM, mremap(straddling(), 2 * PAGE, PAGE, 0));
	/* Growing moves to another place inside. */
	q = mremap(own, 4 * PAGE, 1UL << 24, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED && pt_inside(q, 1UL << 24));
	q = mremap(q, 1UL << 24, 1UL << 24, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
	CHECK(q != MAP_FAILED && pt_inside(q, 1UL << 24));
}

/* what grows in place stops at the partition's end */
TASK_TEST(mremap_over_the_edge)
{
	void *at = straddling(), *p;

	p = mmap(at, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(p == at);
	CHECK_ERR(ENOMEM, mremap(p, PAGE, 2 * PAGE, 0));
	p = mremap(p, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
	CHECK(p != MAP_FAILED && p != at && pt_inside(p, 2 * PAGE));
}

TASK_TEST(remap_file_pages_outside)
{
	void *p, *own = mmap(NULL, 2 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	FOR_EACH_FOREIGN(p) {
		CHECK_ERR(EPERM, remap_file_pages(p, PAGE, 0, 0, 0));
	}
	CHECK_EQ(0, remap_file_pages(own, PAGE, 0, 1, 0));
}

TASK_TEST(sysv_shm_outside)
{
	int id = shmget(IPC_PRIVATE, 2 * PAGE, IPC_CREAT | 0600);
	void *p, *q;

	CHECK(id >= 0);
	q = shmat(id, NULL, 0);
	CHECK(q != (void *)-1 && pt_inside(q, 2 * PAGE));
	FOR_EACH_FOREIGN(p) {
		CHECK_ERR(ENOMEM, shmat(id, p, 0));
		CHECK_ERR(ENOMEM, shmat(id, p, SHM_REMAP));
		CHECK_ERR(EPERM, shmdt(p));
	}
	CHECK_ERR(ENOMEM, shmat(id, straddling(), SHM_REMAP));
	CHECK_EQ(0, shmdt(q));
	CHECK_EQ(0, shmctl(id, IPC_RMID, NULL));
}

/* io_setup and mseal, whose effects would outlive the task: ENOSYS */
/* what a task may raise is for the kernel to say, as of any process */
TASK_TEST(own_limits)
{
	struct rlimit limit;

	CHECK_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	CHECK_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	if (!geteuid())
		CHECK_EQ(0, setresuid(65534, 65534, 65534));
	limit.rlim_max++;
	CHECK_ERR(EPERM, setrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max + 1;
	CHECK_ERR(EINVAL, setrlimit(RLIMIT_NOFILE, &limit));
	/* Less is always allowed, and no way back. */
	CHECK_EQ(0, getrlimit(RLIMIT_DATA, &limit));
	limit.rlim_cur = limit.rlim_max = 64UL << 20;
	CHECK_EQ(0, setrlimit(RLIMIT_DATA, &limit));
	limit.rlim_max = RLIM_INFINITY;
	CHECK_ERR(EPERM, setrlimit(RLIMIT_DATA, &limit));
	CHECK_ERR(ENOMEM, (long)sbrk(80UL << 20));
	CHECK_ERR(EPERM, munmap((void *)(pt_base() + pt_size()), 4096));
}

TASK_TEST(refused_calls)
{
	aio_context_t ctx = 0;

	CHECK_ERR(ENOSYS, syscall(SYS_io_setup, 1, &ctx));
	CHECK_ERR(ENOSYS, syscall(__NR_mseal, anon(PAGE), PAGE, 0));
}

/* ---- ia32 system calls by int 0x80: all of these are refused ---- */

TASK_TEST(ia32_calls)
{
	long low = 256L << 20;	/* where libpvas has its header */

	if (pt_ia32(20, 0, 0, 0, 0, 0, 0) != getpid())
		return;		/* not in this kernel, or refused as a whole */
	CHECK_EQ(-EPERM, pt_ia32(45, 0, 0, 0, 0, 0, 0));		/* brk */
	CHECK_EQ(-EPERM, pt_ia32(91, low, PAGE, 0, 0, 0, 0));		/* munmap */
	CHECK_EQ(-EPERM, pt_ia32(125, low, PAGE, 0, 0, 0, 0));		/* mprotect */
	CHECK_EQ(-EPERM, pt_ia32(163, low, PAGE, PAGE, 1, 0, 0));	/* mremap */
	CHECK_EQ(-EPERM, pt_ia32(219, low, PAGE, MADV_DONTNEED, 0, 0, 0)); /* madvise */
	CHECK_EQ(-EPERM, pt_ia32(150, low, PAGE, 0, 0, 0, 0));		/* mlock */
	CHECK_EQ(-EPERM, pt_ia32(151, low, PAGE, 0, 0, 0, 0));		/* munlock */
	CHECK_EQ(-EPERM, pt_ia32(376, low, PAGE, 0, 0, 0, 0));		/* mlock2 */
	CHECK_EQ(-EPERM, pt_ia32(380, low, PAGE, PROT_READ, -1, 0, 0));	/* pkey_mprotect */
	CHECK_EQ(-EPERM, pt_ia32(274, low, PAGE, 0, 0, 0, 0));		/* mbind */
	CHECK_EQ(-EPERM, pt_ia32(257, low, PAGE, 0, 0, 0, 0));		/* remap_file_pages */
	CHECK_EQ(-EPERM, pt_ia32(398, low, 0, 0, 0, 0, 0));		/* shmdt */
	CHECK(pt_ia32(117, 22 /* SHMDT */, 0, 0, 0, low, 0) < 0);	/* ipc */
	CHECK(pt_ia32(245, 1, low, 0, 0, 0, 0) < 0);			/* io_setup */
	/* mmap2: nowhere, or not at all */
	CHECK_EQ(-ENOMEM, pt_ia32(192, 0, PAGE, RW, ANON, -1, 0));
	CHECK_EQ(-ENOMEM, pt_ia32(192, 0x40000000, PAGE, RW, ANON | MAP_FIXED, -1, 0));
	/* shmat by ipc and by itself */
	CHECK(pt_ia32(397, 12345, low, SHM_REMAP, 0, 0, 0) < 0);
	/* The header is still there. */
	CHECK(pvas_self() > 0);
}

/* ---- brk ---- */

static uintptr_t raw_brk(uintptr_t to)
{
	return syscall(SYS_brk, to);
}

TASK_TEST(brk_moves)
{
	uintptr_t start = raw_brk(0), page = (start + 2 * PAGE) & ~(PAGE - 1);

	CHECK(pt_inside((void *)start, 1));
	CHECK_EQ(page + 100 * PAGE, raw_brk(page + 100 * PAGE));
	memset((void *)page, 7, 100 * PAGE);
	CHECK_EQ(page, raw_brk(page));
	CHECK_EQ(page + PAGE, raw_brk(page + PAGE));
	/* What was given back is zero again. */
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

/* ---- the stack ---- */

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
	CHECK_EQ(1, write(atoi(pt_args[0]), "r", 1));
	CHECK_EQ(1, read(atoi(pt_args[1]), (char *)&i, 1));
	for (i = 0; i < 1 << 20; i++)
		if (p[i] != (char)(i * 3))
			break;
	CHECK_EQ(1 << 20, i);
	p = malloc(1 << 16);
	CHECK(pt_inside((void *)p, 1 << 16));
}

static struct pvas_space *new_space(struct __test_metadata *_metadata)
{
	struct pvas_create_attr attr = { .size = sizeof(attr), .backend = pt_backend() };
	struct pvas_space *space = NULL;

	ASSERT_EQ(0, pvas_create(&space, &attr)) TH_LOG("%s", pvas_last_error());
	return space;
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
	struct pvas_space *space = new_space(_metadata);
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
		ASSERT_EQ(2, pvas_spawn(space, 2, pt_self(), pt_task_argv(steps[i].name), environ,
					&attr, &pid));
		EXPECT_EQ(steps[i].status, pt_wait(pid));
	}
	ASSERT_EQ(2, write(down[1], "gg", 2));
	EXPECT_EQ(0, pt_wait(peer[0]));
	EXPECT_EQ(0, pt_wait(peer[1]));
	pvas_destroy(space);
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

/* a limit of 1 GiB, and none at all */
PVAS_TEST(large_stacks)
{
	struct pvas_space *space = new_space(_metadata);
	struct pvas_spawn_attr attr = { .size = sizeof(attr), .setup = stack_1g };
	pid_t pid;

	ASSERT_EQ(1, pvas_spawn(space, 1, pt_self(), pt_task_argv("stack_of_1g"), environ, &attr,
				&pid));
	EXPECT_EQ(0, pt_wait(pid));
	attr.setup = stack_unlimited;
	ASSERT_EQ(1, pvas_spawn(space, 1, pt_self(), pt_task_argv("stack_of_1g"), environ, &attr,
				&pid));
	EXPECT_EQ(0, pt_wait(pid));
	pvas_destroy(space);
}

/* ---- neighbours ---- */

TASK(storm)
{
	unsigned int seed = pvas_self();
	int i;

	for (i = 0; i < 100; i++) {
		size_t len = PAGE << rand_r(&seed) % 8;
		char *p = anon(len);

		memset(p, pvas_self(), len);
		CHECK(p[len - 1] == (char)pvas_self());
		free(malloc(rand_r(&seed) % (1 << 18)));
		CHECK_EQ(0, munmap(p, len));
	}
}

/* 16 tasks that map and unmap: nobody hurts anybody */
PVAS_TEST(mapping_storm)
{
	struct pvas_space *space = new_space(_metadata);
	pid_t pid[16];
	size_t i;

	for (i = 0; i < PT_ARRAY_SIZE(pid); i++) {
		pid[i] = pt_start_task(space, PVAS_ANY, "storm");
		ASSERT_LT(0, pid[i]);
	}
	for (i = 0; i < PT_ARRAY_SIZE(pid); i++) {
		EXPECT_EQ(0, pt_wait(pid[i]));
	}
	EXPECT_EQ(0, pvas_tasks(space, NULL, 0));
	pvas_destroy(space);
}

/* the hooks can't be switched off while there is a space: EBUSY */
MODULE_TEST(ftrace_sysctl, "it has no hooks")
{
	struct pvas_space *space = new_space(_metadata);
	char now[16] = "";

	PT_NEED_ROOT();
	if (pt_read_file("/proc/sys/kernel/ftrace_enabled", now, sizeof(now)))
		SKIP(return, "no ftrace sysctl");
	EXPECT_STREQ("1", now);
	EXPECT_EQ(-EBUSY, pt_write_file("/proc/sys/kernel/ftrace_enabled", "0"));
	EXPECT_EQ(0, pt_read_file("/proc/sys/kernel/ftrace_enabled", now, sizeof(now)));
	EXPECT_STREQ("1", now);
	EXPECT_EQ(0, pt_run_task("map_fixed"));
	pvas_destroy(space);
}

/* a process outside of any space is not bounded, though one exists */
PVAS_TEST(outsiders_are_free)
{
	struct pvas_space *space = new_space(_metadata);
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
	pvas_destroy(space);
}

PT_MAIN()
