// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: how many workers there are, and how they end.
 *
 * A worker sleeps in an ioctl that only a call under the filter wakes: so the
 * keeper makes one call for each. It counts them under the space's lock, since
 * with one call too many it would wait for ever.
 */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "rawsys.h"
#include "user.h"

/* This worker came back after it was given up, and is counted no more. */
static __thread int left;

static int add_worker(struct user_space *u)
{
	int err = pthread_create(&u->workers[u->nr_workers], NULL, user_worker_main, u);

	u->nr_workers += !err;
	u->nr_live += !err;
	return -err;
}

/* With all of them in slow calls nobody would be served: then there is one more. */
int user_worker_slow(struct user_space *u)
{
	int given_up;

	pthread_mutex_lock(&u->lock);
	given_up = u->abandoned;
	u->nr_slow += !given_up;
	if (!given_up && u->nr_slow >= u->nr_workers && u->nr_workers < WORKERS_MAX && !u->stop)
		add_worker(u);
	pthread_mutex_unlock(&u->lock);
	return given_up ? -EINTR : 0;
}

void user_worker_quick(struct user_space *u)
{
	pthread_mutex_lock(&u->lock);
	u->nr_slow--;
	/* The keeper has not counted it: it makes no call for it. */
	if (u->abandoned) {
		u->nr_live--;
		left = 1;
	}
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->lock);
}

int user_worker_left(void)
{
	return left;
}

void user_worker_ends(struct user_space *u)
{
	if (left)
		return;
	pthread_mutex_lock(&u->lock);
	u->nr_live--;
	pthread_cond_broadcast(&u->changed);
	pthread_mutex_unlock(&u->lock);
}

int user_workers_start(struct user_space *u)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned int wanted = cpus < 2 ? 2 : cpus > WORKERS ? WORKERS : (unsigned int)cpus;
	int err = 0;

	pthread_mutex_lock(&u->lock);
	while (u->nr_workers < wanted && !err)
		err = add_worker(u);
	pthread_mutex_unlock(&u->lock);
	return err;
}

static void a_second_from_now(struct timespec *until)
{
	clock_gettime(CLOCK_REALTIME, until);
	until->tv_sec++;
}

/*
 * One in a slow call has a second to come back. From then on none begins such a
 * call, and one that comes back ends by itself: of the others each takes a call.
 */
void user_workers_dismiss(struct user_space *u)
{
	struct timespec until;

	a_second_from_now(&until);
	pthread_mutex_lock(&u->lock);
	while (u->nr_slow && !pthread_cond_timedwait(&u->changed, &u->lock, &until))
		;
	u->abandoned = 1;
	while (u->nr_live > u->nr_slow) {
		pthread_mutex_unlock(&u->lock);
		pvas_raw0(USER_NR_STOP);
		pthread_mutex_lock(&u->lock);
	}
	pthread_mutex_unlock(&u->lock);
}

int user_workers_join(struct user_space *u)
{
	struct timespec until;
	int missing;

	a_second_from_now(&until);
	pthread_mutex_lock(&u->lock);
	while (u->nr_live && !pthread_cond_timedwait(&u->changed, &u->lock, &until))
		;
	missing = (int)u->nr_live;
	pthread_mutex_unlock(&u->lock);
	while (u->nr_workers) {
		pthread_t t = u->workers[--u->nr_workers];

		if (missing)
			pthread_detach(t);
		else
			pthread_join(t, NULL);
	}
	return missing;
}
