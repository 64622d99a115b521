// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Operations of changing lengths, one after the other, up to what is copied beside a rank's line:
 * in any order of lengths they use the same memory again in time, without waiting for each other.
 *
 *	lengths [OPERATIONS]
 */
#include "common.h"

#include <stdlib.h>

#define MOST 520	/* ints: more than is copied */
#define MOST_RANKS 80

static int s[MOST_RANKS * MOST], r[MOST_RANKS * MOST], counts[MOST_RANKS], displs[MOST_RANKS];

static int value(int from, int i, int k)
{
	return from * 1000003 + i * 1009 + k;
}

/* The same at all ranks */
static unsigned int next(void)
{
	static unsigned int state = 1;

	state = state * 1103515245 + 12345;
	return state >> 16;
}

static int some_length(void)
{
	static const int lengths[] = { 1, 3, 12, 13, 40, 64, 65, 128, 250, 256, 300, 512, MOST };

	return lengths[next() % (sizeof(lengths) / sizeof(lengths[0]))];
}

/* The numbers that each rank has for each, or their sum */
static int check(int n, int i, int blocks, int sum, int from)
{
	int p, k, bad = 0, expected;

	for (p = 0; p < blocks; p++) {
		for (k = 0; k < n; k++) {
			expected = sum ? size * value(0, i, k) + size * (size - 1) / 2 * 1000003 :
					 value(from < 0 ? p : from, i, k);
			bad += r[p * n + k] != expected;
		}
	}
	return bad;
}

static int operate(int what, int n, int i, int root)
{
	int p, k;

	for (p = 0; p < size; p++) {
		counts[p] = n;
		displs[p] = p * n;
		for (k = 0; k < n; k++)
			s[p * n + k] = value(rank, i, k);
	}
	switch (what) {
	case 0:
		MPI_Allgather(s, n, MPI_INT, r, n, MPI_INT, MPI_COMM_WORLD);
		return check(n, i, size, 0, -1);
	case 1:
		MPI_Allreduce(s, r, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		return check(n, i, 1, 1, 0);
	case 2:
		MPI_Alltoall(s, n, MPI_INT, r, n, MPI_INT, MPI_COMM_WORLD);
		return check(n, i, size, 0, -1);
	case 3:
		MPI_Alltoallv(s, counts, displs, MPI_INT, r, counts, displs, MPI_INT,
			      MPI_COMM_WORLD);
		return check(n, i, size, 0, -1);
	case 4:
		MPI_Reduce(s, r, n, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
		return rank == root ? check(n, i, 1, 1, 0) : 0;
	case 5:
		MPI_Gather(s, n, MPI_INT, r, n, MPI_INT, root, MPI_COMM_WORLD);
		return rank == root ? check(n, i, size, 0, -1) : 0;
	default:
		MPI_Scatterv(s, counts, displs, MPI_INT, r, n, MPI_INT, root, MPI_COMM_WORLD);
		return check(n, i, 1, 0, root);
	}
}

int main(int argc, char **argv)
{
	const int times = argc > 1 ? atoi(argv[1]) : 10000;
	int i, n = 1, what = 0, wrong, bad = 0, all;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (i = 0; i < times; i++) {
		/* Some in a row of one kind; of some kinds nobody is told that they are over. */
		if (next() % 8 == 0)
			what = next() % 7;
		n = some_length();
		wrong = operate(what, n, i, next() % size);
		if (wrong)
			printf("rank %d of %d: operation %d, kind %d, %d ints: %d wrong\n", rank, size,
			       i, what, n, wrong);
		bad += wrong;
	}
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return all != 0;
}
