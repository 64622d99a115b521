// SPDX-License-Identifier: GPL-2.0-only
/*
 * PVAS_IOC_CREATE while other processes use the creator's memory: they register it with a
 * userfaultfd, or read it into a page that does not come.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

/* ---- a userfaultfd of the creator's, in the hands of another process ---- */

#define WATCHED_AT (PT_STUB_AT + 0x10000UL)
#define SINK_FD 201
#define ROUNDS 80

static struct {
	long delay_us;
	volatile int done;
	volatile int registered;
	volatile pid_t waits;
	volatile int go;
	volatile uintptr_t at;	/* what is registered then: a page, or more */
	volatile size_t len;
} *watch;

static void register_later(int uffd)
{
	struct uffdio_register reg = {
		.range = { WATCHED_AT, 4096 }, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	usleep(watch->delay_us);
	watch->registered = !ioctl(uffd, UFFDIO_REGISTER, &reg);
	watch->done = 1;
	/* Its last file would end the registration. */
	usleep(200000);
	_exit(0);
}

/* A page that is not touched */
static bool map_watched(void)
{
	return mmap((void *)WATCHED_AT, 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/* In the creator: such a page, and a process that will register it. */
static int hand_over_uffd(void *arg)
{
	struct uffdio_api api = { .api = UFFD_API };
	/* With that, the kernel's own access to it fails, and does not wait. */
	int fd = pt_userfaultfd(O_CLOEXEC), fds[2];

	(void)arg;
	if (!map_watched() || fd < 0 || ioctl(fd, UFFDIO_API, &api) || pipe(fds) ||
	    dup2(fds[1], SINK_FD) < 0)
		return -ENOTSUP;
	if (!fork())
		register_later(fd);
	close(fd);
	return 0;
}

/* One more CREATE; -EFAULT if the area is registered in a space that was made */
static int create_watched(void)
{
	static const struct pt_slot look = { .nr = SYS_write, .args = { SINK_FD, WATCHED_AT, 1 } };
	struct pt_raw raw;
	long ret = 0;
	int err;

	watch->done = 0;
	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = hand_over_uffd;
	raw.keep = WATCHED_AT;
	raw.after = &look;
	raw.n_after = 1;
	raw.after_ret = &ret;
	err = pt_raw_create(&raw);
	pt_raw_close(&raw);
	while (!watch->done)
		usleep(1000);
	return err ?: ret == -EFAULT ? -EFAULT : 0;
}

/* does not register an area while the space is made: the kernel's worker would wait there */
PVAS_TEST(userfaultfd_meanwhile)
{
	int round, err, made = 0, refused = 0;

	watch = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)watch);
	watch->delay_us = 2000;
	for (round = 0; round < ROUNDS; round++) {
		err = create_watched();
		EXPECT_TRUE(!err || err == -EBUSY) TH_LOG("error %d in round %d", err, round);
		/* Towards the moment between the check and the publication */
		watch->delay_us += err == -EBUSY ? watch->delay_us / 8 + 1 + rand() % 400 :
						   -(watch->delay_us / 16 + rand() % 400);
		if (watch->delay_us < 0)
			watch->delay_us = 0;
		made += !err;
		refused += err == -EBUSY;
	}
	TH_LOG("%d spaces made, %d refused", made, refused);
	EXPECT_LT(0, made);
}

/* ---- the same by a REGISTER that is on its way during CREATE ---- */

struct call {
	int fd;
	struct uffdio_register *page;
};

static void *register_there(void *arg)
{
	struct call *call = arg;

	watch->registered = ioctl(call->fd, UFFDIO_REGISTER, call->page) ? -errno : 1;
	watch->done = 1;
	return NULL;
}

/* It has no effect, or, in 5.10, finds nothing mapped. */
static int registered(void)
{
	return pt_kernel_before(5, 11) ? -ENOMEM : 1;
}

static int open_uffd(uint64_t features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	return fd < 0 || ioctl(fd, UFFDIO_API, &api) ? -1 : fd;
}

/* @use, in a thread, uses call.page, which comes when @watch->go is set. */
static void hold_up(void *(*use)(void *call), int fd)
{
	static char page[4096] __attribute__((aligned(4096)));
	struct uffdio_register *reg = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register own = {
		.range = { (uintptr_t)reg, 4096 }, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	struct uffdio_copy copy = {
		.dst = (uintptr_t)reg, .src = (uintptr_t)page, .len = 4096,
	};
	struct call call = { fd, reg };
	int monitor = open_uffd(0);
	struct uffd_msg msg;
	pthread_t thread;

	/* The end of this process ends what waits for it, so that the test can fail. */
	alarm(15);
	if (monitor < 0 || ioctl(monitor, UFFDIO_REGISTER, &own) ||
	    pthread_create(&thread, NULL, use, &call) ||
	    read(monitor, &msg, sizeof(msg)) != sizeof(msg))
		_exit(1);
	watch->waits = getpid();
	while (!watch->go)
		usleep(1000);
	*(struct uffdio_register *)page = (struct uffdio_register){
		.range = { watch->at, watch->len ?: 4096 }, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	if (ioctl(monitor, UFFDIO_COPY, &copy))
		_exit(1);
	for (;;)
		pause();
}

static int leave_registering(void *arg)
{
	int fd = open_uffd(*(uint64_t *)arg), i;

	if (fd < 0 || !map_watched())
		return -ENOTSUP;
	if (!fork())
		hold_up(register_there, fd);
	close(fd);
	for (i = 0; i < 500 && !watch->waits; i++)
		usleep(10000);
	return watch->waits ? 0 : -ETIME;
}

static void *read_there(void *arg)
{
	struct call *call = arg;

	return (void *)read(call->fd, call->page, 4096);
}

/* Any user may read this file, and holds the mm while the page does not come. */
static int leave_reading(void *arg)
{
	char path[32];
	int i;

	(void)arg;
	snprintf(path, sizeof(path), "/proc/%d/cmdline", getpid());
	if (!fork())
		hold_up(read_there, open(path, O_RDONLY | O_CLOEXEC));
	for (i = 0; i < 500 && !watch->waits; i++)
		usleep(10000);
	return watch->waits ? 0 : -ETIME;
}

/* A reader of the creator's memory is no reason to fail, however long it takes. */
PVAS_TEST(slow_reader)
{
	struct pt_raw raw;

	PT_NEED_ROOT();
	watch = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)watch);
	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = leave_reading;
	EXPECT_EQ(0, pt_raw_create(&raw));
	EXPECT_EQ(0, kill(watch->waits, 0));
	kill(watch->waits, SIGKILL);
	pt_raw_close(&raw);
}

/* A space whose creator has left a REGISTER behind, by a userfaultfd with these features */
static int create_registering(struct pt_raw *raw, uint64_t *features)
{
	watch = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (watch == MAP_FAILED)
		return -errno;
	pt_raw_init(raw, PVAS_SHIFT_DEFAULT);
	raw->prepare = leave_registering;
	raw->prepare_arg = features;
	raw->keep = WATCHED_AT;
	return pt_raw_create(raw);
}

/* nor by one that has begun before and goes on after it: tasks enter, end and are freed */
PVAS_TEST(userfaultfd_on_its_way)
{
	uint64_t features = 0;
	struct pt_raw raw;
	pid_t pid;

	PT_NEED_ROOT();
	ASSERT_EQ(0, create_registering(&raw, &features));
	watch->at = PT_TABLE_AT;
	watch->go = 1;
	while (!watch->done)
		usleep(1000);
	EXPECT_EQ(registered(), watch->registered);
	pid = pt_raw_spawn(&raw, 1);
	EXPECT_LT(0, pid);
	pt_kill(pid);
	EXPECT_EQ(0, pt_raw_count(raw.fd));
	/* All that without the end of the one who could have answered. */
	EXPECT_EQ(0, kill(watch->waits, 0));
	kill(watch->waits, SIGKILL);
	pt_raw_close(&raw);
}

/*
 * The same as pt_raw_spawn(), which would have touched its slot before the task does. The task
 * then sleeps between two looks, or waits for the first one.
 */
static pid_t spawn_first(struct pt_raw *raw, unsigned int index)
{
	char path[32], line[128] = "";
	pid_t pid = fork();

	if (!pid) {
		if (!pt_raw_arm(raw->fd, 0, index, 0))
			execl("/bin/true", "puppet", (char *)NULL);
		_exit(1);
	}
	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	while (atoi(line) != SYS_nanosleep && atoi(line) != -1) {
		usleep(1000);
		if (pt_read_file(path, line, sizeof(line)))
			return -ESRCH;
	}
	return pid;
}

/* nor has it any effect in the memory of all: on a task, a call, or another process */
PVAS_TEST(userfaultfd_without_effect)
{
	struct iovec there = { (void *)(PT_DATA_AT + PT_DATA_LEN - 1), 1 };
	char byte;
	struct iovec here = { &byte, 1 };
	uint64_t features = 0;
	struct pt_raw raw;
	pid_t pid;

	PT_NEED_ROOT();
	ASSERT_EQ(0, create_registering(&raw, &features));
	watch->at = WATCHED_AT;
	watch->len = PT_DATA_AT + PT_DATA_LEN - WATCHED_AT;
	watch->go = 1;
	while (!watch->done)
		usleep(1000);
	EXPECT_EQ(registered(), watch->registered);
	/* Three areas: that of the slots, of the calls' data, and the page. */
	pid = spawn_first(&raw, 1);
	EXPECT_LT(0, pid);
	EXPECT_EQ(1, process_vm_readv(pid, &here, 1, &there, 1, 0));
	EXPECT_EQ(pid, pt_raw_call(&raw, 1, SYS_getpid));
	EXPECT_EQ(1, pt_raw_call(&raw, 1, SYS_getrandom, WATCHED_AT, 1, 0));
	pt_kill(pid);
	EXPECT_EQ(0, kill(watch->waits, 0));
	kill(watch->waits, SIGKILL);
	pt_raw_close(&raw);
}

/* not even if it is the memory of a task that it registers, whose end would be an event */
PVAS_TEST(userfaultfd_of_a_task)
{
	uint64_t features = UFFD_FEATURE_EVENT_UNMAP;
	struct pt_raw raw;
	pid_t pid;
	long at;

	PT_NEED_ROOT();
	ASSERT_EQ(0, create_registering(&raw, &features));
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	at = pt_raw_call(&raw, 1, SYS_mmap, 0, 1 << 20, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_LT(0, at);
	watch->at = at;
	watch->go = 1;
	while (!watch->done)
		usleep(1000);
	EXPECT_EQ(registered(), watch->registered);
	pt_kill(pid);
	EXPECT_EQ(0, pt_raw_count(raw.fd));
	EXPECT_EQ(0, kill(watch->waits, 0));
	kill(watch->waits, SIGKILL);
	pt_raw_close(&raw);
}

/* ---- and what it can't keep ---- */

#define LARGE_AT 0x40000000UL
#define LARGE_LEN (64UL << 20)

static int leave_large(void *arg)
{
	if (mmap((void *)LARGE_AT, LARGE_LEN, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		return -ENOTSUP;
	return leave_registering(arg);
}

static long anon_kib(void)
{
	return pt_file_kib("/proc/meminfo", "AnonPages:");
}

/* nor does the memory of all wait for it, which the last task has filled */
PVAS_TEST(userfaultfd_of_a_vacant_space)
{
	uint64_t features = UFFD_FEATURE_EVENT_UNMAP;
	int zero = open("/dev/zero", O_RDONLY), i;
	struct pt_raw raw;
	long before;
	pid_t pid;

	PT_NEED_ROOT();
	watch = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)watch);
	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = leave_large;
	raw.prepare_arg = &features;
	raw.keep = LARGE_AT;
	ASSERT_EQ(0, pt_raw_create(&raw));
	watch->at = LARGE_AT;
	watch->go = 1;
	while (!watch->done)
		usleep(1000);
	EXPECT_EQ(registered(), watch->registered);
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	before = anon_kib();
	EXPECT_EQ(LARGE_LEN - 4096, pt_raw_call(&raw, 1, SYS_read, zero, LARGE_AT + 4096,
						LARGE_LEN - 4096));
	EXPECT_LT(before + (long)(LARGE_LEN / 2048), anon_kib());
	pt_kill(pid);
	for (i = 0; i < 20 && anon_kib() > before + (long)(LARGE_LEN / 8192); i++)
		usleep(50000);
	EXPECT_GT(20, i) TH_LOG("%ld KiB are left", anon_kib() - before);
	EXPECT_EQ(0, kill(watch->waits, 0));
	kill(watch->waits, SIGKILL);
	pt_raw_close(&raw);
	close(zero);
}

#define BORDER (1UL << PVAS_SHIFT_DEFAULT)

static int leave_border(void *arg)
{
	if (mmap((void *)(BORDER - 4096), 4096, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		return -ENOTSUP;
	return leave_registering(arg);
}

/* nor does the last page, which the kernel can't make one area with a task's: that has a gap */
PVAS_TEST(userfaultfd_at_the_border)
{
	const long look[6] = { BORDER - 4096, 1, 0 };
	uint64_t features = 0;
	struct pt_raw raw;
	long ret = 0;
	pid_t pid;
	int i;

	PT_NEED_ROOT();
	PT_NEED_HUGE_PAGES();
	watch = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)watch);
	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = leave_border;
	raw.prepare_arg = &features;
	raw.keep = BORDER - 4096;
	ASSERT_EQ(0, pt_raw_create(&raw));
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	EXPECT_EQ(-ENOMEM, pt_raw_call(&raw, 1, SYS_mmap, BORDER, 4096, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
	EXPECT_EQ(BORDER + 4096, pt_raw_call(&raw, 1, SYS_mmap, BORDER + 4096, 4096,
					     PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
					     MAP_FIXED_NOREPLACE, -1, 0));
	EXPECT_EQ(0, pt_raw_call(&raw, 1, SYS_madvise, BORDER + 4096, 4096, MADV_NOHUGEPAGE));
	watch->at = BORDER - 4096;
	watch->len = 3 * 4096;
	watch->go = 1;
	while (!watch->done)
		usleep(1000);
	EXPECT_EQ(registered(), watch->registered);
	pt_raw_ask(&raw, 1, SYS_getrandom, look);
	for (i = 0; i < 200 && !pt_raw_answer(&raw, 1, &ret); i++)
		usleep(10000);
	EXPECT_EQ(1, ret);
	pt_kill(pid);
	EXPECT_EQ(0, kill(watch->waits, 0));
	kill(watch->waits, SIGKILL);
	pt_raw_close(&raw);
}

PT_MAIN()
