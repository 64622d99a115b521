// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A communicator over several nodes: is the component used for it, are long messages right,
 * sums the same in each run and at all ranks, and are communicators freed with what was made
 * for them?
 *
 *	nodes used|unused|chosen [COMMUNICATORS [NUMBERS]]
 *
 * chosen: only operations that are faster if ranks outnumber processors
 */
#define COUNTER_PREFIX "coll_pvas_"
#include "operations.h"
#include "counter.h"

#include <time.h>

static struct counter done;
static int numbers = 700001;

static double number(int of, int i)
{
	return 1.0 / (1 + of + i % 1000);
}

/* Sums that depend on the order: the same twice, and the same everywhere */
static int check_sums(MPI_Comm comm)
{
	double *s = malloc(numbers * sizeof(*s)), *once = malloc(numbers * sizeof(*s));
	double *again = malloc(numbers * sizeof(*s));
	int i, bad;

	for (i = 0; i < numbers; i++)
		s[i] = number(rank, i);
	MPI_Allreduce(s, once, numbers, MPI_DOUBLE, MPI_SUM, comm);
	MPI_Allreduce(s, again, numbers, MPI_DOUBLE, MPI_SUM, comm);
	bad = memcmp(once, again, numbers * sizeof(*s)) != 0;
	MPI_Bcast(again, numbers, MPI_DOUBLE, size - 1, comm);
	bad += memcmp(once, again, numbers * sizeof(*s)) != 0;
	memset(again, 0, numbers * sizeof(*s));
	MPI_Reduce(s, again, numbers, MPI_DOUBLE, MPI_SUM, size - 1, comm);
	for (i = 0; rank == size - 1 && i < numbers; i++)
		bad += again[i] - once[i] > 1e-9 || once[i] - again[i] > 1e-9;
	free(s);
	free(once);
	free(again);
	return bad;
}

static int check_blocks(MPI_Comm comm)
{
	const int n = numbers / 10;
	double *s = malloc(n * sizeof(*s)), *r = malloc((size_t)n * size * sizeof(*r));
	int i, k, bad = 0;

	for (i = 0; i < n; i++)
		s[i] = number(rank, i);
	MPI_Allgather(s, n, MPI_DOUBLE, r, n, MPI_DOUBLE, comm);
	for (k = 0; k < size; k++)
		for (i = 0; i < n; i++)
			bad += r[k * n + i] != number(k, i);
	free(s);
	free(r);
	return bad;
}

/* The same for all ranks, as MPI_Wtime() is not */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* No rank may leave before the last one has come. */
static int check_barrier(MPI_Comm comm)
{
	double came = now(), last, left;

	MPI_Barrier(comm);
	left = now();
	MPI_Allreduce(&came, &last, 1, MPI_DOUBLE, MPI_MAX, comm);
	return left < last;
}

/* By name, and whether it is faster */
static const struct {
	const char *name;
	int chosen;
} over_nodes[] = {
	{ "barrier", 1 }, { "bcast", 0 }, { "gather", 0 }, { "scatter", 0 }, { "allgather", 0 },
	{ "alltoall", 0 }, { "reduce", 0 }, { "allreduce", 0 }, { "reduce_scatter", 0 },
	{ "reduce_scatter_block", 0 }, { "gatherv", 0 }, { "scatterv", 0 }, { "allgatherv", 0 },
	{ "scan", 0 }, { "exscan", 0 }, { "alltoallv", 0 }, { "alltoallw", 0 },
};

static int check_used(const char *expected)
{
	double s[MOST_RANKS + 2] = { 0 }, r[MOST_RANKS + 2];
	long long before;
	const int all = !strcmp(expected, "used"), some = !strcmp(expected, "chosen");
	int i, bad = 0, used;

	for (i = 0; i < (int)(sizeof(over_nodes) / sizeof(over_nodes[0])); i++) {
		before = counter_read(&done);
		operate(over_nodes[i].name, s, r, 1, size - 1, MPI_COMM_WORLD);
		used = counter_read(&done) > before;
		if (used == (all || (some && over_nodes[i].chosen)))
			continue;
		printf("rank %d: %s was %sused\n", rank, over_nodes[i].name, used ? "" : "not ");
		bad++;
	}
	return bad;
}

static void make_and_free(int times)
{
	MPI_Comm comm;
	int i, x;

	for (i = 0; i < times; i++) {
		x = rank;
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		MPI_Bcast(&x, 1, MPI_INT, i % size, comm);
		MPI_Comm_free(&comm);
	}
}

int main(int argc, char **argv)
{
	const int times = argc > 2 ? atoi(argv[2]) : 100;
	struct counter communicators;
	long long before, after;
	int bad, all;

	if (argc > 3)
		numbers = atoi(argv[3]);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	counters_begin();
	counter_find(&done, "operations");
	counter_find(&communicators, "communicators");
	bad = check_used(argv[1]) + check_sums(MPI_COMM_WORLD) + check_blocks(MPI_COMM_WORLD) +
	      check_barrier(MPI_COMM_WORLD);
	make_and_free(2);
	before = counter_read(&communicators);
	make_and_free(times);
	after = counter_read(&communicators);
	bad += after != before;
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d ranks, %d wrong, %lld communicators, %lld before\n", size, all, after,
		       before);
	MPI_Finalize();
	return all != 0;
}
