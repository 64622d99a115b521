// SPDX-License-Identifier: GPL-2.0
/* The ABI of /dev/pvas, call by call and error by error, without libpvas. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/prctl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define PARAM "/sys/module/pvas/parameters/"

static struct pvas_info new_info(void)
{
	return (struct pvas_info){ .size = sizeof(struct pvas_info) };
}

/* ---- what holds for every command ---- */

/* INFO says the ABI's version and limits */
PVAS_TEST(info)
{
	struct pvas_info info = new_info();
	int fd = pt_open();

	ASSERT_EQ(0, pt_ioctl(fd, PVAS_IOC_INFO, &info));
	EXPECT_EQ(PVAS_ABI_MAJOR, info.abi_major);
	EXPECT_LE(PVAS_ABI_MINOR, info.abi_minor);
	EXPECT_EQ(PVAS_SHIFT_MIN, info.shift_min);
	EXPECT_EQ(PVAS_SHIFT_MAX, info.shift_max);
	EXPECT_EQ(PVAS_MAX_TASKS, info.max_tasks);
	EXPECT_EQ(0, info.spaces);
	EXPECT_TRUE(info.features & PVAS_FEATURE_TASK_EXE);
	close(fd);
}

/* another number, type, direction, or none of it: ENOTTY */
PVAS_TEST(unknown_command)
{
	struct pvas_info info = new_info();
	int fd = pt_open();

	EXPECT_EQ(-ENOTTY, pt_ioctl(fd, _IOWR(PVAS_IOC_MAGIC, 100, struct pvas_info), &info));
	EXPECT_EQ(-ENOTTY, pt_ioctl(fd, _IOWR(PVAS_IOC_MAGIC, 255, struct pvas_info), &info));
	EXPECT_EQ(-ENOTTY, pt_ioctl(fd, _IOWR(PVAS_IOC_MAGIC + 1, 0, struct pvas_info), &info));
	EXPECT_EQ(-ENOTTY, pt_ioctl(fd, _IOR(PVAS_IOC_MAGIC, 0, struct pvas_info), &info));
	EXPECT_EQ(-ENOTTY, pt_ioctl(fd, _IOW(PVAS_IOC_MAGIC, 0, struct pvas_info), &info));
	EXPECT_EQ(-ENOTTY, pt_ioctl(fd, _IO(PVAS_IOC_MAGIC, 0), &info));
	EXPECT_EQ(-ENOTTY, pt_ioctl(fd, 0x5401 /* TCGETS */, &info));
	close(fd);
}

/* read, write, mmap and lseek of the device mean nothing */
PVAS_TEST(not_a_file)
{
	int fd = pt_open();
	char c = 0;

	EXPECT_EQ(-1, read(fd, &c, 1));
	EXPECT_EQ(-1, write(fd, &c, 1));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0));
	close(fd);
}

static const struct {
	const char *name;
	unsigned long cmd;
	unsigned int size;
	unsigned int reserved_at;	/* offset of the last reserved byte */
} commands[] = {
	{ "INFO", PVAS_IOC_INFO, sizeof(struct pvas_info), sizeof(struct pvas_info) - 1 },
	{ "CREATE", PVAS_IOC_CREATE, sizeof(struct pvas_create), sizeof(struct pvas_create) - 1 },
	{ "SPAWN", PVAS_IOC_SPAWN, sizeof(struct pvas_spawn), sizeof(struct pvas_spawn) - 1 },
	{ "DESTROY", PVAS_IOC_DESTROY, sizeof(struct pvas_destroy),
	  sizeof(struct pvas_destroy) - 1 },
	{ "QUERY", PVAS_IOC_QUERY, sizeof(struct pvas_query), sizeof(struct pvas_query) - 1 },
	{ "ATTACH", PVAS_IOC_ATTACH, sizeof(struct pvas_attach), sizeof(struct pvas_attach) - 1 },
};

/* a struct smaller than the first published: EINVAL, for every command */
PVAS_TEST(size_too_small)
{
	uint32_t buf[64] = { 0 };
	int fd = pt_open();
	size_t i;

	for (i = 0; i < PT_ARRAY_SIZE(commands); i++) {
		TH_LOG("%s", commands[i].name);
		buf[0] = 0;
		EXPECT_EQ(-EINVAL, pt_ioctl(fd, commands[i].cmd, buf));
		buf[0] = 4;
		EXPECT_EQ(-EINVAL, pt_ioctl(fd, commands[i].cmd, buf));
		buf[0] = commands[i].size - 1;
		EXPECT_EQ(-EINVAL, pt_ioctl(fd, commands[i].cmd, buf));
	}
	close(fd);
}

/* a larger struct with something in it that the module does not know: E2BIG */
PVAS_TEST(size_too_large)
{
	unsigned char buf[256];
	int fd = pt_open();
	size_t i;

	for (i = 0; i < PT_ARRAY_SIZE(commands); i++) {
		TH_LOG("%s", commands[i].name);
		memset(buf, 0, sizeof(buf));
		*(uint32_t *)buf = commands[i].size + 8;
		buf[commands[i].size + 7] = 1;
		EXPECT_EQ(-E2BIG, pt_ioctl(fd, commands[i].cmd, buf));
	}
	close(fd);
}

/* a larger struct whose tail is zero is as good as ours */
PVAS_TEST(size_larger_with_zeros)
{
	union { struct pvas_info info; char bytes[4096]; } u;
	int fd = pt_open();

	memset(&u, 0, sizeof(u));
	u.info.size = sizeof(u.info) + 8;
	EXPECT_EQ(0, pt_ioctl(fd, PVAS_IOC_INFO, &u));
	EXPECT_EQ(PVAS_ABI_MAJOR, u.info.abi_major);
	memset(&u, 0, sizeof(u));
	u.info.size = sizeof(u);
	EXPECT_EQ(0, pt_ioctl(fd, PVAS_IOC_INFO, &u));
	u.info.size = -1;
	EXPECT_GT(0, pt_ioctl(fd, PVAS_IOC_INFO, &u));
	close(fd);
}

/* a flag nobody knows: EINVAL, for every command */
PVAS_TEST(unknown_flags)
{
	uint32_t buf[64];
	int fd = pt_open();
	size_t i;

	for (i = 0; i < PT_ARRAY_SIZE(commands); i++) {
		TH_LOG("%s", commands[i].name);
		memset(buf, 0, sizeof(buf));
		buf[0] = commands[i].size;
		buf[1] = 1U << 31;
		EXPECT_EQ(-EINVAL, pt_ioctl(fd, commands[i].cmd, buf));
		buf[1] = 1U << 7;
		EXPECT_EQ(-EINVAL, pt_ioctl(fd, commands[i].cmd, buf));
	}
	close(fd);
}

/* a reserved member that is not zero: EINVAL, for every command */
PVAS_TEST(reserved_not_zero)
{
	unsigned char buf[256];
	int fd = pt_open();
	size_t i;

	for (i = 0; i < PT_ARRAY_SIZE(commands); i++) {
		TH_LOG("%s", commands[i].name);
		memset(buf, 0, sizeof(buf));
		*(uint32_t *)buf = commands[i].size;
		buf[commands[i].reserved_at] = 1;
		EXPECT_EQ(-EINVAL, pt_ioctl(fd, commands[i].cmd, buf));
	}
	close(fd);
}

/* a pointer to nothing, to the kernel, over the edge of a mapping: EFAULT */
PVAS_TEST(bad_pointers)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = pt_open();
	size_t i;

	ASSERT_NE(MAP_FAILED, page);
	munmap(page + 4096, 4096);
	for (i = 0; i < PT_ARRAY_SIZE(commands); i++) {
		uint32_t *edge = (uint32_t *)(page + 4096 - 8);

		TH_LOG("%s", commands[i].name);
		EXPECT_EQ(-EFAULT, pt_ioctl(fd, commands[i].cmd, NULL));
		EXPECT_EQ(-EFAULT, pt_ioctl(fd, commands[i].cmd, (void *)0xffffffff81000000UL));
		EXPECT_EQ(-EFAULT, pt_ioctl(fd, commands[i].cmd, page + 4096));
		edge[0] = commands[i].size;
		edge[1] = 0;
		EXPECT_EQ(-EFAULT, pt_ioctl(fd, commands[i].cmd, edge));
	}
	close(fd);
}

/* a struct that can't be written: EFAULT, and nothing has changed */
PVAS_TEST(readonly_struct)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct pvas_spawn *spawn = page;
	struct pvas_info *info = page;
	struct pt_raw raw;

	ASSERT_EQ(0, pt_raw_make(&raw));
	*info = new_info();
	mprotect(page, 4096, PROT_READ);
	EXPECT_EQ(-EFAULT, pt_ioctl(raw.fd, PVAS_IOC_INFO, info));
	mprotect(page, 4096, PROT_READ | PROT_WRITE);

	*spawn = (struct pvas_spawn){ .size = sizeof(*spawn), .index = raw.create.first };
	mprotect(page, 4096, PROT_READ);
	EXPECT_EQ(-EFAULT, pt_ioctl(raw.fd, PVAS_IOC_SPAWN, spawn));
	EXPECT_EQ(-ENOENT, pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_CANCEL));
	munmap(page, 4096);
	pt_raw_close(&raw);
}

/* ---- CREATE ---- */

/* the geometry is what was asked for; table and INFO show it */
PVAS_TEST(create)
{
	struct pvas_info info = new_info();
	struct pt_raw raw;

	ASSERT_EQ(0, pt_raw_make(&raw));
	EXPECT_NE(0, raw.create.id);
	EXPECT_EQ(1, raw.create.first);
	EXPECT_LT(1, raw.create.last);
	EXPECT_GT(1U << (47 - PVAS_SHIFT_DEFAULT), raw.create.last);
	EXPECT_EQ(0, pt_ioctl(raw.fd, PVAS_IOC_INFO, &info));
	EXPECT_EQ(1, info.spaces);
	pt_raw_close(&raw);
	raw.fd = pt_open();
	EXPECT_EQ(0, pt_ioctl(raw.fd, PVAS_IOC_INFO, &info));
	EXPECT_EQ(0, info.spaces);
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
	EXPECT_EQ(-EBUSY, pt_raw_create(&raw));
	pt_raw_close(&raw);

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = share_mm;
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

static int create_first(void *arg)
{
	struct pt_raw *raw = arg;

	return pt_ioctl(raw->fd, PVAS_IOC_CREATE, &raw->create);
}

/* the mm that is a space already can't become another: EBUSY */
PVAS_TEST(create_of_a_space)
{
	struct pt_raw raw, again;

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	pt_raw_init(&again, PVAS_SHIFT_DEFAULT);
	again.prepare = create_first;
	again.prepare_arg = &raw;
	EXPECT_EQ(-EBUSY, pt_raw_create(&again));
	pt_raw_close(&again);
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
	EXPECT_EQ(-E2BIG, pt_raw_create(&raw));
	pt_raw_close(&raw);
}

static int not_dumpable(void *arg)
{
	(void)arg;
	return prctl(PR_SET_DUMPABLE, 0) ? -errno : 0;
}

static int dumpable(void)
{
	return prctl(PR_SET_DUMPABLE, 1) ? -errno : 0;
}

static int mix_uids(void *arg)
{
	(void)arg;
	return setresuid(65534, 0, 0) ? -errno : dumpable();
}

static int mix_gids(void *arg)
{
	(void)arg;
	return setresgid(0, 65534, 0) ? -errno : dumpable();
}

/* a creator that is not dumpable: EPERM */
PVAS_TEST(create_not_dumpable)
{
	struct pt_raw raw;

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = not_dumpable;
	EXPECT_EQ(-EPERM, pt_raw_create(&raw));
	pt_raw_close(&raw);
}

/* a creator with mixed user or group ids: EPERM */
PVAS_TEST(create_mixed_ids)
{
	struct pt_raw raw;

	PT_NEED_ROOT();
	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = mix_uids;
	EXPECT_EQ(-EPERM, pt_raw_create(&raw));
	raw.prepare = mix_gids;
	EXPECT_EQ(-EPERM, pt_raw_create(&raw));
	pt_raw_close(&raw);
}

static int unshare_time(void *arg)
{
	(void)arg;
	return unshare(CLONE_NEWTIME) ? -errno : 0;
}

static int create_once(void *arg)
{
	struct pt_raw raw;
	int err;

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	(void)arg;
	err = pt_raw_create(&raw);
	pt_raw_close(&raw);
	return err;
}

/* Its children are in the new namespace. */
static int create_in_time_ns(void *arg)
{
	int err = unshare_time(NULL);

	return err == -EINVAL || err == -ENOSYS ? -ENOTSUP : err ?: pt_in_child(create_once, arg);
}

/* a time namespace other than the first: EPERM */
PVAS_TEST(create_in_time_namespace)
{
	int err;

	PT_NEED_ROOT();
	err = pt_in_child(create_in_time_ns, NULL);
	if (err == -ENOTSUP)
		SKIP(return, "no time namespaces in this kernel");
	EXPECT_EQ(-EPERM, err);
}

/* the answer can't be written: EFAULT, and closing the file leaves nothing */
PVAS_TEST(create_readonly_struct)
{
	struct pvas_info info = new_info();
	struct pt_raw raw;

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.user = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(raw.user, &raw.create, sizeof(raw.create));
	mprotect(raw.user, 4096, PROT_READ);
	EXPECT_EQ(-EFAULT, pt_raw_create(&raw));
	pt_raw_close(&raw);
	raw.fd = pt_open();
	EXPECT_EQ(0, pt_ioctl(raw.fd, PVAS_IOC_INFO, &info));
	EXPECT_EQ(0, info.spaces);
	close(raw.fd);
}

/* 64 spaces at once, with different ids; max_spaces is a limit: ENOSPC */
PVAS_TEST(create_many)
{
	struct pt_raw raw[64], more;
	struct pvas_info info = new_info();
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
	EXPECT_EQ(0, pt_ioctl(raw[0].fd, PVAS_IOC_INFO, &info));
	EXPECT_EQ(64, info.spaces);
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

/* ---- SPAWN ---- */

/* indices that can't be: reserved, out of range, overflowing: EINVAL */
PVAS_TEST(spawn_index)
{
	struct pt_raw raw;
	struct pvas_spawn spawn = { .size = sizeof(spawn) };
	unsigned int own = (unsigned long)&create_once >> PVAS_SHIFT_DEFAULT;
	unsigned int bad[] = { 0, -1, -2, 1U << 31, 1U << 28, 1U << 27, 2048, 2047 };
	size_t i;

	ASSERT_EQ(0, pt_raw_make(&raw));
	for (i = 0; i < PT_ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, pt_raw_arm(raw.fd, 0, bad[i], 0)) TH_LOG("index %u", bad[i]);
	}
	EXPECT_EQ(-EINVAL, pt_raw_arm(raw.fd, 0, raw.create.last + 1, 0));
	/* The creator, our child, had its text there. */
	if (own >= raw.create.first && own <= raw.create.last) {
		EXPECT_EQ(-EINVAL, pt_raw_arm(raw.fd, 0, own, 0));
	}
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

static int arm_inherited(void *arg)
{
	struct pt_raw *raw = arg;

	return pt_raw_arm(raw->fd, 0, 3, 0);
}

static int arm_by_id(void *arg)
{
	struct pt_raw *raw = arg;

	return pt_raw_arm(pt_open(), raw->create.id, 3, 0);
}

static int query_by_id(void *arg)
{
	struct pt_raw *raw = arg;
	struct pvas_query query = { .size = sizeof(query), .id = raw->create.id };

	return pt_ioctl(pt_open(), PVAS_IOC_QUERY, &query);
}

/* another user's space: EPERM, by an inherited file and by its id */
PVAS_TEST(other_user)
{
	struct pt_raw raw;

	PT_NEED_ROOT();
	ASSERT_EQ(0, pt_raw_make(&raw));
	EXPECT_EQ(-EPERM, pt_as_nobody(arm_inherited, &raw));
	EXPECT_EQ(-EPERM, pt_as_nobody(arm_by_id, &raw));
	EXPECT_EQ(-EPERM, pt_as_nobody(query_by_id, &raw));
	EXPECT_EQ(0, pt_in_child(query_by_id, &raw));
	EXPECT_EQ(0, pt_raw_count(raw.fd));
	pt_raw_close(&raw);
}

static int make_and_tell(void *arg)
{
	static struct pt_raw raw;

	(void)arg;
	return pt_raw_make(&raw) ?: (int)raw.create.id;
}

/* even root can't enter a user's space; a user makes his own */
PVAS_TEST(root_is_another_user)
{
	struct pt_raw raw;
	int fds[2], id = 0;
	pid_t pid;

	PT_NEED_ROOT();
	ASSERT_EQ(0, pipe(fds));
	pid = fork();
	if (!pid) {
		if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
		    setresuid(65534, 65534, 65534) || dumpable())
			_exit(1);
		id = make_and_tell(NULL);
		_exit(write(fds[1], &id, sizeof(id)) != sizeof(id) || pause());
	}
	ASSERT_EQ(sizeof(id), read(fds[0], &id, sizeof(id)));
	EXPECT_LT(0, id);
	raw.create.id = id;
	EXPECT_EQ(-EPERM, arm_by_id(&raw));
	EXPECT_EQ(0, query_by_id(&raw));	/* CAP_SYS_PTRACE may look */
	pt_kill(pid);
}

static int arm_in_user_ns(void *arg)
{
	return unshare(CLONE_NEWUSER) ? -ENOTSUP : dumpable() ?: arm_inherited(arg);
}

static int arm_in_pid_ns(void *arg)
{
	return unshare(CLONE_NEWPID) ? -ENOTSUP : pt_in_child(arm_inherited, arg);
}

static int arm_in_time_ns(void *arg)
{
	return unshare(CLONE_NEWTIME) ? -ENOTSUP : pt_in_child(arm_inherited, arg);
}

static int arm_with_mixed_uids(void *arg)
{
	return mix_uids(NULL) ?: arm_inherited(arg);
}

static int arm_with_mixed_gids(void *arg)
{
	return mix_gids(NULL) ?: arm_inherited(arg);
}

/* from another user, pid or time namespace, or with mixed ids: EPERM */
PVAS_TEST(spawn_credentials)
{
	struct pt_raw raw;

	PT_NEED_ROOT();
	ASSERT_EQ(0, pt_raw_make(&raw));
	EXPECT_EQ(-EPERM, pt_in_child(arm_in_user_ns, &raw));
	EXPECT_EQ(-EPERM, pt_in_child(arm_in_pid_ns, &raw));
	EXPECT_EQ(-EPERM, pt_in_child(arm_in_time_ns, &raw));
	EXPECT_EQ(-EPERM, pt_in_child(arm_with_mixed_uids, &raw));
	EXPECT_EQ(-EPERM, pt_in_child(arm_with_mixed_gids, &raw));
	EXPECT_EQ(0, pt_in_child(arm_inherited, &raw));
	pt_raw_close(&raw);
}

static int arm_with_fewer_capabilities(void *arg)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -ENOTSUP;
	data[0].effective &= ~(1U << CAP_SYS_ADMIN);
	data[0].permitted &= ~(1U << CAP_SYS_ADMIN);
	if (syscall(SYS_capset, &header, data))
		return -ENOTSUP;
	return dumpable() ?: arm_inherited(arg);
}

/* with fewer capabilities than the tasks have, as ptrace would refuse: EPERM */
PVAS_TEST(spawn_with_other_capabilities)
{
	struct pt_raw raw;
	pid_t pid;

	PT_NEED_ROOT();
	ASSERT_EQ(0, pt_raw_make(&raw));
	pid = pt_raw_spawn(&raw, 7);
	ASSERT_LT(0, pid);
	EXPECT_EQ(-EPERM, pt_in_child(arm_with_fewer_capabilities, &raw));
	EXPECT_EQ(0, pt_in_child(arm_inherited, &raw));
	pt_kill(pid);
	pt_raw_close(&raw);
}

static int create_in_user_ns(void *arg)
{
	struct pt_raw raw;
	int err = unshare(CLONE_NEWUSER) ? -ENOTSUP : dumpable() ?: pt_raw_make(&raw);
	pid_t pid;

	(void)arg;
	if (err)
		return err;
	pid = pt_raw_spawn(&raw, 1);
	if (pid < 0)
		return pid;
	err = pt_raw_call(&raw, 1, SYS_getpid) == pid ? 0 : -EIO;
	pt_kill(pid);
	return err;
}

/* in a user namespace one makes and enters one's own space */
PVAS_TEST(own_space_in_user_namespace)
{
	int err = pt_in_child(create_in_user_ns, NULL);

	if (err == -ENOTSUP)
		SKIP(return, "no user namespaces for this user");
	EXPECT_EQ(0, err);
}

/* ---- tasks ---- */

/* a task is a process with its own pid, and the partition table shows it */
PVAS_TEST(puppets)
{
	struct pt_raw raw;
	pid_t pid[8];
	uint32_t gen;
	unsigned int i;

	ASSERT_EQ(0, pt_raw_make(&raw));
	for (i = 0; i < 8; i++) {
		EXPECT_EQ(PVAS_PART_FREE, raw.table[i + 1].state);
		pid[i] = pt_raw_spawn(&raw, i + 1);
		ASSERT_LT(0, pid[i]);
	}
	for (i = 0; i < 8; i++) {
		EXPECT_EQ(pid[i], pt_raw_call(&raw, i + 1, SYS_getpid));
		EXPECT_EQ(getpid(), pt_raw_call(&raw, i + 1, SYS_getppid));
		EXPECT_EQ(PVAS_PART_RUNNING, raw.table[i + 1].state);
		EXPECT_EQ(pid[i], raw.table[i + 1].pid);
	}
	gen = raw.table[3].gen;
	pt_raw_call(&raw, 3, SYS_kill, pid[2], SIGTERM);
	EXPECT_EQ(256 + SIGTERM, pt_wait(pid[2]));
	EXPECT_EQ(PVAS_PART_FREE, raw.table[3].state);
	EXPECT_EQ(0, raw.table[3].pid);
	pid[2] = pt_raw_spawn(&raw, 3);
	EXPECT_EQ(pid[2], pt_raw_call(&raw, 3, SYS_getpid));
	EXPECT_NE(gen, raw.table[3].gen);
	for (i = 0; i < 8; i++)
		pt_kill(pid[i]);
	EXPECT_EQ(0, pt_raw_count(raw.fd));
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
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	strcpy(raw.data, "/dev/pvas");
	fd = pt_raw_call(&raw, 1, SYS_openat, AT_FDCWD, PT_DATA_AT, O_RDWR);
	ASSERT_LE(0, fd);
	create = (struct pvas_create *)raw.data;
	*create = raw.create;
	create->id = create->first = create->last = 0;
	EXPECT_EQ(-EBUSY, pt_raw_call(&raw, 1, SYS_ioctl, fd, PVAS_IOC_CREATE, PT_DATA_AT));
	pt_kill(pid);
	pt_raw_close(&raw);
}

/* a task finds its own space without knowing it, and its own index */
PVAS_TEST(query_by_task)
{
	struct pt_raw raw;
	struct pvas_query *query;
	pid_t pid;
	long fd;

	ASSERT_EQ(0, pt_raw_make(&raw));
	pid = pt_raw_spawn(&raw, 7);
	ASSERT_LT(0, pid);
	strcpy(raw.data, "/dev/pvas");
	fd = pt_raw_call(&raw, 7, SYS_openat, AT_FDCWD, PT_DATA_AT, O_RDWR);
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

/* ---- QUERY ---- */

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

/* ---- DESTROY ---- */

/* with a task: EBUSY; with KILL it ends it; then the file can make another */
PVAS_TEST(destroy)
{
	struct pvas_destroy destroy = { .size = sizeof(destroy) };
	struct pt_raw raw, second;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&raw));
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	EXPECT_EQ(-EBUSY, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
	EXPECT_EQ(pid, pt_raw_call(&raw, 1, SYS_getpid));
	destroy.flags = PVAS_DESTROY_KILL;
	EXPECT_EQ(0, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
	EXPECT_EQ(256 + SIGKILL, pt_wait(pid));
	EXPECT_EQ(-ENOENT, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
	EXPECT_EQ(-ENOENT, pt_raw_arm(raw.fd, 0, 1, 0));
	EXPECT_EQ(-ENOENT, pt_raw_arm(raw.fd, raw.create.id, 1, 0));
	EXPECT_EQ(-ESRCH, pt_raw_count(raw.fd));

	pt_raw_init(&second, PVAS_SHIFT_DEFAULT);
	close(second.fd);
	second.fd = raw.fd;
	EXPECT_EQ(0, pt_raw_create(&second));
	EXPECT_NE(raw.create.id, second.create.id);
	destroy.flags = 0;
	EXPECT_EQ(0, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
	pt_raw_close(&raw);
}

/* an armed process is a reason too: EBUSY; with KILL it gets SIGKILL */
PVAS_TEST(destroy_armed)
{
	struct pvas_destroy destroy = { .size = sizeof(destroy) };
	struct pt_raw raw;
	int fds[2], err = -1;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&raw));
	ASSERT_EQ(0, pipe(fds));
	pid = fork();
	if (!pid) {
		err = pt_raw_arm(raw.fd, 0, 1, 0);
		_exit(write(fds[1], &err, sizeof(err)) != sizeof(err) || pause());
	}
	ASSERT_EQ(sizeof(err), read(fds[0], &err, sizeof(err)));
	ASSERT_EQ(0, err);
	EXPECT_EQ(-EBUSY, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
	destroy.flags = PVAS_DESTROY_KILL;
	EXPECT_EQ(0, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
	EXPECT_EQ(256 + SIGKILL, pt_wait(pid));
	pt_raw_close(&raw);
}

/* closing the file kills the tasks, if so asked, and only then */
PVAS_TEST(close_kills_or_not)
{
	struct pt_raw raw;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&raw));
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	close(raw.fd);
	EXPECT_EQ(256 + SIGKILL, pt_wait(pid));

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.create.flags = 0;
	ASSERT_EQ(0, pt_raw_create(&raw));
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	close(raw.fd);
	raw.fd = pt_open();
	EXPECT_EQ(pid, pt_raw_call(&raw, 1, SYS_getpid));
	/* Closed to new ones. */
	EXPECT_EQ(-ENOENT, pt_raw_arm(raw.fd, raw.create.id, 2, 0));
	EXPECT_EQ(0, query_by_id(&raw));
	pt_kill(pid);
	EXPECT_EQ(-ENOENT, query_by_id(&raw));
	pt_raw_close(&raw);
}

/* ---- keys ---- */

static int make_with_key(struct pt_raw *raw, const char *key, uint32_t len)
{
	pt_raw_init(raw, PVAS_SHIFT_DEFAULT);
	raw->create.flags |= PVAS_CREATE_KEY;
	raw->create.key = (uint64_t)key;
	raw->create.key_len = len;
	return pt_raw_create(raw);
}

static int attach(int fd, const char *key, uint32_t len, struct pvas_attach *attach)
{
	*attach = (struct pvas_attach){
		.size = sizeof(*attach), .key = (uint64_t)key, .key_len = len,
	};
	return pt_ioctl(fd, PVAS_IOC_ATTACH, attach);
}

/* a key without the flag, the flag without a key, too long, no memory */
PVAS_TEST(key_arguments)
{
	static char key[PVAS_KEY_MAX + 1];
	struct pvas_attach a;
	struct pt_raw raw;
	int fd = pt_open();

	memset(key, 'k', sizeof(key));
	EXPECT_EQ(-EINVAL, make_with_key(&raw, key, 0));
	EXPECT_EQ(-EINVAL, make_with_key(&raw, key, sizeof(key)));
	EXPECT_EQ(-EFAULT, make_with_key(&raw, NULL, 5));
	EXPECT_EQ(-EFAULT, make_with_key(&raw, (char *)-4096, 5));
	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.create.key_len = 5;
	EXPECT_EQ(-EINVAL, pt_raw_create(&raw));
	raw.create.key_len = 0;
	raw.create.key = (uint64_t)key;
	EXPECT_EQ(-EINVAL, pt_raw_create(&raw));
	EXPECT_EQ(-EINVAL, attach(fd, key, 0, &a));
	EXPECT_EQ(-EINVAL, attach(fd, key, sizeof(key), &a));
	EXPECT_EQ(-EFAULT, attach(fd, NULL, 5, &a));
	EXPECT_EQ(-ENOENT, attach(fd, key, PVAS_KEY_MAX, &a));
	close(fd);
}

static int attach_job(void *arg)
{
	struct pvas_attach a;

	(void)arg;
	return attach(pt_open(), "job", 3, &a);
}

static int make_job(void *arg)
{
	struct pt_raw raw;

	(void)arg;
	return dumpable() ?: make_with_key(&raw, "job", 3);
}

/* found by its key, by its user alone, until the last file and task are gone */
PVAS_TEST(key_attach)
{
	struct pvas_attach a;
	struct pt_raw raw, other;
	int fd = pt_open();
	pid_t pid;

	ASSERT_EQ(0, make_with_key(&raw, "job", 3));
	EXPECT_EQ(-EEXIST, make_with_key(&other, "job", 3));
	EXPECT_EQ(0, make_with_key(&other, "job2", 4));
	pt_raw_close(&other);
	EXPECT_EQ(-ENOENT, attach(fd, "jo", 2, &a));
	EXPECT_EQ(-EBUSY, attach(raw.fd, "job", 3, &a));
	EXPECT_EQ(0, attach(fd, "job", 3, &a));
	EXPECT_EQ(raw.create.id, a.id);
	EXPECT_EQ(raw.create.shift, a.shift);
	EXPECT_EQ(raw.create.first, a.first);
	EXPECT_EQ(raw.create.last, a.last);
	EXPECT_EQ(-EBUSY, attach(fd, "job", 3, &a));
	if (!geteuid()) {
		EXPECT_EQ(-ENOENT, pt_as_nobody(attach_job, NULL));
		EXPECT_EQ(0, pt_as_nobody(make_job, NULL));
	}
	/* The second file is enough to keep it, and to spawn. */
	close(raw.fd);
	raw.fd = fd;
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	EXPECT_EQ(pid, pt_raw_call(&raw, 1, SYS_getpid));
	close(fd);
	EXPECT_EQ(256 + SIGKILL, pt_wait(pid));
	raw.fd = pt_open();
	EXPECT_EQ(-ENOENT, attach(raw.fd, "job", 3, &a));
	EXPECT_EQ(0, make_with_key(&other, "job", 3));
	pt_raw_close(&other);
	pt_raw_close(&raw);
}

/* ---- others ---- */

/* an ia32 call of a 64-bit process: there is no 32-bit ABI */
PVAS_TEST(ia32_ioctl)
{
	struct pvas_info *info = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int fd = pt_open();
	long err;

	ASSERT_NE(MAP_FAILED, (void *)info);
	if (pt_ia32(20 /* getpid */, 0, 0, 0, 0, 0, 0) != getpid())
		SKIP(return, "no ia32 system calls in this kernel");
	*info = new_info();
	err = pt_ia32(54 /* ioctl */, fd, PVAS_IOC_INFO, (long)info, 0, 0, 0);
	EXPECT_EQ(-ENOTTY, err);
	EXPECT_EQ(0, info->abi_major);
	close(fd);
}

/* /proc/pvas lists spaces, and tasks for their owner only */
static int see_no_task(void *arg)
{
	char text[4096];
	int fd = open("/proc/pvas", O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	(void)arg;
	if (n <= 0)
		return -EIO;
	text[n] = '\0';
	return !strstr(text, "space ") ? -ENOENT : strstr(text, "task ") ? -EPERM : 0;
}

PVAS_TEST(proc_pvas)
{
	char line[256];
	struct pt_raw raw;
	unsigned int id = 0;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&raw));
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	ASSERT_EQ(0, pt_read_file("/proc/pvas", line, sizeof(line)));
	EXPECT_EQ(1, sscanf(line, "space %u ", &id));
	EXPECT_EQ(raw.create.id, id);
	EXPECT_EQ(-EPERM, see_no_task(NULL));
	if (!geteuid()) {
		EXPECT_EQ(0, pt_as_nobody(see_no_task, NULL));
	}
	pt_kill(pid);
	pt_raw_close(&raw);
}

/* two files race to create, spawn and destroy: nothing but the errors expected */
PVAS_TEST(destroy_races_with_spawn)
{
	struct pvas_destroy destroy = { .size = sizeof(destroy), .flags = PVAS_DESTROY_KILL };
	struct pt_raw raw;
	unsigned int round;
	pid_t pid;
	int ret;

	for (round = 0; round < 30; round++) {
		ASSERT_EQ(0, pt_raw_make(&raw));
		pid = fork();
		if (!pid) {
			unsigned int i;

			for (i = 0; i < 1000; i++) {
				ret = pt_raw_arm(raw.fd, raw.create.id, 1 + i % 40, 0);
				/* EPERM: no longer this file's, and not closed yet */
				if (ret && ret != -ENOENT && ret != -EPERM)
					_exit(1);
				if (!ret && pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_CANCEL))
					_exit(2);
			}
			_exit(0);
		}
		usleep(1000 * (round % 8));
		EXPECT_EQ(0, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
		ret = pt_wait(pid);
		EXPECT_TRUE(ret == 0 || ret == 256 + SIGKILL) TH_LOG("child %d", ret);
		pt_raw_close(&raw);
	}
}

PT_MAIN()
