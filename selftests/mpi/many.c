// SPDX-License-Identifier: GPL-2.0-only
/*
 * many RANKS: a job of so many ranks begins, passes a token round a ring, sends
 * blocks from each rank to each (short ones, then ones that the receiver copies
 * from the sender's memory), and ends. Rank 0 says how long each step took.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SHORT	64
#define LONG	6000	/* over the eager limit */

static int rank, size;
static double since;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* The whole job's: nobody has got further. */
static void step(const char *name)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank) {
		printf("%s %.1f s\n", name, now() - since);
		fflush(stdout);
	}
	since = now();
}

static int ring(void)
{
	int next = (rank + 1) % size, before = (rank + size - 1) % size, token = 1;

	if (!rank)
		MPI_Send(&token, 1, MPI_INT, next, 0, MPI_COMM_WORLD);
	MPI_Recv(&token, 1, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (!rank)
		return token != size;
	token++;
	MPI_Send(&token, 1, MPI_INT, next, 0, MPI_COMM_WORLD);
	return token != rank + 1;
}

static unsigned char pattern(int from, int to, int i)
{
	return from * 7 + to * 13 + i;
}

static int alltoall(int block)
{
	unsigned char *out = malloc((size_t)block * size), *in = calloc(block, size);
	int peer, i, bad = 0;

	for (peer = 0; peer < size; peer++)
		for (i = 0; i < block; i++)
			out[(size_t)peer * block + i] = pattern(rank, peer, i);
	MPI_Alltoall(out, block, MPI_BYTE, in, block, MPI_BYTE, MPI_COMM_WORLD);
	for (peer = 0; peer < size; peer++)
		for (i = 0; i < block; i++)
			bad += in[(size_t)peer * block + i] != pattern(peer, rank, i);
	free(in);
	free(out);
	return bad;
}

int main(int argc, char **argv)
{
	int wanted = argc > 1 ? atoi(argv[1]) : 2, bad = 0, all;

	since = now();
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != wanted || size < 2) {
		fprintf(stderr, "%d ranks, not %d\n", size, wanted);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	step("init");
	bad += ring();
	step("ring");
	bad += alltoall(SHORT);
	step("alltoall, short");
	bad += alltoall(LONG);
	step("alltoall, long");
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	if (!rank)
		printf("finalize %.1f s\n%d ranks, %d wrong\n", now() - since, size, all);
	return all != 0;
}
