// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Wait for something in the space header to change. Private futexes do: all
 * tasks are in one mm.
 */
#include <limits.h>
#include <linux/futex.h>
#include <time.h>

#include "private.h"
#include "rawsys.h"

/* The change was stored before; the counter orders it for those who wake. */
void pvas_bell_ring(struct pvas_bell *b)
{
	__atomic_fetch_add(&b->seq, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&b->waiters, __ATOMIC_SEQ_CST))
		pvas_raw3(__NR_futex, &b->seq, FUTEX_WAKE_PRIVATE, INT_MAX);
}

void pvas_bell_wait(struct pvas_bell *b, uint32_t seq, int ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	__atomic_fetch_add(&b->waiters, 1, __ATOMIC_SEQ_CST);
	/* The kernel compares once more: a ring in between is not slept through. */
	pvas_raw4(__NR_futex, &b->seq, FUTEX_WAIT_PRIVATE, seq, &ts);
	__atomic_fetch_sub(&b->waiters, 1, __ATOMIC_SEQ_CST);
}

int64_t pvas_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}
