// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: how many workers there are, and how they end.
 *
 * A worker sleeps in an ioctl that only a call under the filter wakes, so to end
 * the workers the supervisor makes one call for each. It counts them under the
 * pool's lock: with one call too many it would wait for ever.
 *
 * Handling a request can take as long as a file server does not answer: by a page
 * fault, by closing a file, by examining a process in the middle of an execve().
 * So a worker counts as busy from the receipt of a request to its answer, and
 * the pool's thread adds a worker when all have been busy for a while.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "apart.h"
#include "rawsys.h"
#include "worker.h"

#define STUCK_NS	5000000	/* if none becomes idle for this long, add one */
#define OTHERS_NS	2000000	/* after the first worker */

/* This worker became idle after the space was abandoned, and is not counted any more. */
static __thread int retired;

static int add_worker(struct user_space *u)
{
	int err = pthread_create(&u->workers[u->nr_workers], NULL, u->worker_main, u);

	u->nr_workers += !err;
	u->nr_live += !err;
	return -err;
}

static int add_helper(struct user_space *u, void *(*main)(void *))
{
	int err = pthread_create(&u->helpers[u->nr_helpers], NULL, main, u);

	u->nr_helpers += !err;
	u->nr_helpers_live += !err;
	return -err;
}

static int all_busy(const struct user_space *u)
{
	return u->nr_busy >= u->nr_workers && u->nr_workers < WORKERS_MAX;
}

static int helpers_stuck(const struct user_space *u)
{
	return user_queue_stuck(u) && (u->nr_helpers_idle || u->nr_helpers < HELPERS_MAX);
}

int user_worker_busy(struct user_space *u)
{
	int given_up;

	pthread_mutex_lock(&u->pool_lock);
	given_up = u->abandoned;
	u->nr_busy += !given_up;
	if (!given_up && all_busy(u))
		pthread_cond_broadcast(&u->pool_changed);
	pthread_mutex_unlock(&u->pool_lock);
	return given_up ? -EINTR : 0;
}

void user_worker_idle(struct user_space *u)
{
	pthread_mutex_lock(&u->pool_lock);
	u->nr_busy--;
	u->nr_served++;
	/* The supervisor has not counted it, and makes no call to end it. */
	if (u->abandoned) {
		u->nr_live--;
		retired = 1;
	}
	if (__atomic_load_n(&u->stop, __ATOMIC_ACQUIRE))
		pthread_cond_broadcast(&u->pool_changed);
	pthread_mutex_unlock(&u->pool_lock);
}

int user_worker_retired(void)
{
	return retired;
}

void user_worker_ends(struct user_space *u)
{
	if (retired)
		return;
	pthread_mutex_lock(&u->pool_lock);
	u->nr_live--;
	pthread_cond_broadcast(&u->pool_changed);
	pthread_mutex_unlock(&u->pool_lock);
}

void user_helper_ends(struct user_space *u)
{
	pthread_mutex_lock(&u->pool_lock);
	u->nr_helpers_live--;
	pthread_cond_broadcast(&u->pool_changed);
	pthread_mutex_unlock(&u->pool_lock);
}

/* ---- the pool's thread ---- */

/* Add a thread if all stay busy for a while, and none has handled a request meanwhile. */
static void grow_if_stuck(struct user_space *u)
{
	const struct timespec while_ = { .tv_nsec = STUCK_NS };
	unsigned int served = u->nr_served, taken = u->queue.nr_taken;

	pthread_mutex_unlock(&u->pool_lock);
	nanosleep(&while_, NULL);
	pthread_mutex_lock(&u->pool_lock);
	if (u->pool_stop || u->abandoned)
		return;
	if (all_busy(u) && u->nr_served == served)
		add_worker(u);
	if (helpers_stuck(u) && u->queue.nr_taken == taken && !user_queue_wake(u))
		add_helper(u, u->helper_main);
}

static unsigned int workers_wanted(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return cpus < 2 ? 2 : cpus > WORKERS ? WORKERS : (unsigned int)cpus;
}

/* This can hang, as helpers may. */
static void *close_files(void *arg)
{
	struct user_space *u = arg;

	user_files_close(&u->files);
	pthread_mutex_lock(&u->pool_lock);
	u->files_closed = 1;
	pthread_cond_broadcast(&u->pool_changed);
	pthread_mutex_unlock(&u->pool_lock);
	return u->helper_main(u);
}

/* One worker and one helper do for a start, and the first pvas_task_spawn() waits for them. */
static int add_first(struct user_space *u)
{
	int err;

	u->files_closed = !u->files.count;
	err = add_helper(u, u->files_closed ? u->helper_main : close_files);
	return err ? err : add_worker(u);
}

/* Not while the first task starts, which would wait for the lock. */
static void add_others(struct user_space *u)
{
	unsigned int wanted = workers_wanted();
	struct timespec until;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += OTHERS_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	while (!u->pool_stop && !u->pool_wakes &&
	       !pthread_cond_timedwait(&u->pool_changed, &u->pool_lock, &until))
		;
	while (u->nr_workers < wanted && !u->pool_stop && !u->abandoned && !err)
		err = add_worker(u);
}

static void wake_if_asked(struct user_space *u)
{
	if (u->pool_wakes)
		user_try_wake(u);
	u->pool_wakes = 0;
}

/*
 * While a worker is in a slow call, the listener must not stay open in the workers' table: others
 * would wait for an answer. The number stays in use, or that worker could take a file of its own
 * for the listener.
 */
static void drop_listener(const struct user_space *u)
{
	if (u->files.are_copies && pvas_raw3(__NR_dup3, u->wake, u->listener, O_CLOEXEC) < 0)
		pvas_raw1(__NR_close, u->listener);
}

static int wait_for_supervisor(struct user_space *u)
{
	int err;

	pthread_mutex_lock(&u->lock);
	while (!u->ready)
		pthread_cond_wait(&u->changed, &u->lock);
	err = u->err;
	pthread_mutex_unlock(&u->lock);
	return err;
}

/* The application may close its descriptors of the space now. */
static void set_apart(struct user_space *u)
{
	pthread_mutex_lock(&u->pool_lock);
	u->pool_apart = 1;
	pthread_cond_broadcast(&u->pool_changed);
	pthread_mutex_unlock(&u->pool_lock);
}

/* The workers share the descriptor table of this thread, which creates them: see files.c. */
static void *pool_main(void *arg)
{
	struct user_space *u = arg;
	int err;

	prctl(PR_SET_NAME, "pvas-pool");
	err = wait_for_supervisor(u);
	if (!err) {
		user_files_unshare(u, &u->files);
		set_apart(u);
		err = user_files_list(u, &u->files);
	}
	if (!err)
		user_files_close_first(u, &u->files);
	pthread_mutex_lock(&u->pool_lock);
	u->pool_err = err ? err : add_first(u);
	u->pool_ready = 1;
	pthread_cond_broadcast(&u->pool_changed);
	if (!u->pool_err) {
		pthread_mutex_unlock(&u->pool_lock);
		user_mounts_begin(u);
		pthread_mutex_lock(&u->pool_lock);
		add_others(u);
	}
	while (!u->pool_stop) {
		wake_if_asked(u);
		if (!u->pool_err && (all_busy(u) || helpers_stuck(u)))
			grow_if_stuck(u);
		else
			pthread_cond_wait(&u->pool_changed, &u->pool_lock);
	}
	drop_listener(u);
	user_reader_stop(u);
	user_mounts_end(u);
	user_apart_reap(u);
	u->pool_live = 0;
	pthread_cond_broadcast(&u->pool_changed);
	pthread_mutex_unlock(&u->pool_lock);
	return NULL;
}

/* Without a pool the caller is the thread that failed to create it, and has the descriptor. */
void user_workers_wake(struct user_space *u)
{
	pthread_mutex_lock(&u->pool_lock);
	u->pool_wakes = u->pool_live;
	if (!u->pool_live)
		user_try_wake(u);
	pthread_cond_broadcast(&u->pool_changed);
	pthread_mutex_unlock(&u->pool_lock);
}

/* The other clock can be set back, and waits of a second would become longer by that. */
void user_init_condition(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

static void a_second_from_now(struct timespec *until)
{
	clock_gettime(CLOCK_MONOTONIC, until);
	until->tv_sec++;
}

int user_workers_begin(struct user_space *u, void *(*worker)(void *), void *(*helper)(void *))
{
	int err;

	u->worker_main = worker;
	u->helper_main = helper;
	u->pool_live = u->has_pool = 1;
	err = pthread_create(&u->pool, NULL, pool_main, u);
	if (err)
		u->pool_live = u->has_pool = 0;
	return -err;
}

int user_workers_wait(struct user_space *u)
{
	int err;

	pthread_mutex_lock(&u->pool_lock);
	while (!u->pool_apart && !u->pool_ready)
		pthread_cond_wait(&u->pool_changed, &u->pool_lock);
	err = u->pool_err;
	pthread_mutex_unlock(&u->pool_lock);
	return err;
}

/* It waits at most a second, once, for the copies of descriptors to be closed. */
int user_workers_ready(struct user_space *u)
{
	struct timespec until;
	int err;

	a_second_from_now(&until);
	pthread_mutex_lock(&u->pool_lock);
	while (!u->pool_ready)
		pthread_cond_wait(&u->pool_changed, &u->pool_lock);
	err = u->pool_err;
	while (!err && !u->files_closed && !u->files_waited &&
	       !pthread_cond_timedwait(&u->pool_changed, &u->pool_lock, &until))
		;
	u->files_waited = 1;
	pthread_mutex_unlock(&u->pool_lock);
	return err;
}

void user_workers_cancel(struct user_space *u)
{
	if (!u->has_pool)
		return;
	pthread_mutex_lock(&u->pool_lock);
	u->pool_stop = 1;
	pthread_cond_broadcast(&u->pool_changed);
	pthread_mutex_unlock(&u->pool_lock);
	pthread_join(u->pool, NULL);
	u->has_pool = 0;
}

/*
 * Busy workers have a second to become idle. After that no request is handled, and
 * a worker that becomes idle ends by itself; each of the others needs a call to end. If a
 * call ends none, a sandbox has refused it, and those that are left count as stuck.
 */
void user_workers_stop(struct user_space *u)
{
	struct timespec until;
	unsigned int live;

	a_second_from_now(&until);
	pthread_mutex_lock(&u->pool_lock);
	while (u->nr_busy && !pthread_cond_timedwait(&u->pool_changed, &u->pool_lock, &until))
		;
	u->abandoned = 1;
	pthread_cond_broadcast(&u->queue.added);
	do {
		live = u->nr_live;
		if (live <= u->nr_busy)
			break;
		pthread_mutex_unlock(&u->pool_lock);
		user_filter_call_worker(u);
		pthread_mutex_lock(&u->pool_lock);
	} while (u->nr_live != live);
	pthread_mutex_unlock(&u->pool_lock);
}

static void end_thread(pthread_t thread, int missing)
{
	if (missing)
		pthread_detach(thread);
	else
		pthread_join(thread, NULL);
}

/* Returns whether the pool's threads have failed to end in time. */
static int end_pool(struct user_space *u)
{
	struct timespec until;
	int missing;

	a_second_from_now(&until);
	pthread_mutex_lock(&u->pool_lock);
	u->pool_stop = 1;
	pthread_cond_broadcast(&u->pool_changed);
	while (u->pool_live && !pthread_cond_timedwait(&u->pool_changed, &u->pool_lock, &until))
		;
	missing = u->pool_live;
	pthread_mutex_unlock(&u->pool_lock);
	if (u->pool_ready)
		end_thread(u->pool, missing);
	u->has_pool = 0;
	return missing;
}

static void end_all(pthread_t *threads, unsigned int n, int missing)
{
	while (n--)
		end_thread(threads[n], missing);
}

int user_workers_join(struct user_space *u)
{
	struct timespec until;
	int missing;

	a_second_from_now(&until);
	pthread_mutex_lock(&u->pool_lock);
	/* If the supervisor has not started, it has not ended them either. */
	u->abandoned = 1;
	pthread_cond_broadcast(&u->queue.added);
	while ((u->nr_live || u->nr_helpers_live) &&
	       !pthread_cond_timedwait(&u->pool_changed, &u->pool_lock, &until))
		;
	missing = (int)(u->nr_live + u->nr_helpers_live);
	pthread_mutex_unlock(&u->pool_lock);
	/* Not before: it closes the listener. */
	missing += end_pool(u);
	end_all(u->workers, u->nr_workers, missing);
	end_all(u->helpers, u->nr_helpers, missing);
	u->nr_workers = u->nr_helpers = 0;
	if (!missing) {
		user_queue_free(u);
		user_apart_free(u);
		user_files_free(&u->files);
	}
	return missing;
}
