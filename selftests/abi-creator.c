// SPDX-License-Identifier: GPL-2.0-only
/*
 * The process that makes a space: what its mm may hold, and what it can still do. Without
 * libpvas.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define PAGE 4096UL
#define RW (PROT_READ | PROT_WRITE)
#define EXTRA_AT (PT_STUB_AT + 0x10000UL)	/* stays mapped, see pt_raw.user */
#define MUCH_AT 0x40000000UL
#define SYS_MSEAL 462	/* of 6.10 */
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED)

static int at_extra(size_t len, int flags, int fd, off_t off)
{
	void *p = mmap((void *)EXTRA_AT, len, RW, flags | MAP_FIXED, fd, off);

	return p == MAP_FAILED ? -errno : 0;
}

static int map_memfd(int flags)
{
	int fd = memfd_create("x", 0);

	return fd < 0 || ftruncate(fd, 1 << 20) ? -errno : at_extra(PAGE, flags, fd, 0);
}

static int shared_memfd(void *arg)
{
	(void)arg;
	return map_memfd(MAP_SHARED);
}

static int private_memfd(void *arg)
{
	(void)arg;
	return map_memfd(MAP_PRIVATE);
}

static int shared_anon(void *arg)
{
	(void)arg;
	return at_extra(PAGE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static int regular_file(void *arg)
{
	(void)arg;
	return at_extra(PAGE, MAP_PRIVATE, open("/proc/self/exe", O_RDONLY), 0);
}

static int zero_device(void *arg)
{
	(void)arg;
	return at_extra(PAGE, MAP_PRIVATE, open("/dev/zero", O_RDWR), 0);
}

/* The ring whose file table could hold the file that holds the space. */
static int uring(void *arg)
{
	struct io_uring_params p = { 0 };
	struct pt_raw *raw = arg;
	int fd = syscall(SYS_io_uring_setup, 4, &p);
	void *at;

	if (fd < 0)
		return -ENOTSUP;
	/* The kernel chooses where. */
	at = mmap(NULL, PAGE, RW, MAP_SHARED, fd, IORING_OFF_SQ_RING);
	raw->keep = (uintptr_t)at;
	return at == MAP_FAILED ? -errno : 0;
}

static int stack(void *arg)
{
	(void)arg;
	return at_extra(PAGE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
}

static int locked(void *arg)
{
	return at_extra(PAGE, ANON, -1, 0) ?: mlock((char *)EXTRA_AT, PAGE) ? -errno : 0 * !arg;
}

static int locked_later(void *arg)
{
	return at_extra(PAGE, ANON, -1, 0) ?: mlockall(MCL_FUTURE) ? -errno : 0 * !arg;
}

static int huge(void *arg)
{
	(void)arg;
	return at_extra(2UL << 20, ANON | MAP_HUGETLB | MAP_NORESERVE, -1, 0) ? -ENOTSUP : 0;
}

static int aio(void *arg)
{
	aio_context_t ctx = 0;

	(void)arg;
	return syscall(SYS_io_setup, 1, &ctx) ? -ENOTSUP : at_extra(PAGE, ANON, -1, 0);
}

/* Nobody can unmap it, not even the module. */
static int sealed(void *arg)
{
	int err = at_extra(PAGE, ANON, -1, 0);

	(void)arg;
	if (!err && syscall(SYS_MSEAL, EXTRA_AT, PAGE, 0))
		err = -ENOTSUP;
	return err;
}

static int elsewhere(void *arg)
{
	void *p = mmap((void *)(3UL << PVAS_SHIFT_DEFAULT), PAGE, RW,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	(void)arg;
	return p == MAP_FAILED ? -errno : at_extra(PAGE, ANON, -1, 0);
}

static int plain(void *arg)
{
	(void)arg;
	return at_extra(PAGE, ANON, -1, 0);
}

static int create_with(int (*prepare)(void *), uintptr_t keep)
{
	struct pt_raw raw;
	int err;

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = prepare;
	raw.prepare_arg = &raw;
	raw.keep = keep;
	err = pt_raw_create(&raw);
	pt_raw_close(&raw);
	return err;
}

/* nothing but private anonymous memory in partition 0, with nothing that hangs on it: EBUSY */
PVAS_TEST(areas)
{
	static const struct {
		const char *name;
		int (*prepare)(void *);
		uintptr_t keep;
	} bad[] = {
		{ "shared memfd", shared_memfd, EXTRA_AT },
		{ "private memfd", private_memfd, EXTRA_AT },
		{ "shared anonymous memory", shared_anon, EXTRA_AT },
		{ "file", regular_file, EXTRA_AT },
		{ "/dev/zero", zero_device, EXTRA_AT },
		{ "io_uring", uring, EXTRA_AT },
		{ "stack", stack, EXTRA_AT },
		{ "locked memory", locked, EXTRA_AT },
		{ "memory locked later", locked_later, EXTRA_AT },
		{ "huge pages", huge, EXTRA_AT },
		{ "aio", aio, EXTRA_AT },
		{ "sealed memory", sealed, EXTRA_AT },
		{ "another partition", elsewhere, 3UL << PVAS_SHIFT_DEFAULT },
	};
	size_t i;
	int err;

	EXPECT_EQ(0, create_with(plain, EXTRA_AT));
	for (i = 0; i < PT_ARRAY_SIZE(bad); i++) {
		err = create_with(bad[i].prepare, bad[i].keep);
		if (err == -ENOTSUP) {
			TH_LOG("%s: not available here", bad[i].name);
		} else {
			EXPECT_EQ(-EBUSY, err) TH_LOG("%s", bad[i].name);
		}
	}
}

static int many_areas(void *arg)
{
	unsigned long i;

	(void)arg;
	for (i = 0; i < 200; i++)
		if (mmap((void *)(EXTRA_AT + i * 2 * PAGE), PAGE, RW, ANON, -1, 0) == MAP_FAILED)
			return -errno;
	return 0;
}

static int much_memory(void *arg)
{
	void *p = mmap((void *)MUCH_AT, 40UL << 20, RW, ANON | MAP_POPULATE, -1, 0);

	(void)arg;
	return p == MAP_FAILED ? -errno : 0;
}

/* not much of it, and not in many pieces: E2BIG */
PVAS_TEST(amount)
{
	struct pt_raw raw;

	EXPECT_EQ(-E2BIG, create_with(much_memory, MUCH_AT));
	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = many_areas;
	raw.as_is = true;
	EXPECT_EQ(-E2BIG, pt_raw_create(&raw));
	pt_raw_close(&raw);
}

/* ---- afterwards ---- */

/* Results of what the creator does once it has made the space. */
static long after[8];

static int create_and(struct pt_raw *raw, const struct pt_slot *steps, size_t n)
{
	pt_raw_init(raw, PVAS_SHIFT_DEFAULT);
	raw->after = steps;
	raw->n_after = n;
	raw->after_ret = after;
	return pt_raw_create(raw);
}

/* it maps nothing more, anywhere, and can't unmap or lock what there is */
PVAS_TEST(maps_nothing)
{
	static const struct pt_slot steps[] = {
		{ .nr = SYS_mmap, .args = { 0, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0 } },
		{ .nr = SYS_mmap, .args = { 5UL << PVAS_SHIFT_DEFAULT, PAGE, RW, ANON, -1, 0 } },
		{ .nr = SYS_mmap, .args = { 0x30000000, PAGE, RW, ANON, -1, 0 } },
		{ .nr = SYS_munmap, .args = { PT_DATA_AT, PAGE } },
		{ .nr = SYS_mlock, .args = { PT_SLOTS_AT, PAGE } },
		{ .nr = SYS_io_setup, .args = { 1, PT_DATA_AT + PT_DATA_LEN - 8 } },
	};
	static const long want[] = { -ENOMEM, -ENOMEM, -ENOMEM, -EPERM, -EPERM, -ENOSYS };
	struct pt_raw raw;
	size_t i;

	ASSERT_EQ(0, create_and(&raw, steps, PT_ARRAY_SIZE(steps)));
	for (i = 0; i < PT_ARRAY_SIZE(want); i++) {
		EXPECT_EQ(want[i], after[i]) TH_LOG("step %zu", i);
	}
	EXPECT_EQ(0, pt_raw_count(raw.fd));
	pt_raw_close(&raw);
}

#define ZERO_FD 200
#define LATER (48L << 20)

/* Untouched it is little; and something to fill it with */
static int room_and_zeroes(void *arg)
{
	void *p = mmap((void *)MUCH_AT, LATER, RW, ANON | MAP_NORESERVE, -1, 0);
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	(void)arg;
	return p == MAP_FAILED || fd < 0 || dup2(fd, ZERO_FD) < 0 ? -errno : 0;
}

/* The space with that room; the creator fills @len bytes of it after CREATE. */
static int create_and_fill(struct pt_raw *raw, long len)
{
	struct pt_slot fill = { .nr = SYS_read, .args = { ZERO_FD, MUCH_AT, len } };
	int err;

	pt_raw_init(raw, PVAS_SHIFT_DEFAULT);
	raw->prepare = room_and_zeroes;
	raw->prepare_arg = raw;
	raw->keep = MUCH_AT;
	raw->after = &fill;
	raw->n_after = 1;
	raw->after_ret = after;
	err = pt_raw_create(raw);
	return err ?: after[0] == len ? 0 : -EIO;
}

/* An armed process: it has taken a partition, and none of the memory. */
static pid_t start_armed(struct pt_raw *raw, uint32_t index)
{
	int fds[2], err = -EPIPE;
	pid_t pid;

	if (pipe(fds))
		return -errno;
	pid = fork();
	if (!pid) {
		err = pt_raw_arm(raw->fd, 0, index, 0);
		if (write(fds[1], &err, sizeof(err)) == sizeof(err))
			pause();
		_exit(0);
	}
	if (read(fds[0], &err, sizeof(err)) != sizeof(err))
		err = -EPIPE;
	close(fds[0]);
	close(fds[1]);
	return err ?: pid;
}

/* what it fills before it goes is nobody's then: a space with much of that ends */
PVAS_TEST(fills_and_goes)
{
	struct pt_raw raw;

	ASSERT_EQ(0, create_and_fill(&raw, 1L << 20));
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, 1, 0));
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_CANCEL));
	pt_raw_close(&raw);
	ASSERT_EQ(0, create_and_fill(&raw, LATER));
	EXPECT_EQ(-ENOENT, pt_raw_arm(raw.fd, 0, 1, 0));
	pt_raw_close(&raw);
}

/* nobody else adds to it then, who has opened /proc/PID/mem before */
PVAS_TEST(filled_from_outside)
{
	char byte = 1;
	struct pt_raw raw;

	ASSERT_EQ(0, create_and_fill(&raw, PAGE));
	EXPECT_EQ(-1, pwrite(raw.mem, &byte, 1, MUCH_AT));
	EXPECT_EQ(-1, pwrite(raw.mem, &byte, 1, MUCH_AT + PAGE));
	EXPECT_EQ(1, pread(raw.mem, &byte, 1, MUCH_AT));
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, 1, 0));
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_CANCEL));
	pt_raw_close(&raw);
}

/* A call that fills a space from the page @held on, which nobody has read yet */
struct long_write {
	pid_t pid;
	char *held;
	char *rest;
	ssize_t n;
};

static void *do_long_write(void *arg)
{
	/* The kernel takes up to 4 MiB at once. */
	struct iovec from[LATER >> 20], to[] = {
		{ (void *)MUCH_AT, PVAS_IDLE_MAX - (1 << 20) },
		{ (void *)(MUCH_AT + PVAS_IDLE_MAX - (1 << 20)), LATER - PVAS_IDLE_MAX },
	};
	struct long_write *w = arg;
	size_t i;

	for (i = 0; i < PT_ARRAY_SIZE(from); i++)
		from[i] = (struct iovec){ i ? w->rest : w->held, i ? 1 << 20 : PAGE };
	w->n = process_vm_writev(w->pid, from, PT_ARRAY_SIZE(from), to, PT_ARRAY_SIZE(to), 0);
	return NULL;
}

/* nor by a call that began before */
PVAS_TEST(filled_by_a_long_call)
{
	struct long_write w = { .rest = mmap(NULL, 1 << 20, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
				.held = mmap(NULL, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) };
	struct uffdio_register reg = { .range = { (uintptr_t)w.held, PAGE },
				       .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_zeropage zero = { .range = reg.range };
	struct uffdio_api api = { .api = UFFD_API };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffd_msg fault;
	struct pt_raw raw;
	pthread_t thread;

	PT_NEED_ROOT();
	ASSERT_EQ(0, ioctl(fd, UFFDIO_API, &api));
	ASSERT_EQ(0, ioctl(fd, UFFDIO_REGISTER, &reg));
	ASSERT_EQ(0, create_and_fill(&raw, PAGE));
	w.pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, w.pid);
	ASSERT_EQ(0, pthread_create(&thread, NULL, do_long_write, &w));
	ASSERT_EQ(sizeof(fault), read(fd, &fault, sizeof(fault)));
	pt_kill(w.pid);
	ASSERT_EQ(0, ioctl(fd, UFFDIO_ZEROPAGE, &zero));
	pthread_join(thread, NULL);
	EXPECT_LT(0, w.n);
	EXPECT_GE(PVAS_IDLE_MAX, w.n);
	pt_raw_close(&raw);
	close(fd);
}

/* so does one that a task has filled, though a process is armed for it */
PVAS_TEST(task_fills_and_goes)
{
	struct pt_raw raw;
	pid_t armed, task;
	long fd;

	ASSERT_EQ(0, create_and_fill(&raw, PAGE));
	task = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, task);
	armed = start_armed(&raw, 2);
	ASSERT_LT(0, armed);
	strcpy(raw.data, "/dev/zero");
	fd = pt_raw_call(&raw, 1, SYS_openat, AT_FDCWD, PT_DATA_AT, O_RDONLY);
	ASSERT_LT(0, fd);
	EXPECT_EQ(LATER, pt_raw_call(&raw, 1, SYS_read, fd, MUCH_AT, LATER));
	pt_kill(task);
	EXPECT_EQ(-ENOENT, pt_raw_arm(raw.fd, 0, 3, 0));
	pt_kill(armed);
	pt_raw_close(&raw);
}

/* its ids and namespaces stay as they are */
PVAS_TEST(stays_itself)
{
	static const struct pt_slot steps[] = {
		{ .nr = SYS_setresuid, .args = { 65534, 65534, 65534 } },
		{ .nr = SYS_unshare, .args = { CLONE_NEWUSER } },
		{ .nr = SYS_unshare, .args = { 0x80 } },	/* CLONE_NEWTIME */
		{ .nr = SYS_unshare, .args = { CLONE_NEWNS } },
	};
	struct pt_raw raw;
	size_t i;

	PT_NEED_ROOT();
	ASSERT_EQ(0, create_and(&raw, steps, PT_ARRAY_SIZE(steps)));
	for (i = 0; i < PT_ARRAY_SIZE(steps); i++) {
		EXPECT_EQ(-EPERM, after[i]) TH_LOG("step %zu", i);
	}
	pt_raw_close(&raw);
}

PT_MAIN()
