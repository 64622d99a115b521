// SPDX-License-Identifier: GPL-2.0-only
/*
 * Puppets that exec again and again: the new program begins in the loader, finds the same
 * request in its slot, and execs. Each takes the partition anew, which counts pvas_part.gen.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define ARGV_AT		256

/* EXECS: how many execs of a chain, and of each of two. Without, on a slow machine, fewer do. */
static uint32_t wanted(uint32_t otherwise)
{
	const char *execs = getenv("EXECS");

	return execs ? strtoul(execs, NULL, 10) : otherwise;
}

static void ask_to_exec(struct pt_raw *raw, unsigned int index)
{
	const uint64_t argv[] = { PT_DATA_AT, 0 };
	const long args[6] = { PT_DATA_AT, PT_DATA_AT + ARGV_AT, PT_DATA_AT + ARGV_AT + 8 };

	strcpy(raw->data, "/bin/true");
	memcpy(raw->data + ARGV_AT, argv, sizeof(argv));
	pt_raw_ask(raw, index, SYS_execve, args);
}

/*
 * Waits until tasks have begun that often since; false if they don't. On a slow machine a
 * twentieth has to do, if nobody asked for more.
 */
static bool has_begun(const struct pt_raw *raw, unsigned int index, uint32_t since, uint32_t n)
{
	bool asked = getenv("EXECS");
	long limit = now_ms() + 25000;
	uint32_t begun = 0;

	while (begun < n && (asked || now_ms() < limit)) {
		usleep(1000);
		begun = pt_raw_part(raw, index).gen - since;
	}
	return begun >= (asked ? n : n / 20);
}

/*
 * Ends a chain, and returns whether the puppet still does what it is told. It may have seen
 * half of the last request: then it answers that.
 */
static bool stop(struct pt_raw *raw, unsigned int index, pid_t pid)
{
	pt_raw_forget(raw, index);
	return pt_raw_call(raw, index, SYS_getpid) == pid ||
	       pt_raw_call(raw, index, SYS_getpid) == pid;
}

/* a thousand execs: the same process in the same partition, and nothing is left of the others */
MODULE_TEST(chain, "the ABI of /dev/pvas")
{
	struct pt_raw raw;
	uint32_t gen;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&raw));
	pid = pt_raw_spawn(&raw, 3);
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, pt_raw_call(&raw, 3, SYS_getpid));
	gen = pt_raw_part(&raw, 3).gen;
	ask_to_exec(&raw, 3);
	EXPECT_TRUE(has_begun(&raw, 3, gen, wanted(1000)));
	EXPECT_TRUE(stop(&raw, 3, pid));
	EXPECT_EQ(1, pt_raw_count(raw.fd));
	EXPECT_EQ(pid, pt_raw_part(&raw, 3).pid);
	pt_kill(pid);
	EXPECT_EQ(0, pt_raw_count(raw.fd));
	EXPECT_EQ(PVAS_PART_FREE, pt_raw_part(&raw, 3).state);
	pt_raw_close(&raw);
}

/* two at once, thousands of times; no index is lost */
MODULE_TEST(two_chains, "the ABI of /dev/pvas")
{
	pid_t pid[3];
	struct pt_raw raw;
	uint32_t gen;
	int i;

	ASSERT_EQ(0, pt_raw_make(&raw));
	for (i = 1; i <= 2; i++) {
		pid[i] = pt_raw_spawn(&raw, i);
		ASSERT_LT(0, pid[i]);
		ASSERT_EQ(pid[i], pt_raw_call(&raw, i, SYS_getpid));
	}
	gen = pt_raw_part(&raw, 2).gen;
	for (i = 1; i <= 2; i++)
		ask_to_exec(&raw, i);
	EXPECT_TRUE(has_begun(&raw, 1, gen, wanted(2000)));
	EXPECT_TRUE(has_begun(&raw, 2, gen, wanted(2000)));
	for (i = 1; i <= 2; i++) {
		EXPECT_TRUE(stop(&raw, i, pid[i]));
		pt_kill(pid[i]);
	}
	EXPECT_EQ(0, pt_raw_count(raw.fd));
	for (i = 1; i <= 2; i++) {
		pid[i] = pt_raw_spawn(&raw, i);
		ASSERT_LT(0, pid[i]);
		pt_kill(pid[i]);
	}
	pt_raw_close(&raw);
	EXPECT_EQ(0, pt_raw_spaces_left(pt_open()));
}

/* killed in the middle: the partition is free when wait() returns */
MODULE_TEST(killed_chains, "the ABI of /dev/pvas")
{
	struct pt_raw raw;
	int round;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&raw));
	for (round = 0; round < 200; round++) {
		pid = pt_raw_spawn(&raw, 1);
		ASSERT_LT(0, pid) TH_LOG("round %d", round);
		ask_to_exec(&raw, 1);
		usleep(round % 40 * 500);
		pt_kill(pid);
		ASSERT_EQ(0, pt_raw_count(raw.fd)) TH_LOG("round %d", round);
		EXPECT_EQ(PVAS_PART_FREE, pt_raw_part(&raw, 1).state) TH_LOG("round %d", round);
	}
	pt_raw_close(&raw);
	EXPECT_EQ(0, pt_raw_spaces_left(pt_open()));
}

/* the space's last file is closed meanwhile: the tasks go on */
MODULE_TEST(chain_without_a_file, "the ABI of /dev/pvas")
{
	struct pt_raw raw;
	uint32_t gen;
	pid_t pid;

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.create.flags = 0;
	ASSERT_EQ(0, pt_raw_create(&raw));
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, pt_raw_call(&raw, 1, SYS_getpid));
	/* The puppet's copy goes with its first exec. */
	close(raw.fd);
	gen = pt_raw_part(&raw, 1).gen;
	ask_to_exec(&raw, 1);
	EXPECT_TRUE(has_begun(&raw, 1, gen, 200));
	EXPECT_TRUE(stop(&raw, 1, pid));
	pt_kill(pid);
	raw.fd = pt_open();
	EXPECT_EQ(0, pt_raw_spaces_left(raw.fd));
	pt_raw_close(&raw);
}

PT_MAIN()
