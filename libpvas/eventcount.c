// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Wait for a change in the space header. Private futexes can do that: all tasks
 * share one mm.
 */
#include <limits.h>
#include <linux/futex.h>
#include <time.h>

#include "private.h"
#include "rawsys.h"

/* The change was stored before the call; the counter makes it visible to the woken. */
void pvas_eventcount_notify(struct pvas_eventcount *e)
{
	__atomic_fetch_add(&e->seq, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&e->waiters, __ATOMIC_SEQ_CST))
		pvas_raw3(__NR_futex, &e->seq, FUTEX_WAKE_PRIVATE, INT_MAX);
}

void pvas_eventcount_wait(struct pvas_eventcount *e, uint32_t seq, int ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	__atomic_fetch_add(&e->waiters, 1, __ATOMIC_SEQ_CST);
	/* The kernel compares @seq again, so a notification before the sleep is not missed. */
	pvas_raw4(__NR_futex, &e->seq, FUTEX_WAIT_PRIVATE, seq, &ts);
	__atomic_fetch_sub(&e->waiters, 1, __ATOMIC_SEQ_CST);
}
