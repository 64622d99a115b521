// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads that the kernel makes for itself in a process (io_uring's): nothing is
 * left of a space, and no other space waits.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "others.h"

#define PARAM "/sys/module/pvas/parameters/"
#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

/* A ring with a thread that polls it: it is one of the process's. */
static int polled_ring(void)
{
	struct io_uring_params p = { .flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 100000 };

	return syscall(SYS_io_uring_setup, 4, &p);
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

/* A thread that does a request of the ring's is called so. */
static bool has_worker(void)
{
	char path[300], name[32];
	struct dirent *d;
	bool has = false;
	DIR *dir = opendir("/proc/self/task");

	while (dir && (d = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", d->d_name);
		if (!pt_read_file(path, name, sizeof(name)) && !strncmp(name, "iou-wrk", 7))
			has = true;
	}
	if (dir)
		closedir(dir);
	return has;
}

/* It reads from a pipe, which nobody writes to, when the only thread of the program ends. */
TASK(end_beside_a_worker)
{
	static char byte;
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_READ, .flags = IOSQE_ASYNC, .addr = (uintptr_t)&byte, .len = 1,
	};
	int ring = ring_open(), fds[2], tries;

	CHECK(ring >= 0 && !pipe(fds));
	sqe.fd = fds[0];
	CHECK_EQ(0, ring_begin(ring, &sqe));
	for (tries = 0; tries < 10000 && !has_worker(); tries++)
		usleep(1000);
	CHECK(has_worker());
	syscall(pt_failed ? SYS_exit_group : SYS_exit, pt_failed);
}

/* and not one that is in the middle of a request: the thread that it works for ends it */
MODULE_TEST(worker_in_a_request, "the user backend has its own workers")
{
	struct io_uring_params p = { 0 };
	struct pvas_space *space;
	pid_t pid;
	int i;

	if (syscall(SYS_io_uring_setup, 4, &p) < 0)
		SKIP(return, "no io_uring: %s", strerror(errno));
	space = PT_SPACE();
	for (i = 0; i < 3; i++) {
		pid = pt_start_task(space, 1, "end_beside_a_worker");
		ASSERT_LT(0, pid);
		EXPECT_EQ(0, pt_wait(pid));
		EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	}
	pvas_space_destroy(space);
	EXPECT_TRUE(pt_spaces_gone());
}

PT_MAIN()
