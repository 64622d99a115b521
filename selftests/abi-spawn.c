// SPDX-License-Identifier: GPL-2.0-only
/*
 * PVAS_IOC_SPAWN, error by error, and what a task then is; without libpvas.
 * abi-user.c has who may.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
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

#define ARGV_AT		(PT_DATA_AT + 256)

static void ask_to_exec(struct pt_raw *raw, unsigned int index)
{
	const uint64_t argv[] = { PT_DATA_AT, 0 };
	const long args[6] = { PT_DATA_AT, ARGV_AT, ARGV_AT + 8 };

	strcpy(raw->data, "/bin/true");
	memcpy(raw->data + ARGV_AT - PT_DATA_AT, argv, sizeof(argv));
	pt_raw_ask(raw, index, SYS_execve, args);
}

/* As pt_raw_spawn(), traced, and by another call than execve(2) */
static int exec_traced(void __attribute__((unused)) *arg)
{
	char *argv[] = { (char *)"puppet", NULL };
	int fd = open("/bin/true", O_PATH);

	if (ptrace(PTRACE_TRACEME, 0, 0, 0))
		return -errno;
	syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH);
	return -errno;
}

/* a tracer sees the end of execve(2), whatever began it, as with any 64-bit program */
PVAS_TEST(seen_by_a_tracer)
{
	struct user_regs_struct regs;
	struct pt_raw raw;
	int status;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&raw));
	pid = pt_raw_spawn_by(&raw, 1, exec_traced, NULL);
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFSTOPPED(status));
	ASSERT_EQ(0, ptrace(PTRACE_GETREGS, pid, 0, &regs));
	EXPECT_EQ(SYS_execve, regs.orig_rax);
	EXPECT_EQ(0, ptrace(PTRACE_DETACH, pid, 0, 0));
	pt_kill(pid);
	pt_raw_close(&raw);
}

/* The puppet at index 1 of @raw arms itself for index 2 of @to, and execs; 0 or -errno */
static long move_to(struct pt_raw *raw, struct pt_raw *to, int fd)
{
	const struct pvas_spawn spawn = {
		.size = sizeof(spawn), .id = to->create.id, .index = 2,
	};
	long err;

	memcpy(raw->data, &spawn, sizeof(spawn));
	err = pt_raw_call(raw, 1, SYS_ioctl, fd, PVAS_IOC_SPAWN, PT_DATA_AT);
	if (err)
		return err;
	pt_raw_forget(to, 2);
	ask_to_exec(raw, 1);
	return 0;
}

/* A puppet at index 1, to which @file of ours is open as the descriptor */
static pid_t start_with(struct pt_raw *raw, int file, int fd)
{
	/* Without O_CLOEXEC */
	int err = dup2(file, fd) < 0 ? -errno : 0;
	pid_t pid = err ?: pt_raw_spawn(raw, 1);

	close(fd);
	return pid;
}

#define FILE_OF_IT	210

/* a task that is armed for another partition leaves its own, which is free then, and enters */
PVAS_TEST(to_another_partition)
{
	struct pt_raw raw;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&raw));
	pid = start_with(&raw, raw.fd, FILE_OF_IT);
	ASSERT_LT(0, pid);
	ASSERT_EQ(0, move_to(&raw, &raw, FILE_OF_IT));
	EXPECT_EQ(pid, pt_raw_call(&raw, 2, SYS_getpid));
	EXPECT_EQ(1, pt_raw_count(raw.fd));
	EXPECT_EQ(PVAS_PART_FREE, pt_raw_part(&raw, 1).state);
	EXPECT_EQ(pid, pt_raw_part(&raw, 2).pid);
	pt_kill(pid);
	EXPECT_EQ(0, pt_raw_count(raw.fd));
	pt_raw_close(&raw);
	EXPECT_EQ(0, pt_raw_spaces_left(pt_open()));
}

/* and one of another space */
PVAS_TEST(to_another_space)
{
	struct pt_raw from, to;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&from));
	ASSERT_EQ(0, pt_raw_make(&to));
	pid = start_with(&from, to.fd, FILE_OF_IT);
	ASSERT_LT(0, pid);
	ASSERT_EQ(0, move_to(&from, &to, FILE_OF_IT));
	EXPECT_EQ(pid, pt_raw_call(&to, 2, SYS_getpid));
	EXPECT_EQ(0, pt_raw_count(from.fd));
	EXPECT_EQ(PVAS_PART_FREE, pt_raw_part(&from, 1).state);
	EXPECT_EQ(1, pt_raw_count(to.fd));
	pt_kill(pid);
	pt_raw_close(&from);
	pt_raw_close(&to);
	EXPECT_EQ(0, pt_raw_spaces_left(pt_open()));
}

PT_MAIN()
