// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: unmap the memory of a task that has ended.
 *
 * One munmap() of the whole partition would delay the other tasks' mapping calls
 * by a tenth of a second per GiB. So it is unmapped in slices that take about a
 * millisecond, between which the supervisor does its other work.
 *
 * It may also drop the last reference to a file, and sleep until a socket's peer has read
 * all, or a device has written all. So a thread of its own makes these calls, for which the
 * supervisor waits; if it is late, the partition remains in use, and the next one gets
 * another thread.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#include "clock.h"
#include "rawsys.h"
#include "worker.h"

#define SLICE_MIN	(8UL << 20)	/* full of small pages: a millisecond */
#define SLICE_MAX	(64UL << 20)
#define SLICE_MAPPINGS	256		/* of a page each: half a millisecond */
#define QUICK_NS	200000
#define LATE_NS		200000000	/* of a first thread; of others less, by their number */

enum { IDLE, BUSY, END };

/**
 * struct user_unmapper - the thread
 * @part:	unmap some of it
 * @turn:	futex: IDLE, BUSY or END. The side that finds END in place of BUSY frees this.
 * @done:	@part is unmapped
 */
struct user_unmapper {
	struct user_space *u;
	struct user_part *part;
	pthread_t thread;
	uint32_t turn;
	int done;
};

/* ---- slices ---- */

/*
 * Returns where the next mapping of the partition from @at on begins, and its end in @end. If the
 * kernel can't tell, treat the rest of the partition as one mapping. @maps: -1 if it is lost
 */
static uint64_t find_next(const struct user_part *p, int maps, uint64_t at, uint64_t *end)
{
	uint64_t start, its_end;

	*end = p->end;
	if (maps < 0 || user_maps_query(maps, at, &start, &its_end))
		return at;
	if (start >= p->end)
		return p->end;
	if (its_end < p->end)
		*end = its_end;
	return start > at ? start : at;
}

/*
 * Extends [at, *end) by the mappings above it that fill a slice with it, and returns how much all
 * of them are: each call makes all processors that run tasks forget addresses. Not by any number
 * of them, which takes longer than their pages.
 */
static uint64_t find_more(const struct user_part *p, int maps, uint64_t at, uint64_t *end)
{
	uint64_t len = *end - at, next, to;
	unsigned int nr;

	for (nr = 1; nr < SLICE_MAPPINGS && len < p->slice; nr++) {
		next = find_next(p, maps, *end, &to);
		if (next >= p->end || to - next > p->slice - len)
			break;
		len += to - next;
		*end = to;
	}
	return len;
}

/* For a partition of 8 TiB not to need a hundred thousand slices */
static uint64_t largest_slice(const struct user_part *p)
{
	uint64_t most = (p->end - p->base) >> 10;

	return most > SLICE_MAX ? most : SLICE_MAX;
}

/*
 * Of @len bytes of mappings that begin at @at and end at @end. Ends at a multiple of the slice, so
 * that no huge page is split.
 */
static void unmap_slice(struct user_part *p, uint64_t at, uint64_t end, uint64_t len)
{
	uint64_t to = (at + p->slice) & ~(p->slice - 1);
	int64_t begin = now_ns(), took;

	if (to > end || len <= p->slice)
		to = end;
	/* Larger huge pages can only be unmapped whole. */
	if (pvas_raw2(__NR_munmap, at, to - at)) {
		to = end;
		pvas_raw2(__NR_munmap, at, to - at);
	}
	p->reclaim = to;
	took = now_ns() - begin;
	if (took < QUICK_NS && p->slice < largest_slice(p))
		p->slice *= 2;
	else if (took > USER_TURN_NS && p->slice > SLICE_MIN)
		p->slice /= 2;
}

/* For a millisecond. Returns whether all is unmapped. */
static int unmap_some(const struct user_space *u, struct user_part *p)
{
	int maps = user_file_is_ours(u->maps) ? u->maps : -1;
	int64_t begin = now_ns();
	uint64_t at, end, len;

	while (p->reclaim < p->end) {
		at = find_next(p, maps, p->reclaim, &end);
		if (at >= p->end)
			break;
		len = find_more(p, maps, at, &end);
		unmap_slice(p, at, end, len);
		if (now_ns() - begin > USER_TURN_NS)
			return p->reclaim >= p->end;
	}
	/* Another process in the mm may have mapped behind us. */
	munmap((void *)p->base, p->end - p->base);
	return 1;
}

/* ---- the thread ---- */

static void wake(struct user_unmapper *m)
{
	pvas_raw3(__NR_futex, &m->turn, FUTEX_WAKE_PRIVATE, 1);
}

static void *unmapper_main(void *arg)
{
	struct user_unmapper *m = arg;
	uint32_t turn;

	prctl(PR_SET_NAME, "pvas-unmapper");
	for (;;) {
		turn = __atomic_load_n(&m->turn, __ATOMIC_ACQUIRE);
		if (turn == IDLE)
			pvas_raw4(__NR_futex, &m->turn, FUTEX_WAIT_PRIVATE, IDLE, NULL);
		if (turn == END)
			return NULL;
		if (turn != BUSY)
			continue;
		m->done = unmap_some(m->u, m->part);
		if (!__atomic_compare_exchange_n(&m->turn, &turn, IDLE, 0, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE)) {
			free(m);
			return NULL;
		}
		wake(m);
	}
}

/* NULL: there can't be one. */
static struct user_unmapper *make(struct user_space *u)
{
	struct user_unmapper *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->u = u;
	if (!pthread_create(&m->thread, NULL, unmapper_main, m))
		return m;
	free(m);
	return NULL;
}

static void end(struct user_unmapper *m)
{
	pthread_t thread = m->thread;

	if (__atomic_exchange_n(&m->turn, END, __ATOMIC_ACQ_REL) == BUSY) {
		pthread_detach(thread);
		return;
	}
	wake(m);
	pthread_join(thread, NULL);
	free(m);
}

static int is_busy(struct user_unmapper *m)
{
	return __atomic_load_n(&m->turn, __ATOMIC_ACQUIRE) == BUSY;
}

/* Returns whether its turn has ended. */
static int wait_for(struct user_unmapper *m, int64_t ns)
{
	const int64_t until = now_ns() + ns;
	struct timespec left = { 0 };

	while (is_busy(m) && ns > 0) {
		left.tv_nsec = ns;
		pvas_raw4(__NR_futex, &m->turn, FUTEX_WAIT_PRIVATE, BUSY, &left);
		ns = until - now_ns();
	}
	return !is_busy(m);
}

/* ---- in the supervisor ---- */

void user_unmap_begin(struct user_part *p)
{
	p->reclaim = p->base;
	p->slice = SLICE_MIN;
}

int user_unmap_is_late(struct user_space *u, struct user_part *p)
{
	struct user_unmapper *m = p->unmapper;

	if (!m)
		return 0;
	if (is_busy(m))
		return 1;
	p->unmapper = NULL;
	u->nr_late--;
	if (u->unmapper)
		end(m);
	else
		u->unmapper = m;
	return 0;
}

int user_unmap_some(struct user_space *u, struct user_part *p)
{
	struct user_unmapper *m = u->unmapper ? u->unmapper : make(u);

	u->unmapper = m;
	if (!m)
		return unmap_some(u, p);
	m->part = p;
	__atomic_store_n(&m->turn, BUSY, __ATOMIC_RELEASE);
	wake(m);
	if (wait_for(m, LATE_NS / (1 + u->nr_late)))
		return m->done;
	u->unmapper = NULL;
	p->unmapper = m;
	u->nr_late++;
	return -EBUSY;
}

int user_unmap_stop(struct user_space *u)
{
	uint32_t i;

	for (i = u->space->first; i <= u->space->last; i++)
		if (user_unmap_is_late(u, &u->parts[i]))
			end(u->parts[i].unmapper);
	if (u->unmapper)
		end(u->unmapper);
	u->unmapper = NULL;
	return u->nr_late > 0;
}
