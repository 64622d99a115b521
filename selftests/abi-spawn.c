// SPDX-License-Identifier: GPL-2.0-only
/*
 * PVAS_IOC_SPAWN, error by error, and what a task then is; without libpvas.
 * abi-user.c has who may.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

/* indices that can't be: reserved, out of range, overflowing: EINVAL */
PVAS_TEST(spawn_index)
{
	struct pt_raw raw;
	struct pvas_spawn spawn = { .size = sizeof(spawn) };
	unsigned int bad[] = { 0, -1, -2, 1U << 31, 1U << 28, 1U << 27, 2048, 2047 };
	size_t i;

	ASSERT_EQ(0, pt_raw_make(&raw));
	for (i = 0; i < PT_ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, pt_raw_arm(raw.fd, 0, bad[i], 0)) TH_LOG("index %u", bad[i]);
	}
	EXPECT_EQ(-EINVAL, pt_raw_arm(raw.fd, 0, raw.create.last + 1, 0));
	EXPECT_EQ(-EINVAL, pt_raw_arm(raw.fd, 0, 1, PVAS_SPAWN_ANY));
	EXPECT_EQ(-EINVAL, pt_raw_arm(raw.fd, 0, 1, PVAS_SPAWN_CANCEL));
	EXPECT_EQ(-EINVAL, pt_raw_arm(raw.fd, raw.create.id, 0, PVAS_SPAWN_CANCEL));
	EXPECT_EQ(-EINVAL, pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_CANCEL | PVAS_SPAWN_ANY));
	EXPECT_EQ(0, pt_raw_count(raw.fd));

	spawn.flags = PVAS_SPAWN_ANY;
	EXPECT_EQ(0, pt_ioctl(raw.fd, PVAS_IOC_SPAWN, &spawn));
	EXPECT_EQ(raw.create.first, spawn.index);
	EXPECT_EQ(raw.create.id, spawn.id);
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_CANCEL));
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, raw.create.last, 0));
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_CANCEL));
	pt_raw_close(&raw);
}

/* a second SPAWN: EALREADY; CANCEL once; then none is armed: ENOENT */
PVAS_TEST(spawn_twice_and_cancel)
{
	struct pt_raw raw;

	ASSERT_EQ(0, pt_raw_make(&raw));
	EXPECT_EQ(-ENOENT, pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_CANCEL));
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, 1, 0));
	EXPECT_EQ(-EALREADY, pt_raw_arm(raw.fd, 0, 2, 0));
	EXPECT_EQ(-EALREADY, pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_ANY));
	EXPECT_EQ(1, pt_raw_count(raw.fd));
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_CANCEL));
	EXPECT_EQ(-ENOENT, pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_CANCEL));
	EXPECT_EQ(0, pt_raw_count(raw.fd));
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, 1, 0));
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_CANCEL));
	pt_raw_close(&raw);
}

/* a partition that is taken, by an armed process or a task: EBUSY */
PVAS_TEST(spawn_taken)
{
	struct pt_raw raw;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&raw));
	pid = pt_raw_spawn(&raw, 5);
	ASSERT_LT(0, pid);
	EXPECT_EQ(-EBUSY, pt_raw_arm(raw.fd, 0, 5, 0));
	EXPECT_EQ(-EBUSY, pt_raw_spawn(&raw, 5));
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, 6, 0));
	EXPECT_EQ(-EBUSY, pt_raw_spawn(&raw, 6));
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_CANCEL));
	pt_kill(pid);
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, 5, 0));
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_CANCEL));
	pt_raw_close(&raw);
}

/* all taken: ENOSPC */
PVAS_TEST(spawn_full)
{
	struct pt_raw raw;
	pid_t pid[2];

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.create.table_entries = 3;
	ASSERT_EQ(0, pt_raw_create(&raw));
	ASSERT_EQ(2, raw.create.last);
	pid[0] = pt_raw_spawn(&raw, 1);
	pid[1] = pt_raw_spawn(&raw, 2);
	ASSERT_LT(0, pid[0]);
	ASSERT_LT(0, pid[1]);
	EXPECT_EQ(-ENOSPC, pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_ANY));
	pt_kill(pid[0]);
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_ANY));
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_CANCEL));
	pt_kill(pid[1]);
	pt_raw_close(&raw);
}

/* a file without a space, an id that is none, one that is over: ENOENT */
PVAS_TEST(spawn_no_space)
{
	struct pt_raw raw;
	int fd = pt_open();

	EXPECT_EQ(-ENOENT, pt_raw_arm(fd, 0, 1, 0));
	EXPECT_EQ(-ENOENT, pt_raw_arm(fd, 0x7ffffff0, 1, 0));
	EXPECT_EQ(-ENOENT, pt_raw_arm(fd, -1, 1, 0));
	ASSERT_EQ(0, pt_raw_make(&raw));
	EXPECT_EQ(0, pt_raw_arm(raw.fd, raw.create.id, 1, 0));
	EXPECT_EQ(0, pt_raw_arm(fd, 0, 0, PVAS_SPAWN_CANCEL));
	/* The id alone opens nothing. */
	EXPECT_EQ(-EPERM, pt_raw_arm(fd, raw.create.id, 1, 0));
	close(raw.fd);
	EXPECT_EQ(-ENOENT, pt_raw_arm(fd, raw.create.id, 1, 0));
	raw.fd = fd;
	pt_raw_close(&raw);
}

/* a task is a process with its own pid, and the partition table shows it */
PVAS_TEST(puppets)
{
	struct pt_raw raw;
	pid_t pid[8];
	uint32_t gen;
	unsigned int i;

	ASSERT_EQ(0, pt_raw_make(&raw));
	for (i = 0; i < 8; i++) {
		EXPECT_EQ(PVAS_PART_FREE, pt_raw_part(&raw, i + 1).state);
		pid[i] = pt_raw_spawn(&raw, i + 1);
		ASSERT_LT(0, pid[i]);
	}
	for (i = 0; i < 8; i++) {
		EXPECT_EQ(pid[i], pt_raw_call(&raw, i + 1, SYS_getpid));
		EXPECT_EQ(getpid(), pt_raw_call(&raw, i + 1, SYS_getppid));
		EXPECT_EQ(PVAS_PART_RUNNING, pt_raw_part(&raw, i + 1).state);
		EXPECT_EQ(pid[i], pt_raw_part(&raw, i + 1).pid);
	}
	gen = pt_raw_part(&raw, 3).gen;
	pt_raw_call(&raw, 3, SYS_kill, pid[2], SIGTERM);
	EXPECT_EQ(256 + SIGTERM, pt_wait(pid[2]));
	EXPECT_EQ(PVAS_PART_FREE, pt_raw_part(&raw, 3).state);
	EXPECT_EQ(0, pt_raw_part(&raw, 3).pid);
	pid[2] = pt_raw_spawn(&raw, 3);
	EXPECT_EQ(pid[2], pt_raw_call(&raw, 3, SYS_getpid));
	EXPECT_NE(gen, pt_raw_part(&raw, 3).gen);
	for (i = 0; i < 8; i++)
		pt_kill(pid[i]);
	EXPECT_EQ(0, pt_raw_count(raw.fd));
	pt_raw_close(&raw);
}

PT_MAIN()
