// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: long transfers between files and far memory.
 *
 * Of a buffer larger than what can be held for one call, the kernel would transfer the first
 * part only. From a pipe or socket programs expect that; from a file many do not. So a worker
 * makes the call, in pieces, on the task's open file. No signal interrupts it, as none
 * interrupts a file's.
 */
#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "far.h"
#include "rawsys.h"

#define LONG	(256UL << 10)
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

static int is_file(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode));
}

/* One piece: what read() or write() returns; *@asked is how much was tried. */
static int64_t move_piece(const struct user_request *r, int fd, uint64_t done, uint64_t *asked)
{
	const struct pvas_far_ops *ops = r->u->far->ops;
	uint64_t at = r->args[1] + done, left = r->args[2] - done, held = 0;
	int64_t n;
	int tries;

	for (tries = 0; tries < TRIES && !held; tries++) {
		if (tries)
			usleep(PAUSE);
		held = ops->hold(at, left < LONG ? left : LONG, is_read(r));
		if (!user_request_valid())
			break;
	}
	*asked = held;
	if (!held)
		return -ENOMEM;
	if (is_at(r))
		n = pvas_raw4(r->nr, fd, at, held, r->args[3] + done);
	else
		n = pvas_raw3(r->nr, fd, at, held);
	ops->release(at, held);
	return n;
}

static int64_t transfer(const struct user_request *r, int fd)
{
	uint64_t done = 0, asked;
	int64_t n;

	do {
		n = move_piece(r, fd, done, &asked);
		if (n > 0)
			done += (uint64_t)n;
	} while (n > 0 && (uint64_t)n == asked && done < r->args[2]);
	return done ? (int64_t)done : n;
}

int user_far_transfer(const struct user_request *r, int64_t *value)
{
	int fd;

	if ((!is_read(r) && r->nr != __NR_write && r->nr != __NR_pwrite64) ||
	    r->args[2] <= LONG || !user_far_has(r->u, r->args[1]) || is_limited(r))
		return 0;
	fd = user_caller_descriptor(r->tid, (int)r->args[0]);
	if (fd < 0)
		return 0;
	if (!is_file(fd)) {
		close(fd);
		return 0;
	}
	*value = transfer(r, fd);
	close(fd);
	return 1;
}
