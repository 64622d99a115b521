// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * MPI_THREAD_MULTIPLE: each thread works on a communicator of its own, with blocking and
 * non-blocking operations, while any of them goes on with those of all.
 */
#include "common.h"

#include <pthread.h>

#define THREADS 3
#define NUMBERS 3000
#define ROUNDS 60

static MPI_Comm comms[THREADS];
static int wrong[THREADS];

/* Three operations at once, of which the first is waited for last */
static int nonblocking(int me, int i, double *s, double *r, int n)
{
	MPI_Request requests[3];
	int k, bad = 0, all = me + rank;
	double first = me + i;

	MPI_Iallreduce(s, r, n, MPI_DOUBLE, MPI_SUM, comms[me], &requests[0]);
	MPI_Ibcast(&first, 1, MPI_DOUBLE, i % size, comms[me], &requests[1]);
	MPI_Iallreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MAX, comms[me], &requests[2]);
	for (k = 2; k >= 0; k--)
		MPI_Wait(&requests[k], MPI_STATUS_IGNORE);
	for (k = 0; k < n; k++)
		bad += r[k] != size * (me * 100 + k + i) + size * (size - 1) / 2;
	return bad + (first != me + i) + (all != me + size - 1);
}

static void *work(void *arg)
{
	const int me = (int)(intptr_t)arg;
	double *s = malloc(NUMBERS * sizeof(*s)), *r = malloc(NUMBERS * sizeof(*r));
	int i, k, n;

	for (i = 0; i < ROUNDS; i++) {
		n = i % 2 ? NUMBERS : 4;
		for (k = 0; k < n; k++)
			s[k] = me * 100 + rank + k + i;
		MPI_Allreduce(s, r, n, MPI_DOUBLE, MPI_SUM, comms[me]);
		for (k = 0; k < n; k++)
			wrong[me] += r[k] != size * (me * 100 + k + i) + size * (size - 1) / 2;
		wrong[me] += nonblocking(me, i, s, r, n);
		MPI_Bcast(s, n, MPI_DOUBLE, i % size, comms[me]);
		wrong[me] += s[n - 1] != me * 100 + i % size + n - 1 + i;
	}
	free(s);
	free(r);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int provided, i, bad = 0;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	if (provided < MPI_THREAD_MULTIPLE)
		return 77;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (i = 0; i < THREADS; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		bad += wrong[i];
		MPI_Comm_free(&comms[i]);
	}
	MPI_Finalize();
	return bad != 0;
}
