// SPDX-License-Identifier: GPL-2.0-only
/* Something to do in the library's thread, but later, or soon. */
#include "internal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

struct later {
	timer_t timer;
	void (*fn)(uintptr_t arg);
	uintptr_t arg;
};

static void now(pmix_status_t status, void *data)
{
	struct later *later = data;

	(void)status;
	timer_delete(later->timer);
	later->fn(later->arg);
	free(later);
}

/*
 * The library has no call for "do this in your thread"; one that has nothing to
 * do, as there is no such client, comes down to it.
 */
void pmix_soon(pmix_op_cbfunc_t fn, void *data)
{
	pmix_proc_t nobody;

	PMIX_LOAD_PROCID(&nobody, "", PMIX_RANK_UNDEF);
	PMIx_server_deregister_client(&nobody, fn, data);
}

/* In a thread of its own */
static void time_is_over(union sigval value)
{
	pmix_soon(now, value.sival_ptr);
}

int pmix_later(unsigned int seconds, void (*fn)(uintptr_t arg), uintptr_t arg)
{
	struct itimerspec when = { .it_value.tv_sec = seconds };
	struct later *later = malloc(sizeof(*later));
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD,
		.sigev_notify_function = time_is_over,
		.sigev_value.sival_ptr = later,
	};

	if (!later)
		return -ENOMEM;
	later->fn = fn;
	later->arg = arg;
	if (timer_create(CLOCK_MONOTONIC, &event, &later->timer) < 0) {
		int err = -errno;

		free(later);
		return err;
	}
	timer_settime(later->timer, 0, &when, NULL);
	return 0;
}
