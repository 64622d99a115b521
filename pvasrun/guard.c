// SPDX-License-Identifier: GPL-2.0-only
/* A thread for the end of a job while a task's start hangs: see guard.h. */
#include "guard.h"

#include <limits.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"

#define HANGS_MS	1000	/* A call that takes longer, from the request to end on. */
#define LOOK_MS		20	/* The loop takes a signal within that time, if it can. */
#define STACK_SIZE	(1UL << 20)

/* Until *@stop; false: in that time somebody has asked for the end. */
static bool wait_for_request(const struct guard *guard)
{
	struct pollfd fds[] = {
		{ .fd = guard->stop, .events = POLLIN },
		{ .fd = guard->signals, .events = POLLIN },
	};
	int64_t left;

	for (;;) {
		left = guard->timeout_at ? guard->timeout_at - now_ms() : INT_MAX;
		if (left <= 0)
			return false;
		poll(fds, 2, left > INT_MAX ? INT_MAX : (int)left);
		if (fds[0].revents)
			return true;
		if (fds[1].revents)
			return false;
	}
}

static bool stopped_in(const struct guard *guard, int ms)
{
	struct pollfd stop = { .fd = guard->stop, .events = POLLIN };

	return poll(&stop, 1, ms) > 0;
}

static void *watch(void *arg)
{
	struct guard *guard = arg;
	uint64_t call;

	prctl(PR_SET_NAME, "pvas-guard");
	while (!wait_for_request(guard)) {
		call = __atomic_load_n(&guard->call, __ATOMIC_ACQUIRE);
		if (stopped_in(guard, call & 1 ? HANGS_MS : LOOK_MS))
			return NULL;
		if ((call & 1) && __atomic_compare_exchange_n(&guard->call, &call, 0, 0,
							      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			guard->take_over(guard->arg);
	}
	return NULL;
}

static bool start_thread(struct guard *guard)
{
	sigset_t all, before;
	pthread_attr_t attr;
	bool started;

	/* Each signal is for pvasrun's first thread. */
	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	started = !pthread_create(&guard->thread, &attr, watch, guard);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return started;
}

static void close_all(struct guard *guard)
{
	if (guard->stop >= 0)
		close(guard->stop);
	if (guard->signals >= 0)
		close(guard->signals);
}

void guard_open(struct guard *guard, const sigset_t *end, int64_t timeout_at,
		void (*take_over)(void *arg), void *arg)
{
	*guard = (struct guard){
		.timeout_at = timeout_at, .take_over = take_over, .arg = arg, .call = 2,
		.stop = eventfd(0, EFD_CLOEXEC), .signals = signalfd(-1, end, SFD_CLOEXEC),
	};
	guard->running = guard->stop >= 0 && guard->signals >= 0 && start_thread(guard);
	if (!guard->running)
		close_all(guard);
}

void guard_close(struct guard *guard)
{
	if (!guard->running)
		return;
	guard->running = false;
	eventfd_write(guard->stop, 1);
	pthread_join(guard->thread, NULL);
	close_all(guard);
}

void guard_enter(struct guard *guard)
{
	__atomic_add_fetch(&guard->call, 1, __ATOMIC_ACQ_REL);
}

void guard_leave(struct guard *guard)
{
	uint64_t call = __atomic_load_n(&guard->call, __ATOMIC_ACQUIRE);

	while (call)
		if (__atomic_compare_exchange_n(&guard->call, &call, call + 1, 0,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return;
	for (;;)
		pause();
}
