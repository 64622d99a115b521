// SPDX-License-Identifier: GPL-2.0-only
/*
 * A rank of a job that is larger than its node: pretend WORLD TASKS [send | bcast]
 *
 * WORLD ranks, of which TASKS exist. It creates communicators and groups of all of them,
 * and prints "pretend: N ranks" if each is right, and how many memory maps of all ranks are
 * of a shared table of a group; or sends to a rank that does not exist.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COPIES 4

static int world, tasks, rank;

#define check(condition) do { \
	if (!(condition)) { \
		printf("rank %d: line %d: %s\n", rank, __LINE__, #condition); \
		exit(1); \
	} \
} while (0)

static void check_sizes(void)
{
	int size, *universe, found;
	MPI_Comm node;

	MPI_Comm_size(MPI_COMM_WORLD, &size);
	check(size == world && rank < tasks);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &found);
	check(found && *universe == world);
	MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &node);
	MPI_Comm_size(node, &size);
	check(size == world / tasks);
	MPI_Comm_free(&node);
}

/* The scenario of the first paper: several communicators of all ranks */
static void check_copies(void)
{
	MPI_Comm copies[COPIES], all;
	int i, size, result;

	for (i = 0; i < COPIES; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &copies[i]);
		MPI_Comm_compare(MPI_COMM_WORLD, copies[i], &result);
		check(result == MPI_CONGRUENT);
	}
	MPI_Comm_split(copies[0], 0, 0, &all);
	MPI_Comm_size(all, &size);
	check(size == world);
	MPI_Comm_rank(all, &result);
	check(result == rank);
	MPI_Barrier(all);
	MPI_Comm_free(&all);
	for (i = 0; i < COPIES; i++)
		MPI_Comm_free(&copies[i]);
}

/* Ranks of this node only: all of them exist. */
static void check_node(void)
{
	int range[1][3] = { { 0, tasks - 1, 1 } }, size, sum = 0;
	MPI_Group all, here;
	MPI_Comm node;

	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_size(all, &size);
	check(size == world);
	MPI_Group_range_incl(all, 1, range, &here);
	MPI_Comm_create(MPI_COMM_WORLD, here, &node);
	check(node != MPI_COMM_NULL);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, node);
	check(sum == tasks * (tasks - 1) / 2);
	MPI_Comm_free(&node);
	MPI_Group_free(&here);
	MPI_Group_free(&all);
}

/* Among all, only those that exist contribute. */
static void check_operations(void)
{
	int most = -1, value = rank ? 0 : 42, *all = malloc(world * sizeof(int)), i;

	MPI_Allreduce(&rank, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	check(most == tasks - 1);
	MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
	check(value == 42);
	MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
	for (i = 0; i < world; i++)
		check(all[i] == i % tasks);
	free(all);
}

/* Of all ranks of this node, for they share one address space */
static int shared_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int nr = 0;

	while (f && fgets(line, sizeof(line), f))
		nr += strstr(line, "memfd:pvas-group") != NULL;
	if (f)
		fclose(f);
	return nr;
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	world = atoi(argv[1]);
	tasks = atoi(argv[2]);
	if (argc > 3 && !strcmp(argv[3], "send")) {
		MPI_Send(&rank, 1, MPI_INT, world - 1, 0, MPI_COMM_WORLD);
	} else if (argc > 3) {
		MPI_Bcast(&rank, 1, MPI_INT, world - 1, MPI_COMM_WORLD);
	} else {
		check_sizes();
		check_copies();
		check_node();
		check_operations();
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank)
		printf("shared maps: %d\n", shared_maps());
	MPI_Finalize();
	if (!rank)
		printf("pretend: %d ranks\n", world);
	return 0;
}
