// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: a worker fills memory with pages for a task (MAP_POPULATE, MAP_LOCKED).
 *
 * The kernel holds the mm's lock from the first page to the last, and lets only the caller's
 * death end that: the worker's, not the task's. So it is done in slices, between which others can
 * map, and the worker looks whether the task is dead.
 */
#include <errno.h>
#include <sys/mman.h>

#include "rawsys.h"
#include "worker.h"

#define SLICE	(16UL << 20)	/* a multiple of the usual huge page: some milliseconds */
#define SLOW_MAX	(WORKERS_MAX / 4)	/* the others are left for other tasks */

/* As mmap() does, ignore errors. */
static void fill(const struct user_request *r, uint64_t at, uint64_t len, int how)
{
	const uint64_t end = at + PAGE_UP(len);
	uint64_t next;
	long err = 0;

	for (; at < end && !err; at = next) {
		next = (at + SLICE) & ~(SLICE - 1);
		if (next > end)
			next = end;
		if (how == USER_FILL_LOCKED)
			err = pvas_raw2(__NR_mlock, at, next - at);
		else
			err = pvas_raw3(__NR_madvise, at, next - at, how);
		if (next < end && user_request_given_up(r))
			break;
	}
}

void user_fill(const struct user_request *r, uint64_t at, uint64_t len, int how, int slow)
{
	int *const n = &r->u->slow_fills;

	if (!slow) {
		fill(r, at, len, how);
		return;
	}
	if (__atomic_add_fetch(n, 1, __ATOMIC_RELAXED) <= SLOW_MAX)
		fill(r, at, len, how);
	__atomic_sub_fetch(n, 1, __ATOMIC_RELAXED);
}

int user_fill_how(struct user_mmap *m)
{
	const int flags = m->flags;
	const int writes = (m->prot & PROT_WRITE) && (flags & MAP_TYPE) == MAP_PRIVATE;

	m->flags &= ~(MAP_POPULATE | MAP_LOCKED);
	if (flags & MAP_LOCKED)
		return USER_FILL_LOCKED;
	if ((flags & (MAP_POPULATE | MAP_NONBLOCK)) != MAP_POPULATE)
		return USER_FILL_NOT;
	return writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
}

int64_t user_fill_reserve(const struct user_mmap *m, int64_t at)
{
	long err = pvas_raw3(__NR_mlock2, at, PAGE_UP(m->len), MLOCK_ONFAULT);

	if (!err)
		return at;
	pvas_raw2(__NR_munmap, at, PAGE_UP(m->len));
	return err == -ENOMEM ? -EAGAIN : err;
}
