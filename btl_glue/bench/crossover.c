// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages between two processors of one machine.
 *
 *	crossover pairs			for each distance: its name, and two processors
 *	crossover ping A B SIZE...	as two ranks: "SIZE NANOSECONDS" of half a round trip
 *
 * Distances are those of distance.h. Of each size, the least of RUNS times is printed.
 */
#include <hwloc.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/between.h"

#define RUNS 101
#define RUN_US 500.

/* ---- the machine ---- */

/* A processor and itself: two ranks that take turns on it */
static int print_pairs(void)
{
	enum mca_btl_pvas_distance d;
	unsigned int seen = 0;
	hwloc_topology_t t;
	hwloc_obj_t a, b;

	hwloc_topology_init(&t);
	hwloc_topology_load(t);
	a = hwloc_get_obj_by_type(t, HWLOC_OBJ_PU, 0);
	printf("same processor %u %u\n", a->os_index, a->os_index);
	for (b = a->next_cousin; b; b = b->next_cousin) {
		d = between(t, a, b);
		if (seen & 1U << d)
			continue;
		seen |= 1U << d;
		printf("%s %u %u\n", mca_btl_pvas_limits_of(d)->name, a->os_index, b->os_index);
	}
	hwloc_topology_destroy(t);
	return 0;
}

/* ---- messages ---- */

static void bind_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Nanoseconds of half a round trip, of @nr */
static double ping(int rank, char *buf, int size, int nr)
{
	double start = MPI_Wtime();
	int i;

	for (i = 0; i < nr; i++) {
		if (!rank)
			MPI_Send(buf, size, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(buf, size, MPI_CHAR, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank)
			MPI_Send(buf, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
	}
	return (MPI_Wtime() - start) / nr / 2 * 1e9;
}

/* A busy machine only adds to it. */
static double least(int rank, char *buf, int size)
{
	double ns = ping(rank, buf, size, 64), again;
	int i, nr = 1 + RUN_US * 1000 / (2 * ns);

	MPI_Bcast(&nr, 1, MPI_INT, 0, MPI_COMM_WORLD);
	for (i = 0; i < RUNS; i++) {
		again = ping(rank, buf, size, nr);
		ns = again < ns ? again : ns;
	}
	return ns;
}

int main(int argc, char **argv)
{
	int rank, i, size;
	double ns;
	char *buf;

	if (argc == 2 && !strcmp(argv[1], "pairs"))
		return print_pairs();
	if (argc < 5)
		return 2;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	bind_to(atoi(argv[2 + rank]));
	for (i = 4; i < argc; i++) {
		size = atoi(argv[i]);
		buf = calloc(1, size);
		ns = least(rank, buf, size);
		if (!rank)
			printf("%d %.0f\n", size, ns);
		free(buf);
	}
	MPI_Finalize();
	return 0;
}
