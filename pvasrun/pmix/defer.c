// SPDX-License-Identifier: GPL-2.0-only
/* Call a function in libpmix's thread, after the current callback or after a time. */
#include "internal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

struct deferred {
	timer_t timer;
	void (*fn)(uintptr_t arg);
	uintptr_t arg;
};

static void call_deferred(pmix_status_t status, void *data)
{
	struct deferred *deferred = data;

	(void)status;
	timer_delete(deferred->timer);
	deferred->fn(deferred->arg);
	free(deferred);
}

/*
 * libpmix has no function for this. But it completes the deregistration of an unknown
 * client, which changes nothing, in its own thread.
 */
void pmix_defer(pmix_op_cbfunc_t fn, void *data)
{
	pmix_proc_t nobody;

	/* libpmix 7.0 refuses an empty name */
	PMIX_LOAD_PROCID(&nobody, "nobody", PMIX_RANK_UNDEF);
	PMIx_server_deregister_client(&nobody, fn, data);
}

/* Called in a new thread: SIGEV_THREAD */
static void timer_expired(union sigval value)
{
	pmix_defer(call_deferred, value.sival_ptr);
}

int pmix_defer_for(unsigned int seconds, void (*fn)(uintptr_t arg), uintptr_t arg)
{
	struct itimerspec when = { .it_value.tv_sec = seconds };
	struct deferred *deferred = malloc(sizeof(*deferred));
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD,
		.sigev_notify_function = timer_expired,
		.sigev_value.sival_ptr = deferred,
	};

	if (!deferred)
		return -ENOMEM;
	deferred->fn = fn;
	deferred->arg = arg;
	if (timer_create(CLOCK_MONOTONIC, &event, &deferred->timer) < 0) {
		int err = -errno;

		free(deferred);
		return err;
	}
	timer_settime(deferred->timer, 0, &when, NULL);
	return 0;
}
