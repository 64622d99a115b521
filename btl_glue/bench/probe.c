// SPDX-License-Identifier: GPL-2.0-only
/* A clock, and the distance between two processors: see p2p.h. */
#include <sched.h>
#include <time.h>

#include "p2p.h"

#define PROBE_ROUNDS 40
#define PROBES 5

double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

int stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

/* Rank 1 answers each odd number with the next even one. */
static void bounce(uint64_t *line, int rank, uint64_t from)
{
	uint64_t i;

	for (i = from + 1; i < from + 2 * PROBE_ROUNDS; i += 2) {
		if (rank == 0)
			__atomic_store_n(line, i, __ATOMIC_RELEASE);
		while (__atomic_load_n(line, __ATOMIC_ACQUIRE) != i + (rank == 0))
			;
		if (rank == 1)
			__atomic_store_n(line, i + 1, __ATOMIC_RELEASE);
	}
}

double probe(uint64_t *line, int rank)
{
	double best = 1, t;
	int i;

	for (i = 0; i < PROBES; i++) {
		t = seconds();
		bounce(line, rank, 2 * PROBE_ROUNDS * i);
		t = (seconds() - t) / PROBE_ROUNDS;
		if (t < best)
			best = t;
	}
	return best;
}
