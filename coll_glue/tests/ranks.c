// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Barrier, broadcast, allreduce and alltoall of very many ranks: are results right, and does no
 * rank leave a barrier before all have come?
 *
 *	ranks [ROUNDS]
 */
#include "common.h"

#include <time.h>

/* Numbers that are posted in a line, copied beside it or through the ring, and read in place */
static const int lengths[] = { 1, 100, 1500, 20000 };
#define NR_LENGTHS ((int)(sizeof(lengths) / sizeof(lengths[0])))
#define LONGEST 20000

/* Of an alltoall, for each rank: at most so many */
#define LONGEST_BLOCK 100

static int64_t sent[LONGEST], received[LONGEST];

static int64_t value(int from, int to, int i)
{
	return ((int64_t)from << 40) + ((int64_t)to << 20) + i;
}

static int check_bcast(int root, int n)
{
	int i, bad = 0;

	for (i = 0; i < n; i++)
		sent[i] = rank == root ? value(root, 0, i) : -1;
	MPI_Bcast(sent, n, MPI_INT64_T, root, MPI_COMM_WORLD);
	for (i = 0; i < n; i++)
		bad += sent[i] != value(root, 0, i);
	return bad;
}

static int check_allreduce(int n)
{
	const int64_t ranks = (int64_t)size * (size - 1) / 2;
	int i, bad = 0;

	for (i = 0; i < n; i++)
		sent[i] = rank + i;
	MPI_Allreduce(sent, received, n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	for (i = 0; i < n; i++)
		bad += received[i] != ranks + (int64_t)i * size;
	return bad;
}

static int check_alltoall(int n)
{
	const size_t bytes = (size_t)size * n * sizeof(int64_t);
	int64_t *s = malloc(bytes), *r = malloc(bytes);
	int i, k, bad = 0;

	for (k = 0; k < size; k++)
		for (i = 0; i < n; i++)
			s[k * n + i] = value(rank, k, i);
	MPI_Alltoall(s, n, MPI_INT64_T, r, n, MPI_INT64_T, MPI_COMM_WORLD);
	for (k = 0; k < size; k++)
		for (i = 0; i < n; i++)
			bad += r[k * n + i] != value(k, rank, i);
	free(s);
	free(r);
	return bad;
}

/* The same clock for all ranks of a node */
static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1000000000 * (int64_t)t.tv_sec + t.tv_nsec;
}

static int check_barrier(void)
{
	int64_t came = now(), last, left;

	MPI_Barrier(MPI_COMM_WORLD);
	left = now();
	MPI_Allreduce(&came, &last, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
	return left < last;
}

static int check_round(int round)
{
	int i, bad = check_barrier();

	for (i = 0; i < NR_LENGTHS; i++) {
		bad += check_bcast((round * NR_LENGTHS + i) * 7 % size, lengths[i]);
		bad += check_allreduce(lengths[i]);
		if (lengths[i] <= LONGEST_BLOCK)
			bad += check_alltoall(lengths[i]);
	}
	return bad;
}

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? atoi(argv[1]) : 3;
	int i, bad = 0, all;
	int64_t began;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	began = now();
	for (i = 0; i < rounds; i++)
		bad += check_round(i);
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d ranks, %d rounds, %d wrong, %.1f s\n", size, rounds, all,
		       1e-9 * (double)(now() - began));
	MPI_Finalize();
	return all != 0;
}
