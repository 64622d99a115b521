// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks and spaces end though allocations fail: an end can't return an error, so it has to
 * do without memory.
 *
 * Needs a kernel with CONFIG_FAILSLAB, CONFIG_FAIL_PAGE_ALLOC and
 * CONFIG_FAULT_INJECTION_STACKTRACE_FILTER, as the debug kernel is; Debian's are not.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fail_nth.h"
#include "kselftest_harness.h"
#include "pvas_test.h"

#define RW		(PROT_READ | PROT_WRITE)

/* A puppet with a mapping whose file the end of the task has to remember */
static pid_t spawn_with_file(struct pt_raw *raw)
{
	const unsigned int index = raw->create.first;
	static const char name[] = "faults";
	pid_t pid = fail_spawn(raw);
	long fd;

	if (pid < 0)
		return pid;
	memcpy(raw->data, name, sizeof(name));
	fd = pt_raw_call(raw, index, SYS_memfd_create, PT_DATA_AT, 0);
	if (fd < 0 || pt_raw_call(raw, index, SYS_ftruncate, fd, 4096) ||
	    pt_raw_call(raw, index, SYS_mmap, 0, 4096, RW, MAP_SHARED, fd, 0) < 0)
		return -1;
	return pid;
}

/* The end of a task by itself or by a signal, with the nth allocation of its own failing */
static bool end_with_nth(struct pt_raw *raw, unsigned int nth, bool by_signal)
{
	const unsigned int index = raw->create.first;
	pid_t pid = spawn_with_file(raw);
	int fd;

	if (pid < 0)
		return false;
	fd = fail_open_nth(pid);
	if (fd < 0 || fail_set_nth(fd, nth))
		return false;
	close(fd);
	if (by_signal)
		kill(pid, SIGKILL);
	else if (!pt_raw_ask(raw, index, SYS_exit_group, (long[6]){ 3 }))
		return false;
	/* The wait means that the partition is free. */
	return pt_wait(pid) == (by_signal ? 256 + SIGKILL : 3) && pt_raw_count(raw->fd) == 0 &&
	       pt_raw_part(raw, index).state == PVAS_PART_FREE;
}

/* A task's own allocations at its end, of which there may be none: until all have failed. */
FAULT_TEST(end_of_a_task)
{
	struct pt_raw raw;
	unsigned int nth = 0;

	ASSERT_EQ(0, pt_raw_make(&raw));
	do {
		nth++;
		ASSERT_EQ(0, fail_in_module(FAIL_NONE));
		ASSERT_TRUE(end_with_nth(&raw, nth, false)) TH_LOG("exit, allocation %u", nth);
		ASSERT_TRUE(end_with_nth(&raw, nth, true)) TH_LOG("kill, allocation %u", nth);
	} while (fail_count());
	TH_LOG("%u allocations", nth - 1);
	pt_raw_close(&raw);
	EXPECT_EQ(0, fail_spaces_become(0));
}

FAULT_TEST(end_of_a_space)
{
	struct pt_raw raw;
	unsigned int nth = 0;
	bool reached;
	int fd;

	do {
		nth++;
		ASSERT_EQ(0, pt_raw_make(&raw));
		fd = fail_open_nth(0);
		ASSERT_EQ(0, fail_set_nth(fd, nth));
		pt_raw_close(&raw);
		reached = fail_reached(fd);
		close(fd);
		ASSERT_EQ(0, fail_spaces_become(0)) TH_LOG("close, allocation %u", nth);
	} while (reached);
	TH_LOG("%u allocations", nth - 1);
}

/* Workers free a task's memory. They do without what the module itself allocates for that. */
FAULT_TEST(workers_of_a_task)
{
	struct pt_raw raw;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&raw));
	pid = spawn_with_file(&raw);
	ASSERT_LT(0, pid);
	ASSERT_EQ(0, fail_in_module(FAIL_OWN));
	pt_kill(pid);
	EXPECT_LT(0, fail_count());
	EXPECT_EQ(0, fail_in_module(FAIL_NONE));
	EXPECT_EQ(0, pt_raw_count(raw.fd));
	EXPECT_EQ(PVAS_PART_FREE, pt_raw_part(&raw, raw.create.first).state);
	pid = fail_spawn(&raw);
	EXPECT_LT(0, pid);
	pt_kill(pid);
	pt_raw_close(&raw);
	EXPECT_EQ(0, fail_spaces_become(0));
}

/*
 * If not even the kernel's own functions get memory, nothing can be unmapped: that partition
 * has no task again, but its peers are not concerned, and the end of the space frees it.
 */
FAULT_LOG_TEST(nothing_can_be_unmapped, 1)
{
	unsigned int index;
	struct pt_raw raw;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&raw));
	index = raw.create.first;
	pid = spawn_with_file(&raw);
	ASSERT_LT(0, pid);
	ASSERT_EQ(0, fail_in_module(FAIL_ALL));
	pt_kill(pid);
	EXPECT_LT(0, fail_count());
	EXPECT_EQ(0, fail_in_module(FAIL_NONE));
	EXPECT_EQ(PVAS_PART_ENDING, pt_raw_part(&raw, index).state);
	EXPECT_EQ(-EINVAL, fail_spawn(&raw));
	pid = pt_raw_spawn_by(&raw, index + 1, fail_exec, NULL);
	EXPECT_LT(0, pid);
	EXPECT_EQ(pid, pt_raw_call(&raw, index + 1, SYS_getpid));
	pt_kill(pid);
	pt_raw_close(&raw);
	EXPECT_EQ(0, fail_spaces_become(0));
}

/* The last process or file of a space is gone while nothing can be allocated. */
FAULT_LOG_TEST(workers_of_a_space, 1)
{
	int device = pt_open();
	struct pt_raw raw;
	pid_t pid;

	ASSERT_LE(0, device);
	ASSERT_EQ(0, pt_raw_make(&raw));
	pid = spawn_with_file(&raw);
	ASSERT_LT(0, pid);
	ASSERT_EQ(0, fail_in_module(FAIL_ALL));
	pt_raw_close(&raw);
	pt_kill(pid);
	EXPECT_EQ(0, pt_raw_spaces_left(device));
	EXPECT_LT(0, fail_count());
	EXPECT_EQ(0, fail_in_module(FAIL_NONE));
	close(device);
}

FAULT_MAIN()
