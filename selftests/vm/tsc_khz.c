// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints the frequency in kHz of this machine's time stamp counter, which the emulated processors
 * have, too. Each reading of the clock lies between two of the counter: that of the shortest
 * distance counts, because others may run in between.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

#define SAMPLES		100
#define INTERVAL_NS	100000000

struct moment {
	uint64_t tsc;
	int64_t ns;
};

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static struct moment look(void)
{
	uint64_t before, after, least = UINT64_MAX;
	struct moment best = {};
	int64_t ns;
	int i;

	for (i = 0; i < SAMPLES; i++) {
		before = __rdtsc();
		ns = now_ns();
		after = __rdtsc();
		if (after - before >= least)
			continue;
		least = after - before;
		best = (struct moment){ before + least / 2, ns };
	}
	return best;
}

int main(void)
{
	const struct timespec interval = { .tv_nsec = INTERVAL_NS };
	struct moment begin = look(), end;

	nanosleep(&interval, NULL);
	end = look();
	printf("%.0f\n", (double)(end.tsc - begin.tsc) * 1e6 / (double)(end.ns - begin.ns));
	return 0;
}
