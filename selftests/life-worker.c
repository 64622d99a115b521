// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads that the kernel makes for itself in a process (io_uring's), and others'
 * processes that hold up what ends: nothing is left of a space, and no other
 * space waits.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define PARAM "/sys/module/pvas/parameters/"
#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

/* A ring with a thread that polls it: it is one of the process's. */
static int polled_ring(void)
{
	struct io_uring_params p = { .flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 100000 };

	return syscall(SYS_io_uring_setup, 4, &p);
}

static bool tasks_become(int fd, int want)
{
	int i;

	for (i = 0; i < 500 && pt_raw_count(fd) != want; i++)
		usleep(10000);
	return pt_raw_count(fd) == want;
}

/* Armed, with such a thread; the leader ends first, and the kernel's thread is the last. */
static pid_t armed_with_ring(struct pt_raw *raw, int *err)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid) {
		*err = polled_ring() < 0 ? -ENOTSUP :
		       pt_raw_arm(raw->fd, 0, 0, PVAS_SPAWN_ANY);
		if (write(fds[1], err, sizeof(*err)) != sizeof(*err))
			_exit(1);
		syscall(SYS_exit, 0);
	}
	close(fds[1]);
	if (read(fds[0], err, sizeof(*err)) != sizeof(*err))
		*err = -ECHILD;
	close(fds[0]);
	return pid;
}

/* a process whose last thread is the kernel's is armed no more when it is gone */
MODULE_TEST(armed_until_the_last_thread, "the ABI of /dev/pvas")
{
	struct pt_raw raw;
	int i, err = 0;
	pid_t pid = -1;

	ASSERT_EQ(0, pt_raw_make(&raw));
	for (i = 0; i < 5 && !err; i++) {
		pid = armed_with_ring(&raw, &err);
		if (err == -ENOTSUP)
			break;
		EXPECT_EQ(0, err);
		EXPECT_EQ(1, pt_raw_count(raw.fd));
		kill(pid, SIGKILL);
		pt_wait(pid);
		EXPECT_EQ(0, pt_raw_count(raw.fd));
		EXPECT_EQ(PVAS_PART_FREE, pt_raw_part(&raw, raw.create.first).state);
	}
	pt_raw_close(&raw);
	if (err == -ENOTSUP) {
		pt_wait(pid);
		SKIP(return, "no io_uring with a polling thread");
	}
	EXPECT_EQ(0, system("/bin/true"));
	EXPECT_EQ(0, pt_raw_spaces(pt_open()));
}

/* a task's partition is not free as long as such a thread of it still has the mm */
MODULE_TEST(member_until_the_last_thread, "the ABI of /dev/pvas")
{
	struct io_uring_params *p;
	struct pt_raw raw;
	pid_t pid;
	long ring;

	ASSERT_EQ(0, pt_raw_make(&raw));
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	p = (struct io_uring_params *)raw.data;
	*p = (struct io_uring_params){ .flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 100000 };
	ring = pt_raw_call(&raw, 1, SYS_io_uring_setup, 4, PT_DATA_AT);
	if (ring >= 0) {
		/* Not the process: this thread only. */
		pt_raw_ask(&raw, 1, SYS_exit, (long[6]){ 0 });
		usleep(300000);
		EXPECT_EQ(1, pt_raw_count(raw.fd));
		EXPECT_EQ(-EBUSY, pt_raw_arm(raw.fd, 0, 1, 0));
		EXPECT_EQ(PVAS_PART_RUNNING, pt_raw_part(&raw, 1).state);
	}
	pt_kill(pid);
	EXPECT_EQ(0, pt_raw_count(raw.fd));
	EXPECT_EQ(PVAS_PART_FREE, pt_raw_part(&raw, 1).state);
	pt_raw_close(&raw);
	if (ring < 0)
		SKIP(return, "no io_uring with a polling thread");
}

/* ---- monitors that don't answer ---- */

#define DEAF 66		/* more than one queue for all would serve at a time */

/* What a puppet's calls need in its data. */
struct registration {
	struct uffdio_api api;
	struct uffdio_register range;
};

/* A page of the puppet's whose unmapping waits for an answer; the monitor's file is ours. */
static int deafen(struct pt_raw *raw, unsigned int index, pid_t pid)
{
	struct registration *r = (struct registration *)raw->data;
	long fd = pt_raw_call(raw, index, SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	long at = pt_raw_call(raw, index, SYS_mmap, 0, 4096, RW, ANON, -1, 0);

	if (fd < 0 || at < 0)
		return -ENOTSUP;
	r->api = (struct uffdio_api){ .api = UFFD_API, .features = UFFD_FEATURE_EVENT_UNMAP };
	r->range = (struct uffdio_register){
		.range = { .start = at, .len = 4096 }, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	if (pt_raw_call(raw, index, SYS_ioctl, fd, UFFDIO_API, PT_DATA_AT) ||
	    pt_raw_call(raw, index, SYS_ioctl, fd, UFFDIO_REGISTER,
			PT_DATA_AT + offsetof(struct registration, range)))
		return -ENOTSUP;
	return syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, pid, 0), fd, 0);
}

/* Many at once, in two spaces, as there are 64 puppets to a space at most. */
static int deaf_tasks(struct pt_raw *raw, int *monitors, int n)
{
	unsigned int index;
	pid_t pid;
	int i;

	for (i = 0; i < n; i++) {
		index = raw->create.first + i;
		pid = pt_raw_spawn(raw, index);
		monitors[i] = pid < 0 ? pid : deafen(raw, index, pid);
		if (monitors[i] < 0)
			return monitors[i];
		pt_kill(pid);
	}
	return 0;
}

static long end_of_another(void)
{
	struct pt_raw raw;
	long start;

	if (pt_raw_make(&raw))
		return -1;
	pt_kill(pt_raw_spawn(&raw, 1));
	start = pt_now_ms();
	while (pt_raw_part(&raw, 1).state != PVAS_PART_FREE && pt_now_ms() < start + 3000)
		usleep(1000);
	start = pt_now_ms() - start;
	pt_raw_close(&raw);
	return start;
}

/* however many monitors of some spaces are deaf, other spaces' tasks end, and spaces go */
MODULE_TEST(many_deaf_monitors, "the ABI of /dev/pvas")
{
	int monitors[DEAF] = { 0 }, i, err, before;
	struct pt_raw raw[2];
	char wait[32];

	PT_NEED_ROOT();
	ASSERT_EQ(0, pt_read_file(PARAM "reclaim_wait_ms", wait, sizeof(wait)));
	ASSERT_EQ(0, pt_write_file(PARAM "reclaim_wait_ms", "10"));
	ASSERT_EQ(0, pt_raw_make(&raw[0]));
	ASSERT_EQ(0, pt_raw_make(&raw[1]));
	before = pt_raw_spaces(raw[0].fd);
	err = deaf_tasks(&raw[0], monitors, DEAF / 2) ?:
	      deaf_tasks(&raw[1], monitors + DEAF / 2, DEAF / 2);
	EXPECT_EQ(0, err);
	if (!err) {
		EXPECT_GT(3000, end_of_another());
		EXPECT_EQ(before, pt_raw_spaces(raw[0].fd));
	}
	/* Without a monitor the unmapping goes on. */
	for (i = 0; i < DEAF; i++)
		if (monitors[i] > 0)
			close(monitors[i]);
	EXPECT_TRUE(tasks_become(raw[0].fd, 0));
	EXPECT_TRUE(tasks_become(raw[1].fd, 0));
	pt_raw_close(&raw[0]);
	pt_raw_close(&raw[1]);
	EXPECT_EQ(0, pt_write_file(PARAM "reclaim_wait_ms", wait));
}

PT_MAIN()
