// SPDX-License-Identifier: GPL-2.0-only
/*
 * A space that no process is in does not grow: the kernel's threads that work on any mm
 * would charge that memory to nobody. Nor does it keep a container's file systems.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define HUGE (2UL << 20)
#define LEN (64UL << 20)
#define AT 0x40000000UL
#define THP "/sys/kernel/mm/transparent_hugepage/"

/* A byte of each huge page, and khugepaged knows of it */
static int sparse(void *arg)
{
	int advice = *(int *)arg;
	char *p = mmap((void *)AT, LEN, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	size_t i;

	if (p == MAP_FAILED || madvise(p, LEN, MADV_NOHUGEPAGE))
		return -ENOTSUP;
	for (i = 0; i < LEN; i += HUGE)
		p[i] = 1;
	return madvise(p, LEN, advice) ? -ENOTSUP : 0;
}

static long process_kib(pid_t pid)
{
	char path[64], text[256];
	long size, pages;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	if (pt_read_file(path, text, sizeof(text)) || sscanf(text, "%ld %ld", &size, &pages) != 2)
		return -1;
	return pages * 4;
}

/* A process with the same memory, that khugepaged fills; its pid, or 0 */
static pid_t let_fill_another(int advice)
{
	pid_t pid = fork();
	int i;

	if (!pid) {
		if (!sparse(&advice))
			pause();
		_exit(1);
	}
	for (i = 0; i < 300; i++) {
		if (process_kib(pid) > (long)(LEN / 1024 / 8 * 7))
			return pid;
		usleep(100000);
	}
	pt_kill(pid);
	return 0;
}

static void leave_to_khugepaged(struct __test_metadata *_metadata, int advice)
{
	pid_t first, second;
	struct pt_raw raw;
	int err;

	/* It begins at once with the first mm that it has, but sleeps between two others. */
	first = let_fill_another(advice);
	ASSERT_LT(0, first);
	pt_write_file(THP "khugepaged/scan_sleep_millisecs", "60000");
	sleep(1);
	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = sparse;
	raw.prepare_arg = &advice;
	raw.keep = AT;
	err = pt_raw_create(&raw);
	if (err == -ENOTSUP)
		SKIP(return, "no huge pages");
	ASSERT_EQ(0, err);
	/* Not before the creator has gone */
	pt_write_file(THP "khugepaged/scan_sleep_millisecs", "10");
	second = let_fill_another(advice);
	EXPECT_LT(0, second);
	EXPECT_LE(0, pt_resident_kib());
	EXPECT_GT(LEN / 1024 / 8, pt_resident_kib());
	/* It is still there to be entered. */
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, 1, 0));
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_CANCEL));
	pt_raw_close(&raw);
	if (second > 0)
		pt_kill(second);
	pt_kill(first);
}

/* khugepaged fills none of it, whatever its creator advised */
PVAS_TEST(khugepaged)
{
	char scan[64], alloc[64];

	PT_NEED_MODULE("a space ends with its launcher");
	PT_NEED_ROOT();
	if (pt_read_file(THP "khugepaged/scan_sleep_millisecs", scan, sizeof(scan)) ||
	    pt_read_file(THP "khugepaged/pages_to_scan", alloc, sizeof(alloc)))
		SKIP(return, "no transparent huge pages");
	pt_write_file(THP "khugepaged/scan_sleep_millisecs", "10");
	pt_write_file(THP "khugepaged/pages_to_scan", "65536");
	leave_to_khugepaged(_metadata, MADV_HUGEPAGE);
	pt_write_file(THP "khugepaged/scan_sleep_millisecs", scan);
	pt_write_file(THP "khugepaged/pages_to_scan", alloc);
}

/* ---- mounts ---- */

/* Alone in a mount namespace, it fills a file system, makes a space and stays. */
static void be_container(const char *dir, int out, bool with_task)
{
	struct pt_raw raw;
	char path[256];
	int file, told;

	snprintf(path, sizeof(path), "%s/f", dir);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("t", dir, "tmpfs", 0, NULL))
		_exit(1);
	file = open(path, O_RDWR | O_CREAT, 0600);
	if (posix_fallocate(file, 0, LEN) || pt_raw_make(&raw))
		_exit(1);
	told = raw.fd;
	if (with_task) {
		told = pt_raw_spawn(&raw, 1);
		if (told < 0 || pt_raw_call(&raw, 1, SYS_mmap, 0, LEN, PROT_READ, MAP_SHARED |
					    MAP_POPULATE, file, 0) < 0 ||
		    pt_raw_call(&raw, 1, SYS_close, file))
			_exit(1);
	}
	if (write(out, &told, sizeof(told)) == sizeof(told))
		pause();
	_exit(1);
}

static long shmem_kib(void)
{
	return pt_file_kib("/proc/meminfo", "Shmem:");
}

/* a container's file systems end with its last process, though its space is still open */
PVAS_TEST(mounts)
{
	const char *dir = pt_tmpdir();
	long shmem = shmem_kib();
	int out[2], fd, i;
	pid_t pid;

	PT_NEED_MODULE("no process of another mount namespace has a space");
	PT_NEED_ROOT();
	ASSERT_EQ(0, pipe(out));
	pid = fork();
	if (!pid)
		be_container(dir, out[1], false);
	close(out[1]);
	ASSERT_EQ(sizeof(fd), read(out[0], &fd, sizeof(fd)));
	fd = syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, pid, 0), fd, 0);
	ASSERT_LE(0, fd);
	EXPECT_LT(shmem + (long)(LEN / 2048), shmem_kib());
	pt_kill(pid);
	for (i = 0; i < 100 && shmem_kib() > shmem + 16384; i++)
		usleep(50000);
	EXPECT_GT(100, i);
	EXPECT_EQ(1, pt_spaces());
	close(fd);
	EXPECT_TRUE(pt_spaces_gone());
}

/* and if that was a task, before waitpid() returns: no kernel thread is left with a mount */
PVAS_TEST(mounts_of_a_task)
{
	const char *dir = pt_tmpdir();
	long shmem = shmem_kib();
	pid_t pid, task;
	int out[2];

	PT_NEED_MODULE("no process of another mount namespace has a space");
	PT_NEED_ROOT();
	ASSERT_EQ(0, pipe(out));
	ASSERT_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1));
	pid = fork();
	if (!pid)
		be_container(dir, out[1], true);
	close(out[1]);
	ASSERT_EQ(sizeof(task), read(out[0], &task, sizeof(task)));
	pt_kill(pid);
	EXPECT_LT(shmem + (long)(LEN / 2048), shmem_kib());
	pt_kill(task);
	EXPECT_GT(shmem + 16384, shmem_kib());
	EXPECT_TRUE(pt_spaces_gone());
}

PT_MAIN()
