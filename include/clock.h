/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * The clock of all deadlines and durations: it never jumps. Shared by libpvas, the
 * launcher, Open MPI's component, the tools, the benchmarks and the tests; not installed.
 */
#ifndef PVAS_CLOCK_H
#define PVAS_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_NS_PER_S	1000000000LL
#define CLOCK_NS_PER_MS	1000000LL
#define CLOCK_NS_PER_US	1000LL

/* @clock may be CLOCK_MONOTONIC_COARSE where a few milliseconds don't matter, but the cost does. */
static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * CLOCK_NS_PER_S + now.tv_nsec;
}

static inline int64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline int64_t now_us(void)
{
	return now_ns() / CLOCK_NS_PER_US;
}

static inline int64_t now_ms(void)
{
	return now_ns() / CLOCK_NS_PER_MS;
}

#endif /* PVAS_CLOCK_H */
