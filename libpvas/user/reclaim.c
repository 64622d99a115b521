// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: a task has ended; its partition becomes free.
 *
 * One munmap() of the whole partition would delay the other tasks' mapping calls
 * by a tenth of a second per GiB. So it is unmapped in slices that take about a
 * millisecond, between which the supervisor does its other work: starts come first.
 */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"
#include "far.h"
#include "rawsys.h"
#include "stay.h"
#include "worker.h"

#define SLICE_MIN	(8UL << 20)	/* full of small pages: a millisecond */
#define SLICE_MAX	(64UL << 20)
#define SLICE_MAPPINGS	256		/* of a page each: half a millisecond */
#define TURN_NS		1000000
#define QUICK_NS	200000

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
	else if (took > TURN_NS && p->slice > SLICE_MIN)
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
		if (now_ns() - begin > TURN_NS)
			return p->reclaim >= p->end;
	}
	/* Another process in the mm may have mapped behind us. */
	munmap((void *)p->base, p->end - p->base);
	return 1;
}

/* ---- the queue: the supervisor's alone ---- */

static void set_state(struct user_space *u, struct user_part *p, uint32_t state)
{
	pthread_mutex_lock(&u->lock);
	p->state = state;
	/* The pid can soon be another process'. */
	p->pid = 0;
	if (state == PVAS_PART_FREE)
		user_release_process(u, p);
	user_publish(u, p, state);
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->lock);
}

/* Closing the pidfd is not enough: a process that the launcher has forked may have it too. */
static void stop_watching(const struct user_space *u, const struct user_part *p)
{
	if (user_file_is_ours(u->epoll))
		pvas_raw4(__NR_epoll_ctl, u->epoll, EPOLL_CTL_DEL, p->pidfd, NULL);
}

void user_reclaim_begin(struct user_space *u, struct user_part *p)
{
	struct user_part **last = &u->ended;

	user_fork_forget(u, p);
	stop_watching(u, p);
	__atomic_add_fetch(&u->changes, 1, __ATOMIC_SEQ_CST);
	p->reclaim = p->base;
	p->slice = SLICE_MIN;
	p->stuck = 0;
	p->next = NULL;
	while (*last)
		last = &(*last)->next;
	*last = p;
	set_state(u, p, PVAS_PART_ENDING);
	/* Not before: while it is RUNNING, only by this can others tell that it has left. */
	user_exec_forget(u, p);
}

/* Move the first in the queue to the end. */
static void rotate(struct user_space *u)
{
	struct user_part *p = u->ended, **last = &u->ended;

	u->ended = p->next;
	p->next = NULL;
	while (*last)
		last = &(*last)->next;
	*last = p;
}

/* Those who have begun to wait for the partition stop doing so: user_part_ending(). */
static void add_stuck(struct user_space *u, struct user_part *p)
{
	pthread_mutex_lock(&u->lock);
	if (++p->stuck == USER_STUCK_MAX)
		pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->lock);
}

/*
 * Does a worker still handle a request of the task, or a store have a page of it? If not, the
 * partition is locked now.
 */
static int is_in_use(struct user_space *u, struct user_part *p)
{
	if (__atomic_load_n(&p->handled, __ATOMIC_SEQ_CST) || pthread_mutex_trylock(&p->lock))
		return 1;
	if (p->reclaim != p->base || user_far_end_part(u, p))
		return 0;
	pthread_mutex_unlock(&p->lock);
	return 1;
}

/* Returns 0 if it is in use; other partitions don't wait. */
static int reclaim_one(struct user_space *u, struct user_part *p)
{
	int done;

	if (is_in_use(u, p)) {
		add_stuck(u, p);
		rotate(u);
		return 0;
	}
	done = unmap_some(u, p);
	if (done) {
		/* A worker may have begun that for the task when it was killed. */
		user_load_end(p);
		user_stay_free(p->stay);
		p->stay = NULL;
	}
	pthread_mutex_unlock(&p->lock);
	if (!done) {
		rotate(u);
		return 1;
	}
	u->ended = p->next;
	set_state(u, p, PVAS_PART_FREE);
	return 1;
}

int user_reclaim_some(struct user_space *u)
{
	int64_t begin = now_ns();
	struct user_part *first = NULL;

	while (u->ended && u->ended != first) {
		struct user_part *p = u->ended;

		if (reclaim_one(u, p))
			first = NULL;
		else if (!first)
			first = p;
		if (now_ns() - begin > TURN_NS ||
		    __atomic_load_n(&u->clone_waits, __ATOMIC_ACQUIRE))
			return 0;
	}
	return u->ended ? USER_STUCK_MS : -1;
}
