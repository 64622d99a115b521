// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * With a processor for each rank, a rank that waits for non-blocking operations keeps its own for a
 * while: on a busy machine it would get it back only milliseconds later. Waits of some microseconds
 * one after the other are not one long wait.
 */
#include "common.h"

#include <stdlib.h>
#include <time.h>

#define ROUNDS 20000

/* At most one in so much of the processor's time, in microseconds */
#define INTERVAL 150

static long yields;

/* In the place of libc's, which the component would call */
int sched_yield(void)
{
	yields++;
	return 0;
}

static double used_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return 1e6 * t.tv_sec + t.tv_nsec / 1e3;
}

/* The next root has something to do first, so that the others wait a little. */
static void work(void)
{
	const double begin = used_us();

	while (used_us() < begin + 5)
		;
}

int main(int argc, char **argv)
{
	MPI_Request request;
	int i, value, bad = 0, all;
	double begin;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Barrier(MPI_COMM_WORLD);
	begin = used_us();
	yields = 0;
	for (i = 0; i < ROUNDS; i++) {
		if (rank == i % size)
			work();
		value = rank == i % size ? i : -1;
		MPI_Ibcast(&value, 1, MPI_INT, i % size, MPI_COMM_WORLD, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		bad += value != i;
	}
	if (yields * INTERVAL > used_us() - begin) {
		printf("rank %d: yielded %ld times in %.0f us\n", rank, yields, used_us() - begin);
		bad++;
	}
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return all != 0;
}
