// SPDX-License-Identifier: LGPL-2.1-or-later
/* MPI_THREAD_MULTIPLE: several threads of each rank exchange at once, short and long. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4

static int rank, size, rounds = 60;
static int errors[THREADS];

static const int sizes[] = { 1, 60, 500, 4096, 5000, 70000 };

static void exchange(int me, int n, int round)
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size;
	char *out = malloc(n), *in = malloc(n);
	int i;

	memset(out, rank + me + round, n);
	MPI_Sendrecv(out, n, MPI_CHAR, right, me, in, n, MPI_CHAR, left, me, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	for (i = 0; i < n; i++)
		if (in[i] != (char)(left + me + round)) {
			errors[me]++;
			break;
		}
	free(out);
	free(in);
}

static void *run(void *arg)
{
	int me = (int)(long)arg, i;

	for (i = 0; i < rounds; i++)
		exchange(me, sizes[i % (sizeof(sizes) / sizeof(sizes[0]))], i);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int provided, sum = 0, all, i;

	if (argc > 1)
		rounds = atoi(argv[1]);
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (provided < MPI_THREAD_MULTIPLE) {
		printf("threads: Open MPI without MPI_THREAD_MULTIPLE\n");
		MPI_Finalize();
		return 77;
	}
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, (void *)(long)i);
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		sum += errors[i];
	}
	MPI_Allreduce(&sum, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("threads: %d ranks of %d threads, %d errors\n", size, THREADS, all);
	MPI_Finalize();
	return all != 0;
}
