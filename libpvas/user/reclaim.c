// SPDX-License-Identifier: LGPL-2.1-or-later
/* User backend: a task has ended; its partition becomes free. Starts come first. */
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "clock.h"
#include "far.h"
#include "rawsys.h"
#include "stay.h"
#include "worker.h"

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
	user_unmap_begin(p);
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
	rotate(u);
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

	if (user_unmap_is_late(u, p) || is_in_use(u, p)) {
		add_stuck(u, p);
		return 0;
	}
	done = user_unmap_some(u, p);
	if (done > 0) {
		/* A worker may have begun that for the task when it was killed. */
		user_load_end(p);
		user_stay_free(p->stay);
		p->stay = NULL;
	}
	pthread_mutex_unlock(&p->lock);
	if (done < 0) {
		add_stuck(u, p);
		return 0;
	}
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
		if (now_ns() - begin > USER_TURN_NS ||
		    __atomic_load_n(&u->clone_waits, __ATOMIC_ACQUIRE))
			return 0;
	}
	return u->ended ? USER_STUCK_MS : -1;
}
