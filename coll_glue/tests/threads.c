// SPDX-License-Identifier: LGPL-2.1-or-later
/* MPI_THREAD_MULTIPLE: each thread works on a communicator of its own. */
#include "common.h"

#include <pthread.h>

#define THREADS 3
#define NUMBERS 3000
#define ROUNDS 60

static MPI_Comm comms[THREADS];
static int wrong[THREADS];

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
