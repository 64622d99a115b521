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

#include "../../include/linux_names.h"
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
#define UFFDIO_MOVE_MODE_DONTWAKE (1ULL << 0)
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

/*
 * PVAS' module refuses all moves where it can check none: kmod/pvas_uffd.c. This one, of nothing,
 * the kernel refuses, with another error.
 */
static bool may_move(int fd)
{
	struct uffdio_move m = { 0 };

	return !ioctl(fd, UFFDIO_MOVE, &m) || errno != EPERM;
}

int far_uffd_open(struct far_uffd *u, bool user_only)
{
	/* The event: else moved memory would be no longer registered, and read as zeros. */
	uint64_t wanted = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_THREAD_ID |
			  UFFD_FEATURE_EVENT_REMAP, features = 0;
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
	else
		u->move = u->move && may_move(u->fd);
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
	} while (msg.event != UFFD_EVENT_PAGEFAULT && msg.event != UFFD_EVENT_REMAP);
	fault->moved = msg.event == UFFD_EVENT_REMAP;
	fault->addr = msg.arg.pagefault.address;
	fault->tid = (pid_t)msg.arg.pagefault.feat.ptid;
	fault->protect = msg.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP;
	fault->write = fault->protect || msg.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WRITE;
	return true;
}

/* One copy of the kernel's: 0 (in part if *@done < @size), or a negative errno value */
static int copy_once(const struct far_uffd *u, void *to, const void *from, size_t size,
		     uint64_t mode, size_t *done)
{
	struct uffdio_copy c = {
		.dst = (uintptr_t)to,
		.src = (uintptr_t)from,
		.len = size,
		.mode = mode,
	};

	*done = size;
	if (!ioctl(u->fd, UFFDIO_COPY, &c))
		return 0;
	*done = c.copy > 0 ? (size_t)c.copy : 0;
	return *done ? 0 : -errno;
}

/*
 * New pages wait in a batch of this processor's to be put on the kernel's lists, and count as in
 * use until then. Any madvise(MADV_FREE) empties the batch; this one is of memory never written.
 */
static void put_on_lists(const struct far_uffd *u)
{
	if (u->used)
		madvise((void *)(uintptr_t)far.zeros, KERNEL_PAGE, MADV_FREE);
}

static bool is_used(const struct far_uffd *u, const void *addr, size_t size)
{
	return u->used && u->used(addr, size);
}

/*
 * The length of the next try, after one that has failed: the kernel refuses a range that is
 * not in one area. False: this page is in none.
 */
static bool shorter(size_t *len)
{
	if (*len == KERNEL_PAGE)
		return false;
	*len = *len / 2 & ~(size_t)(KERNEL_PAGE - 1);
	return true;
}

int far_uffd_copy(const struct far_uffd *u, void *to, const void *from, size_t size, bool protect)
{
	uint64_t mode = protect ? UFFDIO_COPY_MODE_WP : 0;
	size_t at = 0, missing = 0, len = size, done;
	bool all_new = true;
	int err;

	if (u->late_wake)
		mode |= UFFDIO_COPY_MODE_DONTWAKE;
	while (at < size) {
		len = len < size - at ? len : size - at;
		err = copy_once(u, (char *)to + at, (const char *)from + at, len, mode, &done);
		at += done;
		all_new &= !err;
		if (!err) {
			len *= 2;
		} else if (err == -EEXIST) {
			/* By a move that stopped half-way, whose part is newer */
			at += KERNEL_PAGE;
		} else if (err == -EAGAIN) {
			sched_yield();
		} else if (!shorter(&len)) {
			at += KERNEL_PAGE;
			missing += KERNEL_PAGE;
		}
	}
	/* The kernel wakes for what it copied; nobody may wait for what was there. */
	if (!u->late_wake && !all_new)
		far_uffd_wake(u, to, size);
	put_on_lists(u);
	return missing == size ? -ENOENT : 0;
}

int far_uffd_zero(const struct far_uffd *u, void *to)
{
	size_t done;
	int err;

	do {
		err = copy_once(u, to, zeros, KERNEL_PAGE, 0, &done);
	} while (err == -EAGAIN);
	return err;
}

/* One move of the kernel's: as copy_once() */
static int move_once(const struct far_uffd *u, void *to, void *from, size_t size, size_t *done)
{
	struct uffdio_move m = {
		.dst = (uintptr_t)to,
		.src = (uintptr_t)from,
		.len = size,
		.mode = u->late_wake ? UFFDIO_MOVE_MODE_DONTWAKE : 0,
	};

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
	size_t done, len = size;
	int err = 0;

	for (*at = 0; *at < size && !err;) {
		len = len < size - *at ? len : size - *at;
		err = move_once(u, (char *)to + *at, (char *)from + *at, len, &done);
		*at += done;
		if (!err)
			len *= 2;
		if (err == -EAGAIN)
			sched_yield();
		if (err == -ENOENT && holes) {
			far_uffd_zero(u, (char *)to + *at);
			*at += KERNEL_PAGE;
		}
		if (err == -EAGAIN || (err == -ENOENT && holes) ||
		    (err == -EINVAL && shorter(&len)))
			err = 0;
	}
	return *at < size ? err : 0;
}

/* Is there memory at all in a range? */
bool far_uffd_is_mapped(void *addr, size_t size)
{
	unsigned char there;
	size_t at;

	for (at = 0; at < size; at += KERNEL_PAGE)
		if (!mincore((char *)addr + at, KERNEL_PAGE, &there) || errno != ENOMEM)
			return true;
	return false;
}

int far_uffd_move(const struct far_uffd *u, void *to, void *from, size_t size)
{
	size_t at;
	int err;

	if (!move_all(u, to, from, size, false, &at))
		return 0;
	/* Threads may have the first part already: the rest must follow, in another way. */
	err = far_uffd_copy(u, (char *)to + at, (char *)from + at, size - at, false);
	return at ? 0 : err;
}

static int protect(const struct far_uffd *u, void *addr, size_t size, uint64_t mode)
{
	struct uffdio_writeprotect w = { .range = { (uintptr_t)addr, size }, .mode = mode };
	int err;

	do {
		err = ioctl(u->fd, UFFDIO_WRITEPROTECT, &w) ? errno : 0;
	} while (err == EAGAIN);
	return -err;
}

void far_uffd_unprotect(const struct far_uffd *u, void *addr, size_t size)
{
	size_t at;

	if (!protect(u, addr, size, 0))
		return;
	/* Not one area, or partly unmapped: whoever waits there shall find that out. */
	for (at = 0; at < size; at += KERNEL_PAGE)
		protect(u, (char *)addr + at, KERNEL_PAGE, 0);
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

/* Where the program dropped memory itself, reading would wait for a fault to be served. */
void far_uffd_fill(const struct far_uffd *u, void *addr, size_t size)
{
	unsigned char there[256];
	size_t at, i, n;

	for (at = 0; at < size; at += n * KERNEL_PAGE) {
		n = (size - at) / KERNEL_PAGE;
		n = n < sizeof(there) ? n : sizeof(there);
		/* Of a range that is partly unmapped, nothing is told: then page by page. */
		if (mincore((char *)addr + at, n * KERNEL_PAGE, there))
			memset(there, 0, n);
		for (i = 0; i < n; i++)
			if (!(there[i] & 1))
				far_uffd_zero(u, (char *)addr + at + i * KERNEL_PAGE);
	}
}

/* As a debugger reads: also what the program has protected from itself */
static bool read_protected(void *to, const void *from)
{
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : pread(fd, to, KERNEL_PAGE, (off_t)(uintptr_t)from);

	if (fd >= 0)
		close(fd);
	return n == KERNEL_PAGE;
}

static bool copy_out(void *to, const void *from, size_t size)
{
	struct iovec here = { to, size }, there = { (void *)(uintptr_t)from, size };

	/* Not memcpy(): the program may unmap it at any moment. */
	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* One of the kernel's pages: write-protected, copied, dropped, in this order. */
static int take_piece(const struct far_uffd *u, void *slot, void *addr)
{
	if (u->move)
		far_uffd_zero(u, slot);
	else
		memset(slot, 0, KERNEL_PAGE);
	if (!far_uffd_is_mapped(addr, KERNEL_PAGE))
		return 0;
	far_uffd_zero(u, addr);		/* if the program has dropped it */
	if (protect(u, addr, KERNEL_PAGE, UFFDIO_WRITEPROTECT_MODE_WP) ||
	    is_used(u, addr, KERNEL_PAGE) ||
	    !(copy_out(slot, addr, KERNEL_PAGE) || read_protected(slot, addr)))
		return far_uffd_is_mapped(addr, KERNEL_PAGE) ? -EBUSY : 0;
	return madvise(addr, KERNEL_PAGE, MADV_DONTNEED) && errno == EINVAL ? -EBUSY : 0;
}

/* If it can't be taken as a whole: several areas, or a protection of the program's own */
static int take_pieces(const struct far_uffd *u, void *slot, void *addr, size_t size)
{
	size_t at;
	int err = 0;

	for (at = 0; at < size && !err; at += KERNEL_PAGE)
		err = take_piece(u, (char *)slot + at, (char *)addr + at);
	if (!err)
		return 0;
	/* Back, but for the piece that has stayed */
	far_uffd_copy(u, addr, slot, at - KERNEL_PAGE, false);
	protect(u, (char *)addr + at - KERNEL_PAGE, KERNEL_PAGE, 0);
	return err;
}

/* One by one: a copy would not do for those that a device has, because others can't be moved. */
static void move_back(const struct far_uffd *u, void *addr, void *slot, size_t size)
{
	size_t at;

	for (at = 0; at < size; at += KERNEL_PAGE)
		far_uffd_move(u, (char *)addr + at, (char *)slot + at, KERNEL_PAGE);
}

static int take_by_move(const struct far_uffd *u, void *slot, void *addr, size_t size)
{
	size_t at;
	int err = move_all(u, slot, addr, size, true, &at);

	if (err == -EINVAL)
		err = take_pieces(u, (char *)slot + at, (char *)addr + at, size - at);
	if (!err) {
		put_on_lists(u);
		if (!is_used(u, slot, size))
			return 0;
		at = size;
	}
	if (!far_uffd_is_mapped(addr, size))
		return -ENOENT;
	move_back(u, addr, slot, at);
	return -EBUSY;
}

static int take_by_copy(const struct far_uffd *u, void *slot, void *addr, size_t size)
{
	far_uffd_fill(u, addr, size);
	if (protect(u, addr, size, UFFDIO_WRITEPROTECT_MODE_WP))
		return far_uffd_is_mapped(addr, size) ? take_pieces(u, slot, addr, size) : -ENOENT;
	if (is_used(u, addr, size)) {
		far_uffd_unprotect(u, addr, size);
		return -EBUSY;
	}
	if (!copy_out(slot, addr, size))
		return take_pieces(u, slot, addr, size);
	far_uffd_drop(addr, size);
	return 0;
}

int far_uffd_take(const struct far_uffd *u, void *slot, void *addr, size_t size)
{
	return u->move ? take_by_move(u, slot, addr, size) : take_by_copy(u, slot, addr, size);
}
