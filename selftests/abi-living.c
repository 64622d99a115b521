// SPDX-License-Identifier: GPL-2.0-only
/* A process that has made a space, and goes on: its children, the OOM killer, more calls. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "cgroup.h"
#include "pvas_test.h"

#define PAGE 4096UL
#define RW (PROT_READ | PROT_WRITE)
#define ROOM_AT 0x40000000UL
#define ROOM (7L << 20)		/* a space without processes may have that */
#define SYS_MSEAL 462		/* of 6.10 */
#define PARAMS_AT (PT_SLOTS_AT + PAGE)

/* Its descriptors */
enum { ZERO_FD = 200, RING_FD, NS_FD };

static long after[8];

static int create_and(struct pt_raw *raw, const struct pt_slot *steps, size_t n)
{
	raw->after = steps;
	raw->n_after = n;
	raw->after_ret = after;
	return pt_raw_create(raw);
}

static int open_as(const char *path, int fd)
{
	int is = open(path, O_RDONLY | O_CLOEXEC);

	return is < 0 || dup2(is, fd) < 0 ? -errno : 0;
}

/* PVAS_DESTROY_KILL reaches what it has begun since: here a child, for which it waits */
PVAS_TEST(child_in_its_memory)
{
	static const struct pt_slot clone = {
		.nr = SYS_clone, .args = { CLONE_VM | CLONE_VFORK | SIGCHLD },
	};
	struct pvas_destroy destroy = { .size = sizeof(destroy), .flags = PVAS_DESTROY_KILL };
	struct pt_raw raw;
	int status, i;

	ASSERT_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1));
	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.lives = true;
	/* The child does the creator's next steps, and waits like it. */
	ASSERT_EQ(0, create_and(&raw, &clone, 1));
	EXPECT_EQ(0, after[0]);
	EXPECT_EQ(0, pt_ioctl(raw.fd, PVAS_IOC_DESTROY, &destroy));
	for (i = 0; i < 2; i++) {
		ASSERT_LT(0, wait(&status));
		EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
	close(raw.go);
	pt_raw_close(&raw);
	EXPECT_EQ(0, pt_raw_spaces_left(pt_open()));
}

static char group[128];

static int room_in_group(void *arg)
{
	void *p = mmap((void *)ROOM_AT, ROOM, RW,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	(void)arg;
	return p == MAP_FAILED ? -errno : open_as("/dev/zero", ZERO_FD) ?: enter_cgroup(group);
}

/* Has the group got less than that? Pages are freed a moment after their last user. */
static bool group_has_less(long bytes)
{
	long limit = now_ms() + pt_timeout() * 1000L / 3;
	char text[32] = "";

	do {
		pt_read_file(cg_file(group, "memory.current"), text, sizeof(text));
		if (atol(text) < bytes)
			return true;
		usleep(10000);
	} while (now_ms() < limit);
	return false;
}

/* the OOM killer's choice frees the space's memory, though its file is open, and nobody enters */
PVAS_TEST(oom)
{
	static const struct pt_slot fill = { .nr = SYS_read, .args = { ZERO_FD, ROOM_AT, ROOM } };
	struct pt_raw raw;

	PT_NEED_ROOT();
	if (make_cgroup("living", group, sizeof(group)) ||
	    pt_write_file(cg_file(CG_ROOT, "cgroup.subtree_control"), "+memory"))
		SKIP(return, "no memory controller in cgroup2");
	ASSERT_EQ(0, pt_write_file(cg_file(group, "memory.max"), "5M"));
	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = room_in_group;
	raw.keep = ROOM_AT;
	/* It is killed before it can tell. */
	EXPECT_EQ(-ECHILD, create_and(&raw, &fill, 1));
	EXPECT_LT(0, pt_file_kib(cg_file(group, "memory.events"), "oom_kill "));
	EXPECT_GT(0, pt_raw_arm(raw.fd, 0, 1, 0));
	EXPECT_TRUE(group_has_less(2 << 20));
	pt_raw_close(&raw);
	EXPECT_EQ(0, pt_raw_spaces_left(pt_open()));
	remove_cgroup(group);
}

static int ring_and_namespace(void *arg)
{
	struct io_uring_params p = { 0 };
	int fd = syscall(SYS_io_uring_setup, 4, &p);

	(void)arg;
	/* For one with a thread, which it makes later */
	*(struct io_uring_params *)PARAMS_AT = (struct io_uring_params){
		.flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 100000,
	};
	if (fd < 0)
		return -ENOTSUP;
	return dup2(fd, RING_FD) < 0 ? -errno : open_as("/proc/self/ns/mnt", NS_FD);
}

/* no other namespace, no seal, no ring's memory; a ring's thread ends with it */
PVAS_TEST(more_calls)
{
	static const struct pt_slot steps[] = {
		{ .nr = SYS_setns, .args = { NS_FD, CLONE_NEWNS } },
		{ .nr = SYS_MSEAL, .args = { PT_DATA_AT, PAGE, 0 } },
		{ .nr = SYS_mmap, .args = { 0, PAGE, RW, MAP_SHARED, RING_FD, 0 } },
		{ .nr = SYS_mmap, .args = { 5UL << PVAS_SHIFT_DEFAULT, PAGE, RW,
					    MAP_SHARED | MAP_FIXED, RING_FD, 0 } },
		{ .nr = SYS_io_uring_setup, .args = { 4, PARAMS_AT } },
	};
	static const long want[] = { -EPERM, -ENOSYS, -ENOMEM, -ENOMEM };
	struct pt_raw raw;
	size_t i;
	int err;

	PT_NEED_ROOT();
	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = ring_and_namespace;
	raw.lives = true;
	err = create_and(&raw, steps, PT_ARRAY_SIZE(steps));
	if (err == -ENOTSUP)
		SKIP(return, "no io_uring");
	ASSERT_EQ(0, err);
	for (i = 0; i < PT_ARRAY_SIZE(want); i++) {
		EXPECT_EQ(want[i], after[i]) TH_LOG("step %zu", i);
	}
	EXPECT_LT(0, after[4]);
	EXPECT_EQ(0, pt_raw_let_go(&raw));
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, 1, 0));
	EXPECT_EQ(0, pt_raw_arm(raw.fd, 0, 0, PVAS_SPAWN_CANCEL));
	pt_raw_close(&raw);
	EXPECT_EQ(0, pt_raw_spaces_left(pt_open()));
}

PT_MAIN()
