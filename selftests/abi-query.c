// SPDX-License-Identifier: GPL-2.0-only
/* PVAS_IOC_QUERY, error by error; without libpvas. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

/* a task finds its own space without knowing it, and its own index */
PVAS_TEST(query_by_task)
{
	struct pt_raw raw;
	struct pvas_query *query;
	pid_t pid;
	long fd;

	ASSERT_EQ(0, pt_raw_make(&raw));
	fd = pt_raw_spawn_open(&raw, 7, &pid);
	ASSERT_LE(0, fd);
	query = (struct pvas_query *)raw.data;
	*query = (struct pvas_query){ .size = sizeof(*query) };
	EXPECT_EQ(0, pt_raw_call(&raw, 7, SYS_ioctl, fd, PVAS_IOC_QUERY, PT_DATA_AT));
	EXPECT_EQ(raw.create.id, query->id);
	EXPECT_EQ(7, query->self);
	EXPECT_EQ(1, query->count);
	pt_kill(pid);
	pt_raw_close(&raw);
}

static int module_refs(void)
{
	char refs[16];

	return pt_read_file("/sys/module/pvas/refcnt", refs, sizeof(refs)) ? -1 : atoi(refs);
}

/*
 * an open /proc/pvas: rmmod is refused, and does not wait for its reader. Processes of the test
 * before may give their references back at any moment: so more than one look.
 */
PVAS_TEST(proc_holds_the_module)
{
	int fd, tries, before = -1, open_too = -1, after = -1;

	for (tries = 0; tries < 20 && (before != after || open_too != before + 1); tries++) {
		usleep(tries ? 100000 : 0);
		before = module_refs();
		fd = open("/proc/pvas", O_RDONLY);
		ASSERT_LE(0, fd);
		open_too = module_refs();
		close(fd);
		after = module_refs();
	}
	EXPECT_LE(0, before);
	EXPECT_EQ(before + 1, open_too);
	EXPECT_EQ(before, after);
}

/* no space at all: ESRCH; no such id: ENOENT */
PVAS_TEST(query_no_space)
{
	struct pvas_query query = { .size = sizeof(query) };
	int fd = pt_open();

	EXPECT_EQ(-ESRCH, pt_ioctl(fd, PVAS_IOC_QUERY, &query));
	query.id = 0x7ffffff0;
	EXPECT_EQ(-ENOENT, pt_ioctl(fd, PVAS_IOC_QUERY, &query));
	close(fd);
}

/* room for none, less, just enough, more: the count is always the truth */
PVAS_TEST(query_room)
{
	struct pvas_query query = { .size = sizeof(query) };
	struct pvas_task task[8];
	struct pt_raw raw;
	pid_t pid[2];
	unsigned int room, i;

	ASSERT_EQ(0, pt_raw_make(&raw));
	pid[0] = pt_raw_spawn(&raw, 2);
	pid[1] = pt_raw_spawn(&raw, 9);
	ASSERT_LT(0, pid[0]);
	ASSERT_LT(0, pid[1]);
	ASSERT_EQ(0, pt_raw_arm(raw.fd, 0, 4, 0));
	for (room = 0; room < 8; room++) {
		memset(task, 0xee, sizeof(task));
		query.count = room;
		query.tasks = (uint64_t)(room ? task : NULL);
		query.id = 0;
		EXPECT_EQ(0, pt_ioctl(raw.fd, PVAS_IOC_QUERY, &query));
		EXPECT_EQ(3, query.count);
		EXPECT_EQ(0, query.self);
		EXPECT_EQ(raw.create.id, query.id);
		EXPECT_EQ(raw.create.first, query.first);
		EXPECT_EQ(raw.create.last, query.last);
		EXPECT_EQ(PVAS_SHIFT_DEFAULT, query.shift);
		for (i = room < 3 ? room : 3; i < 8; i++) {
			EXPECT_EQ(0xeeeeeeee, task[i].index);
		}
	}
	EXPECT_EQ(2, task[0].index);
	EXPECT_EQ(PVAS_PART_RUNNING, task[0].state);
	EXPECT_EQ(pid[0], task[0].pid);
	EXPECT_EQ(1, task[0].users);
	EXPECT_EQ(2, task[0].load >> PVAS_SHIFT_DEFAULT);
	EXPECT_LT(task[0].load, task[0].heap);
	EXPECT_LE(task[0].heap, task[0].brk);
	EXPECT_EQ(4, task[1].index);
	EXPECT_EQ(PVAS_PART_ARMED, task[1].state);
	EXPECT_EQ(getpid(), task[1].pid);
	EXPECT_EQ(9, task[2].index);
	EXPECT_EQ(pid[1], task[2].pid);
	EXPECT_NE(task[2].gen, task[0].gen);

	query.count = 8;
	query.tasks = 8;
	EXPECT_EQ(-EFAULT, pt_ioctl(raw.fd, PVAS_IOC_QUERY, &query));
	query.tasks = -4096UL;
	EXPECT_EQ(-EFAULT, pt_ioctl(raw.fd, PVAS_IOC_QUERY, &query));
	query.tasks = (uint64_t)task;
	query.count = -1;	/* believed no further than there are tasks */
	EXPECT_EQ(0, pt_ioctl(raw.fd, PVAS_IOC_QUERY, &query));
	EXPECT_EQ(3, query.count);
	pt_kill(pid[0]);
	pt_kill(pid[1]);
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_CANCEL));
	pt_raw_close(&raw);
}

PT_MAIN()
