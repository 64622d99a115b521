// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bounds: a task's calls can't touch anything outside of its partition. Each test's
 * body runs in a task.
 */
#define _GNU_SOURCE
#include <linux/aio_abi.h>
#include <linux/capability.h>
#include <linux/mempolicy.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "maps.h"

#ifndef __NR_set_mempolicy_home_node
#define __NR_set_mempolicy_home_node 450
#endif
#ifndef __NR_mseal
#define __NR_mseal 462
#endif

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
	/* Arguments that are invalid in any process stay invalid. */
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

static bool has_home_node(void)
{
	return syscall(__NR_set_mempolicy_home_node, 0, 0, 0, 0) == 0 || errno != ENOSYS;
}

TASK_TEST(numa_policy_outside)
{
	unsigned long nodes = 1;
	int want = has_home_node() ? EPERM : ENOSYS;
	void *p, *own = anon(PAGE);

	if (syscall(SYS_get_mempolicy, NULL, NULL, 0, NULL, 0) && errno == ENOSYS)
		return;
	FOR_EACH_FOREIGN(p) {
		CHECK_ERR(EPERM, syscall(SYS_mbind, p, PAGE, MPOL_BIND, &nodes, 64, 0));
		CHECK_ERR(want, syscall(__NR_set_mempolicy_home_node, p, PAGE, 0, 0));
	}
	CHECK_EQ(0, syscall(SYS_mbind, own, PAGE, MPOL_BIND, &nodes, 64, 0));
	if (has_home_node())
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

/* what grows in place stops at the last page but one */
TASK_TEST(mremap_over_the_edge)
{
	void *at = (char *)straddling() - PAGE, *p;

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

/* Root, but for the right to raise limits. A task can't become another user. */
static int give_up_sys_resource(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -1;
	data[0].effective &= ~(1U << CAP_SYS_RESOURCE);
	return syscall(SYS_capset, &header, data);
}

/* what a task may raise is for the kernel to say, as of any process */
TASK_TEST(own_limits)
{
	struct rlimit limit;

	CHECK_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	CHECK_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	CHECK_EQ(0, give_up_sys_resource());
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

/* io_setup and mseal, whose effects would outlive the task: ENOSYS */
TASK_TEST(refused_calls)
{
	aio_context_t ctx = 0;

	CHECK_ERR(ENOSYS, syscall(SYS_io_setup, 1, &ctx));
	CHECK_ERR(ENOSYS, syscall(__NR_mseal, anon(PAGE), PAGE, 0));
}

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
	CHECK(pvas_task_get_index() > 0);
}

PT_MAIN()
