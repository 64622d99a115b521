// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: how many workers there are, and how they end.
 *
 * A worker sleeps in an ioctl that only a call under the filter wakes: so the
 * keeper makes one call for each. It counts them under the pool's lock, since
 * with one call too many it would wait for ever.
 *
 * Much of a worker's business can last as long as a file server likes: a fault,
 * the close of a file, a look at a process in the middle of execve. So each
 * counts as slow from the arrival of a call to its answer, and a thread of its
 * own (the pool's) adds a worker when all have been slow for a while.
 */
#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "rawsys.h"
#include "user.h"

#define STUCK_NS	5000000	/* so long none has come back: there shall be one more */

/* This worker came back after it was given up, and is counted no more. */
static __thread int left;

static int add_worker(struct user_space *u)
{
	int err = pthread_create(&u->workers[u->nr_workers], NULL, user_worker_main, u);

	u->nr_workers += !err;
	u->nr_live += !err;
	return -err;
}

static int all_slow(const struct user_space *u)
{
	return u->nr_slow >= u->nr_workers && u->nr_workers < WORKERS_MAX;
}

int user_worker_slow(struct user_space *u)
{
	int given_up;

	pthread_mutex_lock(&u->pool_lock);
	given_up = u->abandoned;
	u->nr_slow += !given_up;
	if (!given_up && all_slow(u))
		pthread_cond_broadcast(&u->pool_changed);
	pthread_mutex_unlock(&u->pool_lock);
	return given_up ? -EINTR : 0;
}

void user_worker_quick(struct user_space *u)
{
	pthread_mutex_lock(&u->pool_lock);
	u->nr_slow--;
	u->nr_served++;
	/* The keeper has not counted it: it makes no call for it. */
	if (u->abandoned) {
		u->nr_live--;
		left = 1;
	}
	if (__atomic_load_n(&u->stop, __ATOMIC_ACQUIRE))
		pthread_cond_broadcast(&u->pool_changed);
	pthread_mutex_unlock(&u->pool_lock);
}

int user_worker_left(void)
{
	return left;
}

void user_worker_ends(struct user_space *u)
{
	if (left)
		return;
	pthread_mutex_lock(&u->pool_lock);
	u->nr_live--;
	pthread_cond_broadcast(&u->pool_changed);
	pthread_mutex_unlock(&u->pool_lock);
}

/* ---- the pool's thread ---- */

/* All are slow: are they still, and has none come back meanwhile? */
static void grow_if_stuck(struct user_space *u)
{
	const struct timespec while_ = { .tv_nsec = STUCK_NS };
	unsigned int seen = u->nr_served;

	pthread_mutex_unlock(&u->pool_lock);
	nanosleep(&while_, NULL);
	pthread_mutex_lock(&u->pool_lock);
	if (!u->pool_stop && !u->abandoned && all_slow(u) && u->nr_served == seen)
		add_worker(u);
}

static unsigned int workers_wanted(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return cpus < 2 ? 2 : cpus > WORKERS ? WORKERS : (unsigned int)cpus;
}

/* The workers have the descriptors of this thread, which makes them: see files.c. */
static void *pool_main(void *arg)
{
	struct user_space *u = arg;
	unsigned int wanted = workers_wanted();
	struct user_files files;

	prctl(PR_SET_NAME, "pvas-pool");
	user_files_leave(u, &files);
	pthread_mutex_lock(&u->pool_lock);
	while (u->nr_workers < wanted && !u->pool_err)
		u->pool_err = add_worker(u);
	pthread_mutex_unlock(&u->pool_lock);
	/* It can hang in this; the workers don't. */
	user_files_close(&files);
	pthread_mutex_lock(&u->pool_lock);
	u->pool_ready = 1;
	pthread_cond_broadcast(&u->pool_changed);
	while (!u->pool_stop) {
		if (all_slow(u))
			grow_if_stuck(u);
		else
			pthread_cond_wait(&u->pool_changed, &u->pool_lock);
	}
	u->pool_live = 0;
	pthread_cond_broadcast(&u->pool_changed);
	pthread_mutex_unlock(&u->pool_lock);
	return NULL;
}

static void a_second_from_now(struct timespec *until)
{
	clock_gettime(CLOCK_REALTIME, until);
	until->tv_sec++;
}

/* Workers are there when this returns; the rest of the pool's beginning has a second. */
int user_workers_start(struct user_space *u)
{
	struct timespec until;
	int err = pthread_create(&u->pool, NULL, pool_main, u);

	if (err)
		return -err;
	a_second_from_now(&until);
	pthread_mutex_lock(&u->pool_lock);
	u->pool_live = 1;
	while (!u->pool_ready && !pthread_cond_timedwait(&u->pool_changed, &u->pool_lock, &until))
		;
	err = u->pool_err;
	pthread_mutex_unlock(&u->pool_lock);
	return err;
}

/*
 * One in a slow call has a second to come back. From then on none begins such a
 * call, and one that comes back ends by itself: of the others each takes a call.
 */
void user_workers_dismiss(struct user_space *u)
{
	struct timespec until;

	a_second_from_now(&until);
	pthread_mutex_lock(&u->pool_lock);
	while (u->nr_slow && !pthread_cond_timedwait(&u->pool_changed, &u->pool_lock, &until))
		;
	u->abandoned = 1;
	while (u->nr_live > u->nr_slow) {
		pthread_mutex_unlock(&u->pool_lock);
		pvas_raw0(USER_NR_STOP);
		pthread_mutex_lock(&u->pool_lock);
	}
	pthread_mutex_unlock(&u->pool_lock);
}

/* Returns whether it has not come back. */
static int end_pool(struct user_space *u, const struct timespec *until)
{
	int missing;

	pthread_mutex_lock(&u->pool_lock);
	u->pool_stop = 1;
	pthread_cond_broadcast(&u->pool_changed);
	while (u->pool_live && !pthread_cond_timedwait(&u->pool_changed, &u->pool_lock, until))
		;
	missing = u->pool_live;
	pthread_mutex_unlock(&u->pool_lock);
	if (missing)
		pthread_detach(u->pool);
	else if (u->pool_ready)
		pthread_join(u->pool, NULL);
	return missing;
}

int user_workers_join(struct user_space *u)
{
	struct timespec until;
	int missing;

	a_second_from_now(&until);
	missing = end_pool(u, &until);
	pthread_mutex_lock(&u->pool_lock);
	while (u->nr_live && !pthread_cond_timedwait(&u->pool_changed, &u->pool_lock, &until))
		;
	missing += (int)u->nr_live;
	pthread_mutex_unlock(&u->pool_lock);
	while (u->nr_workers) {
		pthread_t t = u->workers[--u->nr_workers];

		if (missing)
			pthread_detach(t);
		else
			pthread_join(t, NULL);
	}
	return missing;
}
