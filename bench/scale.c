// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory of a rank for a job of that many ranks. usage: scale COMMUNICATORS
 *
 * Rank 0 prints lines "WHAT RANKS UNIT VALUE": bytes in use of its heap, after MPI_Init
 * and for each communicator or group of all ranks, and what the BTL pvas holds; and of all
 * tasks together, while those communicators exist, Pss and page tables. (The mm is that of
 * all tasks, so its own sizes would not do.) Each rank prints "mine RANKS B VALUE": its heap
 * then. The job may be a pretended one.
 */
#include <malloc.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../btl_glue/tests/counter.h"

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

/* A line of a file in /proc/self, in bytes */
static double of_all(const char *file, const char *name)
{
	FILE *f = fopen(file, "r");
	char line[256];
	double kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			kib = atof(line + strlen(name));
	if (f)
		fclose(f);
	return 1024 * kib;
}

static int rank, ranks;
static double at_start;

static void print_all(void)
{
	printf("mine %d B %.0f\n", ranks, in_use() - at_start);
	if (rank)
		return;
	printf("pss %d B %.0f\n", ranks, of_all("/proc/self/smaps_rollup", "Pss:"));
	printf("page-tables %d B %.0f\n", ranks, of_all("/proc/self/status", "VmPTE:"));
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
	print_all();
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

static void print_btl(void)
{
	struct counter held;

	counters_begin();
	counter_find(&held, "bytes_held");
	if (held.found)
		printf("btl %d B %lld\n", ranks, counter_read(&held));
}

int main(int argc, char **argv)
{
	int nr = argc == 2 ? atoi(argv[1]) : 0;
	double time = now(), init, copy, split, group;

	at_start = in_use();
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
		print_btl();
	if (!rank)
		printf("init-time %d s %.3f\ninit %d B %.0f\ncopy %d B %.0f\nsplit %d B %.0f\ngroup %d B %.0f\n",
		       ranks, time, ranks, init, ranks, copy, ranks, split, ranks, group);
	MPI_Finalize();
	return 0;
}
