// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: long transfers between files and far memory.
 *
 * Of a buffer larger than what can be held for one call, the kernel would transfer the first
 * part only. From a pipe or socket programs expect that; from a file many do not. So a worker
 * makes the call, in pieces, on the task's open file. No signal interrupts it, as none
 * interrupts a file's.
 *
 * Others must not get between the pieces: where the file's offset counts, it is moved behind
 * all of them first. An append can't be made in pieces; the task may find that it was short. Nor
 * is a transfer made here that a server in user space can hold up, past the end of this process.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "far.h"
#include "rawsys.h"

#define PIECE	(1UL << 20)
#define TRIES	400
#define PAUSE	5000

static int is_read(const struct user_request *r)
{
	return r->nr == __NR_read || r->nr == __NR_pread64;
}

static int is_at(const struct user_request *r)
{
	return r->nr == __NR_pread64 || r->nr == __NR_pwrite64;
}

/* A write above the task's own limit is for the kernel to refuse. */
static int is_limited(const struct user_request *r)
{
	struct rlimit limit;

	return !is_read(r) && (pvas_raw4(__NR_prlimit64, r->tid, RLIMIT_FSIZE, NULL, &limit) ||
			       limit.rlim_cur != RLIM_INFINITY);
}

/* A file with an offset, and not for appending */
static int is_suitable(const struct user_request *r, int fd)
{
	int flags = fcntl(fd, F_GETFL);
	return flags >= 0 && (is_read(r) || !(flags & O_APPEND)) && user_file_is_regular(fd);
}

/* One piece: what pread() or pwrite() returns; *@asked is how much was tried. */
static int64_t move_piece(const struct user_request *r, int fd, uint64_t done, uint64_t offset,
			  uint64_t *asked)
{
	const struct pvas_far_ops *ops = r->u->far->ops;
	uint64_t at = r->args[1] + done, left = r->args[2] - done, held = 0;
	int64_t n = -EINTR;
	int tries;

	for (tries = 0; tries < TRIES && !held && user_request_valid(); tries++) {
		if (tries)
			usleep(PAUSE);
		held = ops->hold(at, left < PIECE ? left : PIECE, is_read(r));
	}
	*asked = held;
	if (!held)
		return -ENOMEM;
	if (user_request_valid())
		n = pvas_raw4(is_read(r) ? __NR_pread64 : __NR_pwrite64, fd, at, held,
			      offset + done);
	ops->release(at, held);
	return n;
}

static int64_t move_pieces(const struct user_request *r, int fd, uint64_t offset)
{
	uint64_t done = 0, asked;
	int64_t n;

	do {
		n = move_piece(r, fd, done, offset, &asked);
		if (n > 0)
			done += (uint64_t)n;
	} while (n > 0 && (uint64_t)n == asked && done < r->args[2]);
	return done ? (int64_t)done : n;
}

/* How much is left in the file, at most @len: the offset must not go beyond its end. */
static uint64_t readable(int fd, uint64_t offset, uint64_t len)
{
	struct stat st;
	uint64_t end = fstat(fd, &st) ? offset : (uint64_t)st.st_size;

	return end <= offset ? 0 : end - offset < len ? end - offset : len;
}

static int64_t move_at_offset(const struct user_request *r, int fd)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint64_t len = r->args[2];
	off_t offset;
	int64_t n;

	pthread_mutex_lock(&lock);
	offset = lseek(fd, 0, SEEK_CUR);
	if (offset >= 0 && is_read(r))
		len = readable(fd, (uint64_t)offset, len);
	if (offset >= 0)
		lseek(fd, offset + (off_t)len, SEEK_SET);
	pthread_mutex_unlock(&lock);
	if (offset < 0)
		return -errno;
	n = move_pieces(r, fd, (uint64_t)offset);
	/* Fewer than announced: an error, or the file has become shorter. */
	if (n != (int64_t)len)
		lseek(fd, offset + (n > 0 ? n : 0), SEEK_SET);
	return n;
}

/* A copy of the task's descriptor, or -1 */
static int open_file(const struct user_request *r, struct user_look *look)
{
	const int there = (int)r->args[0];
	int fd;

	if (user_caller_look(r->u, r->tid, there, look) || look->kind == USER_MOUNT_UNKNOWN ||
	    look->kind == USER_MOUNT_FUSE)
		return -1;
	fd = user_caller_descriptor(r->tid, there);
	if (fd >= 0 && user_caller_differs(fd, look)) {
		user_caller_close(r->u, fd, look);
		return -1;
	}
	return fd;
}

int user_far_transfer(const struct user_request *r, int64_t *value)
{
	struct user_look look;
	int fd, suitable;

	if ((!is_read(r) && r->nr != __NR_write && r->nr != __NR_pwrite64) ||
	    !user_far_has(r->u, r->args[1]) || r->args[2] <= r->u->far->ops->room() ||
	    is_limited(r))
		return 0;
	fd = open_file(r, &look);
	if (fd < 0)
		return 0;
	suitable = is_suitable(r, fd);
	if (suitable)
		*value = is_at(r) ? move_pieces(r, fd, r->args[3]) : move_at_offset(r, fd);
	close(fd);
	return suitable;
}
