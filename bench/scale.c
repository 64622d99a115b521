// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory of a rank for a job of that many ranks. usage: scale COMMUNICATORS
 *
 * Rank 0 prints lines "WHAT RANKS UNIT VALUE": bytes in use of its heap, after MPI_Init
 * and for each communicator or group of all ranks. (The mm is that of all tasks, so its
 * own sizes would not do.) The job may be a pretended one.
 */
#include <malloc.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define COMMS_MAX 64

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static double in_use(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* An allocator may round the first: the mean of several */
static double copies(int nr)
{
	MPI_Comm copy[COMMS_MAX];
	double before = in_use(), used;
	int i;

	for (i = 0; i < nr; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &copy[i]);
	used = (in_use() - before) / nr;
	for (i = 0; i < nr; i++)
		MPI_Comm_free(&copy[i]);
	return used;
}

static double splits(int nr)
{
	MPI_Comm copy[COMMS_MAX];
	double before = in_use(), used;
	int i;

	for (i = 0; i < nr; i++)
		MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &copy[i]);
	used = (in_use() - before) / nr;
	for (i = 0; i < nr; i++)
		MPI_Comm_free(&copy[i]);
	return used;
}

/* All ranks in another order, which can't be stored as a range */
static double groups(int ranks)
{
	int backwards[1][3] = { { ranks - 1, 0, -1 } };
	MPI_Group world, group;
	double before, used;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	before = in_use();
	MPI_Group_range_incl(world, 1, backwards, &group);
	used = in_use() - before;
	MPI_Group_free(&group);
	MPI_Group_free(&world);
	return used;
}

int main(int argc, char **argv)
{
	int nr = argc == 2 ? atoi(argv[1]) : 0, rank, ranks;
	double time = now(), at_start = in_use(), init, copy, split, group;

	if (nr < 1 || nr > COMMS_MAX)
		return 2;
	MPI_Init(&argc, &argv);
	time = now() - time;
	init = in_use() - at_start;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	copy = copies(nr);
	split = splits(nr);
	group = groups(ranks);
	if (!rank)
		printf("init-time %d s %.3f\ninit %d B %.0f\ncopy %d B %.0f\nsplit %d B %.0f\ngroup %d B %.0f\n",
		       ranks, time, ranks, init, ranks, copy, ranks, split, ranks, group);
	MPI_Finalize();
	return 0;
}
