// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * MPI_THREAD_MULTIPLE: threads of all ranks accumulate in one window, short and long, with atomic
 * instructions and without, under lock_all and under locks of their own targets. Nothing is lost.
 */
#include "common.h"

#include <pthread.h>

#define THREADS 3
#define LONG 1000

static double *mem;
static MPI_Win win, own[THREADS];
static int rounds;

static void *work(void *arg)
{
	const int me = (int)(intptr_t)arg;
	static double ones[LONG];
	double old;
	int i, k, target;

	for (i = 0; i < LONG; i++)
		__atomic_store_n((int64_t *)&ones[i], 0x3ff0000000000000, __ATOMIC_RELAXED);
	for (i = 0; i < rounds; i++) {
		target = (i + me) % size;
		MPI_Accumulate(ones, 5, MPI_DOUBLE, target, 0, 5, MPI_DOUBLE, MPI_SUM, win);
		MPI_Fetch_and_op(ones, &old, MPI_DOUBLE, target, 0, MPI_SUM, win);
		MPI_Accumulate(ones, LONG, MPI_DOUBLE, target, 0, LONG, MPI_DOUBLE, MPI_SUM, win);
		MPI_Win_flush(target, win);
		/* A window of each thread's own, with locks that exclude the other ranks only */
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, own[me]);
		MPI_Get(&old, 1, MPI_DOUBLE, target, 0, 1, MPI_DOUBLE, own[me]);
		MPI_Win_flush(target, own[me]);
		old++;
		for (k = 0; k < 2; k++)
			MPI_Put(&old, 1, MPI_DOUBLE, target, k, 1, MPI_DOUBLE, own[me]);
		MPI_Win_unlock(target, own[me]);
	}
	return NULL;
}

static void run(void)
{
	pthread_t threads[THREADS];
	intptr_t i;

	MPI_Win_lock_all(0, win);
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	double *cells[THREADS];
	int i, provided;

	rounds = argc > 1 ? atoi(argv[1]) : 100;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	/* So that all targets get the same number */
	rounds = (rounds + size - 1) / size * size;
	expect(provided == MPI_THREAD_MULTIPLE, "no threads");
	MPI_Win_allocate(LONG * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	for (i = 0; i < THREADS; i++)
		MPI_Win_allocate(16, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &cells[i], &own[i]);
	run();
	for (i = 0; i < LONG; i++)
		expect(mem[i] == (double)THREADS * rounds * (1 + (i < 5) + (i < 1)),
		       "element %d is %g", i, mem[i]);
	for (i = 0; i < THREADS; i++) {
		expect(cells[i][0] == rounds && cells[i][1] == rounds, "thread %d: %g %g", i,
		       cells[i][0], cells[i][1]);
		MPI_Win_free(&own[i]);
	}
	MPI_Win_free(&win);
	return finish();
}
