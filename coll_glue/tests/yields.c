// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * With a processor for each rank, a rank that waits keeps its own for a while: on a busy machine it
 * would get it back only milliseconds later. Waits for non-blocking operations of some
 * microseconds, one after the other, are not one long wait.
 */
#include "common.h"

#include <stdlib.h>
#include <time.h>

#define ROUNDS 2000

/* At most one in so much of the processor's time, in microseconds */
#define INTERVAL 150

/* Waits for a blocking operation: how many, how long, and which count */
#define WAITS 200
#define WAIT 150
#define MOST_WAIT 400
#define LEAST_WAITS 5

static long yields;

/* In the place of libc's, which the component would call */
int sched_yield(void)
{
	yields++;
	return 0;
}

static double us(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return 1e6 * t.tv_sec + t.tv_nsec / 1e3;
}

static double used_us(void)
{
	return us(CLOCK_PROCESS_CPUTIME_ID);
}

/* The next root has something to do first, so that the others wait. */
static void work(int microseconds)
{
	const double begin = used_us();

	while (used_us() < begin + microseconds)
		;
}

static int nonblocking(void)
{
	const double begin = used_us();
	MPI_Request request;
	int i, value, bad = 0;

	yields = 0;
	for (i = 0; i < ROUNDS; i++) {
		if (rank == i % size)
			work(5);
		value = rank == i % size ? i : -1;
		MPI_Ibcast(&value, 1, MPI_INT, i % size, MPI_COMM_WORLD, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		bad += value != i;
	}
	if (yields * INTERVAL > used_us() - begin) {
		printf("rank %d: yielded %ld times in %.0f us\n", rank, yields, used_us() - begin);
		bad++;
	}
	return bad;
}

/* Waits that others have made longer don't count: then it is right to yield. */
static int blocking(void)
{
	int i, value, counted = 0, bad = 0;
	double begin;

	for (i = 0; i < WAITS; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == 0)
			work(WAIT);
		value = rank ? -1 : i;
		yields = 0;
		begin = us(CLOCK_MONOTONIC);
		MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
		bad += value != i;
		if (us(CLOCK_MONOTONIC) - begin > MOST_WAIT)
			continue;
		counted++;
		if (yields) {
			printf("rank %d: yielded %ld times in a short wait\n", rank, yields);
			bad++;
		}
	}
	if (counted < LEAST_WAITS) {
		printf("rank %d: %d short waits of %d\n", rank, counted, WAITS);
		bad++;
	}
	return bad;
}

int main(int argc, char **argv)
{
	int bad, all;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Barrier(MPI_COMM_WORLD);
	bad = nonblocking();
	bad += blocking();
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return all != 0;
}
