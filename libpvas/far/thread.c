// SPDX-License-Identifier: LGPL-2.1-or-later
/* The pager's threads: some serve faults, some put pages and fetch ahead. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "far.h"
#include "store.h"

enum { STACK = 256 * 1024 };

static void __attribute__((noreturn)) die_here(const char *what)
{
	static bool dying;
	char line[600];
	int n = snprintf(line, sizeof(line), "pvas-far: %s\n", what);

	if (n >= (int)sizeof(line))
		n = sizeof(line) - 1;
	/* Several threads may find at once that a store has failed: one says so. */
	if (__atomic_exchange_n(&dying, true, __ATOMIC_ACQ_REL))
		for (;;)
			pause();
	while (write(2, line, (size_t)n) < 0 && errno == EINTR)
		;
	_exit(1);
}

void (*far_when_dying)(const char *what);

void far_die(const char *what)
{
	if (__atomic_load_n(&far.left, __ATOMIC_ACQUIRE))
		for (;;)
			pause();
	while (far_when_dying) {
		far_when_dying(what);
		/* The page stays busy: those who wait for it must not do so for ever. */
		pthread_mutex_lock(&far.lock);
		far.dying = true;
		pthread_cond_broadcast(&far.changed);
		pthread_mutex_unlock(&far.lock);
		for (;;)
			pause();
	}
	die_here(what);
}

/* A fault wakes one thread, not all of them: hence one epoll a thread. */
static int wait_descriptor(void)
{
	struct epoll_event fault = { .events = EPOLLIN | EPOLLEXCLUSIVE };
	struct epoll_event stop = { .events = EPOLLIN };
	int fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (!epoll_ctl(fd, EPOLL_CTL_ADD, far.uffd.fd, &fault) &&
	    !epoll_ctl(fd, EPOLL_CTL_ADD, far.stop_fd, &stop))
		return fd;
	close(fd);
	return -errno;
}

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	struct epoll_event event;
	struct far_fault fault;
	struct far_home home;
	bool more;

	far_home_begin(&home);
	while (!__atomic_load_n(&far.stop, __ATOMIC_ACQUIRE)) {
		epoll_wait(fd, &event, 1, -1);
		more = true;
		while (more && far_uffd_read(&far.uffd, &fault)) {
			far_fault(&fault);
			if (!far_exchanges())
				far_home_follow(&home, fault.tid);
			/* The only thread goes on when this one sleeps. */
			more = home.at < 0;
		}
	}
	close(fd);
	return NULL;
}

/*
 * Pages leave in batches: with each fault one, each would wake a worker, which takes longer than
 * the fault itself.
 */
static bool must_refill(void)
{
	if (!far.free_low && far.mapped + far_reserve_low() > far.frames)
		far.free_low = true;
	if (far.mapped + far_reserve() <= far.frames)
		far.free_low = false;
	return far.free_low;
}

/* One thing that has to be done, if there is one */
static bool work(void)
{
	bool urgent = far.waiting || far.dirty.count > far.out_count / 2;

	if (urgent && far_write_back())
		return true;
	if (far_ahead_work())
		return true;
	if (must_refill() && far_evict())
		return true;
	return far.dirty.count > far.out_count / 4 && far_write_back();
}

/* A thread that takes steps while there are any */
static void *take_steps(bool (*step)(void))
{
	pthread_mutex_lock(&far.lock);
	while (!far.stop)
		if (!step())
			pthread_cond_wait(&far.work, &far.lock);
	pthread_mutex_unlock(&far.lock);
	return NULL;
}

static void *work_on_all(void *arg)
{
	(void)arg;
	return take_steps(work);
}

/* Pages shall come while others leave, for which all workers may be waiting. */
static void *work_ahead(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&far.lock);
	while (!far.stop) {
		if (far_ahead_work())
			continue;
		far.fetcher_waits = true;
		pthread_cond_wait(&far.fetch, &far.lock);
		far.fetcher_waits = false;
	}
	pthread_mutex_unlock(&far.lock);
	return NULL;
}

static void *communicate(void *arg)
{
	(void)arg;
	return take_steps(far.protocol->communicate);
}

static void *receive(void *arg)
{
	(void)arg;
	return take_steps(far.protocol->receive);
}

static void *discard(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&far.lock);
	while (!far.stop)
		if (!far_discard_work())
			pthread_cond_wait(&far.discard, &far.lock);
	pthread_mutex_unlock(&far.lock);
	return NULL;
}

static int start(void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&far.thread[far.started], &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (err)
		return far_fail(-err, "can't create a thread: %s", strerror(err));
	pthread_setname_np(far.thread[far.started++], "pvas-far");
	return 0;
}

static int start_server(void)
{
	int fd = wait_descriptor(), err;

	if (fd < 0)
		return far_fail(fd, "epoll: %s", strerror(-fd));
	err = start(serve, (void *)(intptr_t)fd);
	if (err)
		close(fd);
	return err;
}

/* One thread that reads faults, and those of the protocol */
static int start_protocol(void)
{
	int err = start_server();

	if (!err)
		err = start(communicate, NULL);
	return err || !far.protocol->receive ? err : start(receive, NULL);
}

static int start_own(void)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < far.threads && !err; i++)
		err = start_server();
	for (i = 0; i < FAR_WORKERS && !err; i++)
		err = start(work_on_all, NULL);
	return err ? err : start(work_ahead, NULL);
}

int far_threads_start(void)
{
	int err;

	far.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (far.stop_fd < 0)
		return far_fail(-errno, "eventfd: %s", strerror(errno));
	err = far_exchanges() ? start_protocol() : start_own();
	if (!err)
		err = start(discard, NULL);
	if (err)
		far_threads_stop(-1);
	return err;
}

static bool tell_to_stop(void)
{
	uint64_t one = 1;

	pthread_mutex_lock(&far.lock);
	__atomic_store_n(&far.stop, true, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&far.work);
	pthread_cond_broadcast(&far.fetch);
	pthread_cond_broadcast(&far.discard);
	pthread_mutex_unlock(&far.lock);
	return write(far.stop_fd, &one, sizeof(one)) == sizeof(one);
}

static bool join(pthread_t thread, const struct timespec *until)
{
	return !(until ? pthread_timedjoin_np(thread, NULL, until) : pthread_join(thread, NULL));
}

bool far_threads_stop(int seconds)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	if (!tell_to_stop())
		return false;		/* It can't be full. */
	while (far.started && join(far.thread[far.started - 1], seconds < 0 ? NULL : &until))
		far.started--;
	if (!far.started) {
		close(far.stop_fd);
		return true;
	}
	__atomic_store_n(&far.left, true, __ATOMIC_RELEASE);
	far_stripe_abandon(&far.stripe);
	return false;
}
