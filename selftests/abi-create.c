// SPDX-License-Identifier: GPL-2.0-only
/* PVAS_IOC_CREATE, error by error; without libpvas. abi-user.c has who may. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define PARAM "/sys/module/pvas/parameters/"

/* the geometry is what was asked for; table and INFO show it */
PVAS_TEST(create)
{
	struct pt_raw raw;

	ASSERT_EQ(0, pt_raw_make(&raw));
	EXPECT_NE(0, raw.create.id);
	EXPECT_EQ(1, raw.create.first);
	EXPECT_LT(1, raw.create.last);
	EXPECT_GT(1U << (47 - PVAS_SHIFT_DEFAULT), raw.create.last);
	EXPECT_EQ(1, pt_raw_spaces(raw.fd));
	pt_raw_close(&raw);
	raw.fd = pt_open();
	EXPECT_EQ(0, pt_raw_spaces_left(raw.fd));
	close(raw.fd);
}

/* shifts from 32 to 43 and no other */
PVAS_TEST(create_shift)
{
	static const unsigned int bad[] = { 0, 1, 12, 31, 44, 47, 63, 64, 1U << 31, -1U };
	unsigned int shift;
	struct pt_raw raw;
	size_t i;

	for (i = 0; i < PT_ARRAY_SIZE(bad); i++) {
		pt_raw_init(&raw, bad[i]);
		EXPECT_EQ(-EINVAL, pt_raw_create(&raw));
		pt_raw_close(&raw);
	}
	for (shift = PVAS_SHIFT_MIN; shift <= PVAS_SHIFT_MAX; shift++) {
		pt_raw_init(&raw, shift);
		EXPECT_EQ(0, pt_raw_create(&raw)) TH_LOG("shift %u", shift);
		EXPECT_LE(1, raw.create.first);
		EXPECT_GT(1UL << (47 - shift), raw.create.last);
		pt_raw_close(&raw);
	}
}

/* small partitions: as many tasks as a space can have */
PVAS_TEST(create_4096_partitions)
{
	struct pt_raw raw;

	pt_raw_init(&raw, 34);
	ASSERT_EQ(0, pt_raw_create(&raw));
	EXPECT_EQ(PVAS_MAX_TASKS, raw.create.last - raw.create.first + 1);
	pt_raw_close(&raw);
	pt_raw_init(&raw, 35);
	ASSERT_EQ(0, pt_raw_create(&raw));
	EXPECT_LE(4090, raw.create.last - raw.create.first + 1);
	pt_raw_close(&raw);
}

/* loader and table must be mapped in partition 0, the table as a whole and aligned */
PVAS_TEST(create_addresses)
{
	static const struct {
		uint64_t loader, table;
		uint32_t entries;
	} bad[] = {
		{ 0, PT_TABLE_AT, 100 },
		{ PT_STUB_AT - 4096, PT_TABLE_AT, 100 },
		{ PT_STUB_AT + 4096, PT_TABLE_AT, 100 },
		{ PT_DATA_AT, PT_TABLE_AT, 100 },	/* not executable */
		{ 1UL << 36, PT_TABLE_AT, 100 },
		{ -1UL, PT_TABLE_AT, 100 },
		{ PT_STUB_AT, 0, 100 },
		{ PT_STUB_AT, PT_STUB_AT, 2 },		/* not writable */
		{ PT_STUB_AT, PT_TABLE_AT + 8, 100 },
		{ PT_STUB_AT, PT_TABLE_AT + 64, PT_TABLE_ENTRIES },
		{ PT_STUB_AT, PT_TABLE_AT - 64, 100 },
		{ PT_STUB_AT, -64UL, 100 },
		{ PT_STUB_AT, 1UL << 36, 100 },
		{ PT_STUB_AT, PT_TABLE_AT, 0 },
		{ PT_STUB_AT, PT_TABLE_AT, 1 },
		{ PT_STUB_AT, PT_TABLE_AT, -1 },
		{ PT_STUB_AT, PT_TABLE_AT, 1U << 26 },
	};
	struct pt_raw raw;
	size_t i;

	for (i = 0; i < PT_ARRAY_SIZE(bad); i++) {
		pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
		raw.create.loader = bad[i].loader;
		raw.create.table = bad[i].table;
		raw.create.table_entries = bad[i].entries;
		EXPECT_EQ(-EINVAL, pt_raw_create(&raw)) TH_LOG("row %zu", i);
		pt_raw_close(&raw);
	}
	/* The table's length limits the indices. */
	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.create.table_entries = 10;
	EXPECT_EQ(0, pt_raw_create(&raw));
	EXPECT_EQ(9, raw.create.last);
	pt_raw_close(&raw);
}

static void *sleep_thread(void *arg)
{
	pause();
	return arg;
}

static int start_thread(void *arg)
{
	pthread_t t;

	(void)arg;
	return -pthread_create(&t, NULL, sleep_thread, NULL);
}

static int vm_child(void *arg)
{
	(void)arg;
	return syscall(SYS_pause);
}

/* Dies with the creator, for it is in the test's process group and killed at its end. */
static int share_mm(void *arg)
{
	static char stack[65536] __attribute__((aligned(16)));
	pid_t pid = clone(vm_child, stack + sizeof(stack), CLONE_VM, NULL);

	*(pid_t *)arg = pid;
	return pid < 0 ? -errno : 0;
}

/* a threaded process, and one that shares its mm with another: EBUSY */
PVAS_TEST(create_shared_mm)
{
	struct pt_raw raw;
	pid_t *pid = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = start_thread;
	raw.as_is = true;
	EXPECT_EQ(-EBUSY, pt_raw_create(&raw));
	pt_raw_close(&raw);

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = share_mm;
	raw.as_is = true;
	raw.prepare_arg = pid;
	EXPECT_EQ(-EBUSY, pt_raw_create(&raw));
	ASSERT_LT(0, *pid);
	kill(*pid, SIGKILL);
	pt_raw_close(&raw);
}

/* a second CREATE on one file, and one of the mm that is a space already: EBUSY */
PVAS_TEST(create_twice)
{
	struct pt_raw raw, again;

	ASSERT_EQ(0, pt_raw_make(&raw));
	pt_raw_init(&again, PVAS_SHIFT_DEFAULT);
	close(again.fd);
	again.fd = raw.fd;
	EXPECT_EQ(-EBUSY, pt_raw_create(&again));
	EXPECT_EQ(0, pt_raw_count(raw.fd));
	pt_raw_close(&raw);
}

/* the mm that is a space already can't become another: EBUSY */
PVAS_TEST(create_of_a_space)
{
	struct pt_raw raw, again;

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	pt_raw_init(&again, PVAS_SHIFT_DEFAULT);
	again.first = &raw;
	EXPECT_EQ(-EBUSY, pt_raw_create(&again));
	pt_raw_close(&again);
	pt_raw_close(&raw);
}

/* CREATE by a task: EBUSY */
PVAS_TEST(create_by_task)
{
	struct pt_raw raw;
	struct pvas_create *create;
	pid_t pid;
	long fd;

	ASSERT_EQ(0, pt_raw_make(&raw));
	fd = pt_raw_spawn_open(&raw, 1, &pid);
	ASSERT_LE(0, fd);
	create = (struct pvas_create *)raw.data;
	*create = raw.create;
	create->id = create->first = create->last = 0;
	EXPECT_EQ(-EBUSY, pt_raw_call(&raw, 1, SYS_ioctl, fd, PVAS_IOC_CREATE, PT_DATA_AT));
	pt_kill(pid);
	pt_raw_close(&raw);
}

static int map_much(void *arg)
{
	void *p = mmap(NULL, 300UL << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)arg;
	return p == MAP_FAILED ? -errno : 0;
}

/* a creator that has more than 256 MiB mapped: E2BIG */
PVAS_TEST(create_too_big)
{
	struct pt_raw raw;

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = map_much;
	raw.as_is = true;
	EXPECT_EQ(-E2BIG, pt_raw_create(&raw));
	pt_raw_close(&raw);
}

/* the answer can't be written: EFAULT, and closing the file leaves nothing */
PVAS_TEST(create_readonly_struct)
{
	struct pt_raw raw;

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.user = mmap((void *)(PT_STUB_AT + (1 << 16)), 4096, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	EXPECT_EQ(-EFAULT, pt_raw_create(&raw));
	pt_raw_close(&raw);
	raw.fd = pt_open();
	EXPECT_EQ(0, pt_raw_spaces_left(raw.fd));
	close(raw.fd);
}

/* 64 spaces at once, with different ids; max_spaces is a limit: ENOSPC */
PVAS_TEST(create_many)
{
	struct pt_raw raw[64], more;
	char limit[32];
	size_t i, j;

	for (i = 0; i < PT_ARRAY_SIZE(raw); i++) {
		ASSERT_EQ(0, pt_raw_make(&raw[i]));
	}
	for (i = 0; i < PT_ARRAY_SIZE(raw); i++) {
		for (j = 0; j < i; j++) {
			EXPECT_NE(raw[i].create.id, raw[j].create.id);
		}
	}
	EXPECT_EQ(64, pt_raw_spaces(raw[0].fd));
	if (!geteuid()) {
		ASSERT_EQ(0, pt_read_file(PARAM "max_spaces", limit, sizeof(limit)));
		ASSERT_EQ(0, pt_write_file(PARAM "max_spaces", "64"));
		EXPECT_EQ(-ENOSPC, pt_raw_make(&more));
		pt_raw_close(&more);
		ASSERT_EQ(0, pt_write_file(PARAM "max_spaces", limit));
	}
	for (i = 0; i < PT_ARRAY_SIZE(raw); i++)
		pt_raw_close(&raw[i]);
	EXPECT_EQ(0, pt_raw_make(&more));
	pt_raw_close(&more);
}

PT_MAIN()
