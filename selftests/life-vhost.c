// SPDX-License-Identifier: GPL-2.0-only
/*
 * vhost: its worker stores into the memory of the process that has set it up, and another
 * process can hold the device open. After the end of a task, its partition is another's.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/vhost.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

/* Not in the headers of the oldest supported release. */
#define SET_FORK_FROM_OWNER	_IOW(VHOST_VIRTIO, 0x84, uint8_t)
#define AS_KTHREAD		0	/* as all kernels before 6.4 */
#define AS_THREAD		1

#define QUEUES	2
#define PACKET	44	/* of no data, and to nobody: answered at once */
#define DEVICE	"/dev/vhost-vsock"

/* The device reads it and stores to it, in the task's partition. */
struct ring {
	struct vring_desc desc[2];
	uint16_t avail[4];	/* flags, index, two entries */
	uint32_t pad;
	uint32_t used[6];	/* flags and index, two entries */
	char packet[PACKET];
};

struct device {
	struct pt_raw raw;
	pid_t pid;
	unsigned long at;	/* struct ring */
	int fd, kick;		/* ours, of the same files */
};

static long ask(struct device *d, long fd, unsigned long request, const void *arg, size_t len)
{
	memcpy(d->raw.data, arg, len);
	return pt_raw_call(&d->raw, 1, SYS_ioctl, fd, request, PT_DATA_AT);
}

#define ASK(d, fd, request, ...) \
	ask(d, fd, request, &(__VA_ARGS__), sizeof(__VA_ARGS__))

/* A descriptor of the task's as one of ours */
static int take(pid_t pid, int theirs)
{
	int pidfd = syscall(SYS_pidfd_open, pid, 0), fd;

	fd = syscall(SYS_pidfd_getfd, pidfd, theirs, 0);
	close(pidfd);
	return fd;
}

/* A task at index 1, with the memory of a queue that has one packet */
static int start_task(struct device *d)
{
	struct ring ring = {
		.desc = { { .len = PACKET } },
		.avail = { 0, 1, 0, 0 },
	};

	d->pid = pt_raw_spawn(&d->raw, 1);
	if (d->pid < 0)
		return d->pid;
	d->at = (1UL << d->raw.create.shift) + (16UL << 20);
	if (pt_raw_call(&d->raw, 1, SYS_mmap, d->at, 4096, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (long)d->at)
		return -ENOMEM;
	ring.desc[0].addr = offsetof(struct ring, packet);
	return pwrite(d->raw.mem, &ring, sizeof(ring), d->at) == sizeof(ring) ? 0 : -EIO;
}

/* How many packets the device has answered, in the memory of whoever is there */
static int answered(const struct device *d)
{
	struct ring ring;

	if (pread(d->raw.mem, &ring, sizeof(ring), d->at) != sizeof(ring))
		return -1;
	return ring.used[0] >> 16;
}

static long set_up_queue(struct device *d, int fd, int kick, unsigned int n)
{
	struct vhost_vring_addr addr = {
		.index = n,
		.desc_user_addr = d->at + offsetof(struct ring, desc),
		.avail_user_addr = d->at + offsetof(struct ring, avail),
		.used_user_addr = d->at + offsetof(struct ring, used),
	};
	long err;

	err = ASK(d, fd, VHOST_SET_VRING_NUM, (struct vhost_vring_state){ n, 2 });
	if (!err)
		err = ASK(d, fd, VHOST_SET_VRING_ADDR, addr);
	/* The first queue is for packets to the guest, of which there is none. */
	if (!err && n)
		err = ASK(d, fd, VHOST_SET_VRING_KICK, (struct vhost_vring_file){ n, kick });
	return err;
}

/* The task sets up all that comes after VHOST_SET_OWNER. */
static long set_up(struct device *d, int fd, int kick)
{
	struct {
		struct vhost_memory m;
		struct vhost_memory_region r;
	} memory = {
		.m = { .nregions = 1 },
		.r = { .memory_size = 4096, .userspace_addr = d->at },
	};
	long err;
	unsigned int n;

	err = ASK(d, fd, VHOST_SET_FEATURES, (uint64_t){ 1ULL << VIRTIO_F_VERSION_1 });
	if (!err)
		err = ASK(d, fd, VHOST_VSOCK_SET_GUEST_CID, (uint64_t){ 1000 + getpid() });
	if (!err)
		err = ASK(d, fd, VHOST_SET_MEM_TABLE, memory);
	for (n = 0; n < QUEUES && !err; n++)
		err = set_up_queue(d, fd, kick, n);
	return err ?: ASK(d, fd, VHOST_VSOCK_SET_RUNNING, (int){ 1 });
}

/*
 * The result of the task's VHOST_SET_OWNER, with the device at work if that is 0; -ENOSYS if the
 * kernel has no such workers.
 */
static long open_device(struct device *d, uint8_t how)
{
	long fd, kick, err;

	strcpy(d->raw.data, DEVICE);
	fd = pt_raw_call(&d->raw, 1, SYS_openat, AT_FDCWD, PT_DATA_AT, O_RDWR);
	kick = pt_raw_call(&d->raw, 1, SYS_eventfd2, 0, 0);
	d->fd = take(d->pid, fd);
	d->kick = take(d->pid, kick);
	if (d->fd < 0 || d->kick < 0)
		return -EBADF;
	err = ASK(d, fd, SET_FORK_FROM_OWNER, how);
	/* 6.1 has kernel threads only. */
	if (err && how != AS_KTHREAD)
		return -ENOSYS;
	err = pt_raw_call(&d->raw, 1, SYS_ioctl, fd, VHOST_SET_OWNER, 0);
	if (!err && set_up(d, fd, kick))
		return -EPROTO;
	return err;
}

static void kick(const struct device *d)
{
	uint64_t one = 1;

	if (write(d->kick, &one, sizeof(one)) != sizeof(one))
		abort();
}

static bool have_vhost(void)
{
	return !system("modprobe vhost_vsock 2>/dev/null") && !access(DEVICE, R_OK | W_OK);
}

/* a kernel thread, which would outlive the task, is not to be had, and nothing is left */
MODULE_TEST(no_kernel_thread, "the ABI of /dev/pvas")
{
	struct device d;
	long err;

	PT_NEED_ROOT();
	if (!have_vhost())
		SKIP(return, "no " DEVICE);
	ASSERT_EQ(0, pt_raw_make(&d.raw));
	ASSERT_EQ(0, start_task(&d));
	err = open_device(&d, AS_KTHREAD);
	/* Later kernels put their own error for any. */
	EXPECT_TRUE(err == -EPERM || err == -ENOMEM) TH_LOG("%ld", err);
	pt_kill(d.pid);
	ASSERT_EQ(0, start_task(&d));
	kick(&d);
	/* Its end waits for the worker. */
	close(d.fd);
	EXPECT_EQ(0, answered(&d));
	close(d.kick);
	pt_kill(d.pid);
	pt_raw_close(&d.raw);
	EXPECT_EQ(0, pt_raw_spaces_left(pt_open()));
}

/* a thread of the task's ends with it: the next one in its partition finds its memory unchanged */
MODULE_TEST(thread_ends_with_the_task, "the ABI of /dev/pvas")
{
	struct device d;
	long err;
	int i;

	PT_NEED_ROOT();
	if (!have_vhost())
		SKIP(return, "no " DEVICE);
	ASSERT_EQ(0, pt_raw_make(&d.raw));
	ASSERT_EQ(0, start_task(&d));
	err = open_device(&d, AS_THREAD);
	if (!err) {
		kick(&d);
		for (i = 0; i < 10000 && answered(&d) < 1; i++)
			usleep(1000);
		EXPECT_EQ(1, answered(&d));
		pt_kill(d.pid);
		EXPECT_EQ(0, pt_raw_count(d.raw.fd));
		EXPECT_EQ(PVAS_PART_FREE, pt_raw_part(&d.raw, 1).state);
		ASSERT_EQ(0, start_task(&d));
		kick(&d);
		close(d.fd);
		EXPECT_EQ(0, answered(&d));
	}
	pt_kill(d.pid);
	pt_raw_close(&d.raw);
	if (err == -ENOSYS)
		SKIP(return, "this kernel has no such threads");
	EXPECT_EQ(0, err);
	EXPECT_EQ(0, pt_raw_spaces_left(pt_open()));
}

PT_MAIN()
