// SPDX-License-Identifier: LGPL-2.1-or-later
/* The kernel's userfaultfd, and how kernels differ: see uffd.h. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

#include "far.h"
#include "store.h"
#include "uffd.h"

/* Headers older than Linux 6.8 do not have it. */
#ifndef UFFD_FEATURE_MOVE
#define UFFD_FEATURE_MOVE (1 << 16)
struct uffdio_move {
	__u64 dst;
	__u64 src;
	__u64 len;
	__u64 mode;
	__s64 move;
};
#define UFFDIO_MOVE _IOWR(UFFDIO, 0x05, struct uffdio_move)
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

enum { KERNEL_PAGE = 4096 };

static const uint8_t zeros[KERNEL_PAGE] __attribute__((aligned(4096)));

/* A new descriptor: also for the kernel's faults if this process may have that. */
static int new_descriptor(bool user_only, bool *kernel)
{
	int flags = O_CLOEXEC | O_NONBLOCK, device, fd = -1;

	*kernel = true;
	if (!user_only) {
		device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
		if (device >= 0) {
			fd = ioctl(device, USERFAULTFD_IOC_NEW, flags);
			close(device);
		}
		if (fd < 0)
			fd = (int)syscall(__NR_userfaultfd, flags);
		if (fd >= 0)
			return fd;
	}
	*kernel = false;
	fd = (int)syscall(__NR_userfaultfd, flags | UFFD_USER_MODE_ONLY);
	if (fd >= 0)
		return fd;
	if (errno == ENOSYS || errno == EINVAL)
		return far_fail(-ENOSYS, "this kernel has no userfaultfd for ordinary users (Linux 5.11 has)");
	return far_fail(-errno, "userfaultfd: %s", strerror(errno));
}

static int negotiate(int fd, uint64_t wanted, uint64_t *features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = wanted };

	if (ioctl(fd, UFFDIO_API, &api))
		return far_fail(-errno, "userfaultfd: UFFDIO_API: %s", strerror(errno));
	*features = api.features;
	return 0;
}

int far_uffd_open(struct far_uffd *u, bool user_only)
{
	uint64_t wanted = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_THREAD_ID, features;
	int err, fd = new_descriptor(user_only, &u->kernel);

	if (fd < 0)
		return fd;
	/* A descriptor is asked once: this one tells what the kernel has. */
	err = negotiate(fd, 0, &features);
	close(fd);
	if (err)
		return err;
	if ((features & wanted) != wanted)
		return far_fail(-ENOSYS, "this kernel's userfaultfd can't write-protect");
	u->move = features & UFFD_FEATURE_MOVE;
	if (u->move)
		wanted |= UFFD_FEATURE_MOVE;
	u->fd = new_descriptor(user_only, &u->kernel);
	if (u->fd < 0)
		return u->fd;
	err = negotiate(u->fd, wanted, &features);
	if (err)
		close(u->fd);
	return err;
}

void far_uffd_close(struct far_uffd *u)
{
	close(u->fd);
	u->fd = -1;
}

int far_uffd_register(const struct far_uffd *u, void *addr, size_t size)
{
	struct uffdio_register r = {
		.range = { (uintptr_t)addr, size },
		.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP,
	};

	if (ioctl(u->fd, UFFDIO_REGISTER, &r))
		return far_fail(-errno, "userfaultfd: UFFDIO_REGISTER: %s", strerror(errno));
	return 0;
}

bool far_uffd_read(const struct far_uffd *u, struct far_fault *fault)
{
	struct uffd_msg msg;

	do {
		if (read(u->fd, &msg, sizeof(msg)) != sizeof(msg))
			return false;
	} while (msg.event != UFFD_EVENT_PAGEFAULT);
	fault->addr = msg.arg.pagefault.address;
	fault->tid = (pid_t)msg.arg.pagefault.feat.ptid;
	fault->protect = msg.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP;
	fault->write = fault->protect || msg.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WRITE;
	return true;
}

/* One copy of the kernel's: 0 (in part if *@done < @size), or a negative errno value */
static int copy_once(const struct far_uffd *u, void *to, const void *from, size_t size,
		     bool protect, size_t *done)
{
	struct uffdio_copy c = {
		.dst = (uintptr_t)to,
		.src = (uintptr_t)from,
		.len = size,
		.mode = protect ? UFFDIO_COPY_MODE_WP : 0,
	};

	*done = size;
	if (!ioctl(u->fd, UFFDIO_COPY, &c))
		return 0;
	*done = c.copy > 0 ? (size_t)c.copy : 0;
	return *done ? 0 : -errno;
}

int far_uffd_copy(const struct far_uffd *u, void *to, const void *from, size_t size, bool protect)
{
	size_t at = 0, done;
	int err;

	while (at < size) {
		err = copy_once(u, (char *)to + at, (const char *)from + at, size - at, protect,
				&done);
		at += done;
		if (err == -EEXIST)
			/* By a move that stopped half-way, whose part is newer */
			at += KERNEL_PAGE;
		else if (err == -EAGAIN)
			sched_yield();
		else if (err)
			return -ENOENT;
	}
	/* The kernel wakes for what it copied; nobody may wait for what was there. */
	far_uffd_wake(u, to, size);
	return 0;
}

int far_uffd_zero(const struct far_uffd *u, void *to)
{
	size_t done;
	int err;

	do {
		err = copy_once(u, to, zeros, KERNEL_PAGE, false, &done);
	} while (err == -EAGAIN);
	return err;
}

/* One move of the kernel's: as copy_once() */
static int move_once(const struct far_uffd *u, void *to, void *from, size_t size, size_t *done)
{
	struct uffdio_move m = { .dst = (uintptr_t)to, .src = (uintptr_t)from, .len = size };

	*done = size;
	if (!ioctl(u->fd, UFFDIO_MOVE, &m))
		return 0;
	*done = m.move > 0 ? (size_t)m.move : 0;
	return *done ? 0 : -errno;
}

/* Move all; *@at says how far it got. Holes stay holes if @holes, else are an error. */
static int move_all(const struct far_uffd *u, void *to, void *from, size_t size, bool holes,
		    size_t *at)
{
	size_t done;
	int err = 0;

	for (*at = 0; *at < size && (!err || err == -EAGAIN);) {
		err = move_once(u, (char *)to + *at, (char *)from + *at, size - *at, &done);
		*at += done;
		if (err == -EAGAIN)
			sched_yield();
		if (err == -ENOENT && holes) {
			far_uffd_zero(u, (char *)to + *at);
			*at += KERNEL_PAGE;
			err = 0;
		}
	}
	return *at < size ? err : 0;
}

/* Is there memory at all at an address? */
static bool is_mapped(void *addr)
{
	unsigned char there;

	return !mincore(addr, KERNEL_PAGE, &there) || errno != ENOMEM;
}

int far_uffd_move(const struct far_uffd *u, void *to, void *from, size_t size)
{
	size_t at;

	if (!move_all(u, to, from, size, false, &at))
		return 0;
	/* Threads may have the first part already: the rest must follow, in another way. */
	return far_uffd_copy(u, (char *)to + at, (char *)from + at, size - at, false);
}

void far_uffd_unprotect(const struct far_uffd *u, void *addr, size_t size)
{
	struct uffdio_writeprotect w = { .range = { (uintptr_t)addr, size } };

	int err;

	do {
		err = ioctl(u->fd, UFFDIO_WRITEPROTECT, &w) ? errno : 0;
	} while (err == EAGAIN);
	/* Unmapped meanwhile: whoever waits shall find that out. */
	if (err)
		far_uffd_wake(u, addr, size);
}

void far_uffd_wake(const struct far_uffd *u, void *addr, size_t size)
{
	struct uffdio_range range = { (uintptr_t)addr, size };

	ioctl(u->fd, UFFDIO_WAKE, &range);
}

void far_uffd_drop(void *addr, size_t size)
{
	madvise(addr, size, MADV_DONTNEED);
}

static int take_by_move(const struct far_uffd *u, void *slot, void *addr, size_t size)
{
	size_t at;

	if (!move_all(u, slot, addr, size, true, &at))
		return 0;
	if (!is_mapped(addr))
		return -ENOENT;
	far_uffd_move(u, addr, slot, at);
	return -EBUSY;
}

/* Where the program dropped memory itself, reading would wait for a fault to be served. */
static void fill_holes(const struct far_uffd *u, void *addr, size_t size)
{
	unsigned char there[256];
	size_t at, i, n;

	for (at = 0; at < size; at += n * KERNEL_PAGE) {
		n = (size - at) / KERNEL_PAGE;
		n = n < sizeof(there) ? n : sizeof(there);
		if (mincore((char *)addr + at, n * KERNEL_PAGE, there))
			return;
		for (i = 0; i < n; i++)
			if (!(there[i] & 1))
				far_uffd_zero(u, (char *)addr + at + i * KERNEL_PAGE);
	}
}

static int take_by_copy(const struct far_uffd *u, void *slot, void *addr, size_t size)
{
	struct uffdio_writeprotect w = {
		.range = { (uintptr_t)addr, size },
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	struct iovec to = { slot, size }, from = { addr, size };
	int err;

	fill_holes(u, addr, size);
	do {
		err = ioctl(u->fd, UFFDIO_WRITEPROTECT, &w) ? errno : 0;
	} while (err == EAGAIN);
	/* Not memcpy(): the program may unmap it at any moment. */
	if (err || process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)size)
		return is_mapped(addr) ? -EBUSY : -ENOENT;
	far_uffd_drop(addr, size);
	return 0;
}

int far_uffd_take(const struct far_uffd *u, void *slot, void *addr, size_t size)
{
	return u->move ? take_by_move(u, slot, addr, size) : take_by_copy(u, slot, addr, size);
}
