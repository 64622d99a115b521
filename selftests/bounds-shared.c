// SPDX-License-Identifier: GPL-2.0-only
/*
 * State that the kernel keeps once for each mm, and so for all tasks of a space: settings,
 * locks, userfaultfds, stacks that grow, a dying task's memory. No task may change it for its
 * peers, nor may another process with a descriptor from a task.
 */
#define _GNU_SOURCE
#include <asm/ldt.h>
#include <asm/prctl.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "maps.h"
#include "others.h"

#define HIGH	(1UL << 32)
#define OVERCOMMIT "/proc/sys/vm/overcommit_memory"

static void attack(struct __test_metadata *_metadata, const char *name)
{
	struct pvas_space *space = PT_SPACE();
	struct others_job job;

	ASSERT_EQ(0, others_start(&job, space));
	EXPECT_EQ(0, others_attack(&job, name));
	EXPECT_EQ(0, others_end(&job));
	pvas_space_destroy(space);
}

/* ---- settings ---- */

static int write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int ret = write(fd, text, strlen(text));

	close(fd);
	return ret;
}

TASK(change_settings)
{
	struct user_desc desc = { .entry_number = 0, .base_addr = 0x1000, .limit = 1 };
	uint64_t scan[12] = { sizeof(scan), 0, pt_base(), pt_base() + PAGE };
	aio_context_t ctx = 0;
	int fd;

	CHECK_ERR(EPERM, prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
	CHECK_EQ(0, prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
	CHECK_ERR(EPERM, prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0));
	CHECK_ERR(EPERM, prctl(67 /* PR_SET_MEMORY_MERGE */, 1, 0, 0, 0));
	CHECK_ERR(EPERM, prctl(PR_SET_MM, PR_SET_MM_BRK, pt_base() + (1UL << 30), 0, 0));
	CHECK_ERR(EINVAL, prctl(4711, 0, 0, 0, 0));
	CHECK_ERR(EPERM, syscall(SYS_arch_prctl, 0x2003 /* ARCH_MAP_VDSO_64 */, pt_base()));
	CHECK_ERR(EPERM, syscall(SYS_arch_prctl, 0x4002 /* ARCH_ENABLE_TAGGED_ADDR */, 6));
	CHECK_ERR(EPERM, syscall(SYS_arch_prctl, 0x4004 /* ARCH_FORCE_TAGGED_SVA */, 0));
	CHECK_ERR(EINVAL, syscall(SYS_arch_prctl, 0x7777, 0));
	/* It returns an int, and the register's upper half is 0. */
	CHECK_EQ(-ENOSYS, (int)syscall(SYS_modify_ldt, 1, &desc, sizeof(desc)));
	CHECK_ERR(ENOSYS, syscall(SYS_io_setup, 1, &ctx));
	CHECK_ERR(ENOSYS, syscall(SYS_io_setup | HIGH, 1, &ctx));
	/* PAGEMAP_SCAN; older kernels have no ioctl there */
	fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	CHECK_EQ(-1, ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'f', 16, 96), scan));
	CHECK(errno == EPERM || errno == ENOTTY);
	CHECK_ERR(EPERM, write_to("/proc/self/clear_refs", "1"));
	CHECK_ERR(EPERM, write_to("/proc/self/coredump_filter", "0x1"));
	/* Allowed: settings of one thread, and queries */
	CHECK_EQ(0, prctl(PR_SET_NAME, "renamed", 0, 0, 0));
	CHECK_ERR(EPERM, prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
	CHECK_EQ(1, prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
	CHECK_EQ(0, prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
	CHECK_EQ(0, prctl(PR_SET_TIMERSLACK, 50000, 0, 0, 0));
}

MODULE_TEST(settings, "each task has its own")
{
	attack(_metadata, "change_settings");
}

/* ---- locks: mlockall() is for the caller's partition ---- */

static long locked_kb(const void *at)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long from, to;
	bool here = false;
	char line[4096];
	long kb = -1;

	while (f && kb < 0 && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = from <= (uintptr_t)at && (uintptr_t)at < to;
		else if (here)
			sscanf(line, "Locked: %ld", &kb);
	}
	if (f)
		fclose(f);
	return kb;
}

TASK(lock_all)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	char *p = anon(16 * PAGE);
	unsigned char in[16];

	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		return;
	others_remember();
	CHECK_EQ(0, mlockall(MCL_CURRENT));
	CHECK_EQ(0, mincore(p, 16 * PAGE, in));
	CHECK(in[0] & 1 && in[15] & 1);
	CHECK(locked_kb(p) >= 64);
	CHECK(!others_maps_changed());
	CHECK_ERR(EPERM, mlockall(MCL_FUTURE));
	CHECK_ERR(EPERM, mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT));
	/* One of the peer's is locked, and stays so. */
	CHECK_EQ(0, munlockall());
	CHECK_EQ(0, locked_kb(p));
	CHECK(!others_maps_changed());
	CHECK(!others_bytes_changed());
}

MODULE_TEST(lock_everything, "each task has its own")
{
	attack(_metadata, "lock_all");
}

/* ---- userfaultfd ---- */

static int uffd_register(int fd, uintptr_t at, size_t len)
{
	struct uffdio_register reg = { { at, len }, UFFDIO_REGISTER_MODE_MISSING, 0 };

	return ioctl(fd, UFFDIO_REGISTER, &reg);
}

static int uffd_copy(int fd, uintptr_t at, void *page)
{
	struct uffdio_copy copy = { .dst = at, .src = (uintptr_t)page, .len = PAGE };

	return ioctl(fd, UFFDIO_COPY, &copy);
}

/* The attacks of a task's child, an ordinary process in no space, with its parent's descriptor */
static int child_attacks(int fd, char *own)
{
	struct uffdio_range range = { (uintptr_t)own, PAGE };
	char page[PAGE] = "";

	if (!uffd_register(fd, others_peer(), PAGE) || errno != EPERM)
		return 1;
	if (!uffd_register(fd, (uintptr_t)own, PAGE) || errno != EPERM)
		return 2;
	if (!uffd_copy(fd, others_peer(), page) || errno != EPERM)
		return 3;
	if (!uffd_copy(fd, (uintptr_t)own, page) || errno != EPERM)
		return 4;
	if (!ioctl(fd, UFFDIO_UNREGISTER, &range) || errno != EPERM)
		return 5;
	return ioctl(fd, UFFDIO_WAKE, &range) ? 6 : 0;
}

TASK(pass_uffd_on)
{
	struct uffdio_range range;
	int fd = others_uffd();
	char *own = anon(2 * PAGE);
	pid_t pid;

	CHECK(fd >= 0);
	others_remember();
	CHECK_EQ(0, uffd_register(fd, (uintptr_t)own, 2 * PAGE));
	pid = fork();
	if (!pid)
		_exit(child_attacks(fd, own));
	CHECK_EQ(0, pt_wait(pid));
	/* The task itself can do all of it, to its own. */
	CHECK_EQ(0, uffd_copy(fd, (uintptr_t)own, (void *)others_peer()));
	CHECK_EQ(PEER_BYTE, own[5]);
	range = (struct uffdio_range){ (uintptr_t)own, 2 * PAGE };
	CHECK_EQ(0, ioctl(fd, UFFDIO_UNREGISTER, &range));
	own[PAGE] = 1;
	CHECK(!others_maps_changed());
}

MODULE_TEST(userfaultfd_of_a_parent, "a task's children have its rights")
{
	attack(_metadata, "pass_uffd_on");
}

static struct uffdio_register racing;
static volatile bool race_over;

/* Own and foreign, each for a while of its own */
static void *change_range(void *arg)
{
	uint64_t start[2] = { (uintptr_t)arg, others_peer() };
	unsigned int seed = 1, n, i;

	for (n = 0; !race_over; n++) {
		__atomic_store_n(&racing.range.start, start[n & 1], __ATOMIC_RELAXED);
		for (i = rand_r(&seed) % 256; i; i--)
			__asm__ volatile("");
	}
	return NULL;
}

/* The argument changes while the kernel reads it. */
TASK(race_uffd)
{
	char *own = anon(PAGE);
	struct uffdio_range range = { (uintptr_t)own, PAGE };
	long end = now_ms() + 1000;
	int fd = others_uffd();
	pthread_t thread;

	CHECK(fd >= 0);
	racing = (struct uffdio_register){ range, UFFDIO_REGISTER_MODE_MISSING, 0 };
	CHECK_EQ(0, pthread_create(&thread, NULL, change_range, own));
	while (now_ms() < end) {
		ioctl(fd, UFFDIO_REGISTER, &racing);
		ioctl(fd, UFFDIO_UNREGISTER, &range);
	}
	race_over = true;
	pthread_join(thread, NULL);
	/* Areas that were registered for a moment may stay split. */
	CHECK(!others_watched());
	CHECK(!others_bytes_changed());
}

MODULE_TEST(userfaultfd_race, "ioctls are not bounded")
{
	attack(_metadata, "race_uffd");
}

/* Not an area of the peer's own monitor, either, though the argument may change at any time */
TASK(unregister_beside)
{
	char *own = anon(PAGE);
	struct uffdio_range range = { (uintptr_t)own, PAGE };
	int fd = others_uffd();

	others_remember();
	CHECK_EQ(0, uffd_register(fd, (uintptr_t)own, PAGE));
	CHECK_ERR(EBUSY, ioctl(fd, UFFDIO_UNREGISTER, &range));
	CHECK_EQ(0, munmap(own, PAGE));
	CHECK(!others_maps_changed());
}

MODULE_TEST(userfaultfd_of_a_peer, "ioctls are not bounded")
{
	setenv("PEER_WATCHES", "1", 1);
	attack(_metadata, "unregister_beside");
	unsetenv("PEER_WATCHES");
}

/* ---- stacks ---- */

/* Unmaps its program, stores a byte to r8, and ends: in a page above the stack. */
static const unsigned char touch_code[] = {
	0xb8, 11, 0, 0, 0, 0x0f, 0x05,		/* munmap(rdi, rsi) */
	0x41, 0xc6, 0x00, 0x01,			/* movb $1, (%r8) */
	0x31, 0xff, 0xb8, 231, 0, 0, 0, 0x0f, 0x05 /* exit_group(0) */
};

static uintptr_t stack_bottom(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	unsigned long from = 0, to = 0;
	char line[4096];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2 && from <= here && here < to)
			break;
	if (f)
		fclose(f);
	return from;
}

static void jump(void *code, uintptr_t from, size_t len, uintptr_t at)
{
	register uintptr_t r8 __asm__("r8") = at;

	__asm__ volatile("jmp *%0" : : "r"(code), "D"(from), "S"(len), "r"(r8)
			 : "rax", "rcx", "r11", "memory");
}

/* With nothing else mapped below the stack, it would grow as far as there is nothing. */
static void touch_below_stack(uintptr_t at)
{
	void *code = (void *)(pt_base() + pt_size() - 2 * PAGE);
	uintptr_t bottom = stack_bottom(), base = pt_base();

	code = mmap(code, PAGE, RW | PROT_EXEC, ANON | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(code != MAP_FAILED);
	memcpy(code, touch_code, sizeof(touch_code));
	/* The kernel writes there when it likes. */
	syscall(SYS_rseq, (char *)__builtin_thread_pointer() + __rseq_offset, 32,
		RSEQ_FLAG_UNREGISTER, RSEQ_SIG);
	jump(code, base, bottom - base, at);
}

TASK(grow_a_little)
{
	touch_below_stack(stack_bottom() - 64 * PAGE);
}

TASK(grow_to_the_gap)
{
	touch_below_stack(pt_base() + PAGE);
}

TASK(grow_into_the_peer)
{
	touch_below_stack(pt_base() - 16 * PAGE);
}

static int no_limit(void *arg)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY }, none = { 0, 0 };

	(void)arg;
	return setrlimit(RLIMIT_STACK, &limit) || setrlimit(RLIMIT_CORE, &none) ? -errno : 0;
}

/* no stack leaves its partition, nor the gap at its begin */
MODULE_TEST(stack_growth, "a stack of its own kind")
{
	static const struct { const char *name; int status; } steps[] = {
		{ "grow_a_little", 0 }, { "grow_to_the_gap", 256 + SIGSEGV },
		{ "grow_into_the_peer", 256 + SIGSEGV },
	};
	/* Small, or the kernel thinks that there is no memory for so large a stack. */
	struct pvas_space *space = PT_SPACE_OF(4UL << 30);
	struct pvas_spawn_attr attr = { .size = sizeof(attr), .setup = no_limit };
	struct others_job job;
	char before[16] = "0";
	pid_t pid;
	size_t i;

	pt_read_file(OVERCOMMIT, before, sizeof(before));
	pt_write_file(OVERCOMMIT, "1");
	ASSERT_EQ(0, others_start(&job, space));
	for (i = 0; i < PT_ARRAY_SIZE(steps); i++) {
		ASSERT_EQ(2, pvas_task_spawn(space, 2, pt_self(), pt_task_argv(steps[i].name),
					     environ,
					     &attr, &pid));
		EXPECT_EQ(steps[i].status, pt_wait(pid)) TH_LOG("%s", steps[i].name);
	}
	EXPECT_EQ(0, others_end(&job));
	pt_write_file(OVERCOMMIT, before);
	pvas_space_destroy(space);
}

/* nor is one moved to where it could */
TASK(move_stack)
{
	char *piece = (char *)(stack_bottom()), *to = (char *)pt_base() + PAGE;

	CHECK_ERR(EPERM, mremap(piece, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to));
	CHECK_ERR(EPERM, mremap(piece, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
				to));
	CHECK_ERR(EPERM, mremap(piece, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
	/* The address that uprobes suggests for its page is not in this partition. */
	piece = mremap(anon(PAGE), PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, TASK_MAX - PAGE);
	CHECK(piece == MAP_FAILED || pt_inside(piece, PAGE));
}

MODULE_TEST(moved_stack, "a stack of its own kind")
{
	attack(_metadata, "move_stack");
}

/* ---- process_mrelease() ---- */

TASK(large_and_idle)
{
	memset(anon(16UL << 20), 1, 16UL << 20);
	pt_say("r");
	pause();
}

static long kill_and_release(struct pvas_space *space)
{
	int up[2], pidfd;
	pid_t pid;
	char c;
	long ret;

	if (pipe(up))
		return -errno;
	ret = pt_start_task_fds(space, 2, "large_and_idle", up[1], 0, &pid);
	close(up[1]);
	if (ret < 0)
		return ret;
	if (read(up[0], &c, 1) != 1)
		return pt_wait(pid);
	pidfd = syscall(SYS_pidfd_open, pid, 0);
	kill(pid, SIGKILL);
	ret = syscall(SYS_process_mrelease, pidfd, 0) ? -errno : 0;
	pt_wait(pid);
	close(pidfd);
	close(up[0]);
	return ret;
}

/* a dying task's memory is released, not its living peers', and the space remains usable */
MODULE_TEST(release_of_the_dying, "each task has an mm of its own")
{
	struct pvas_space *space = PT_SPACE();
	struct others_job job;
	int i;

	ASSERT_EQ(0, others_start(&job, space));
	for (i = 0; i < 3; i++) {
		EXPECT_GE(0, kill_and_release(space));
	}
	EXPECT_EQ(0, others_end(&job));
	/* Now it is the only one, but not the last. */
	for (i = 0; i < 3; i++) {
		EXPECT_GE(0, kill_and_release(space));
		EXPECT_EQ(0, others_start(&job, space));
		EXPECT_EQ(0, others_end(&job));
	}
	pvas_space_destroy(space);
}

PT_MAIN()
