// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Ranks that only send run ahead of a slow receiver, as far as lines, slots and the ring
 * reach. They must wait there: does the receiver get each value?
 */
#include "common.h"

#include <unistd.h>

#define IN_A_ROW 300
#define LONGEST 600

static double sent[LONGEST], received[LONGEST * 64];

static double value(int from, int i, int k)
{
	return from * 1e6 + i * 1e3 + k;
}

/* Is what came from @from that of the @i-th operation? */
static int wrong(const double *p, int from, int i, int n)
{
	int k;

	for (k = 0; k < n; k++)
		if (p[k] != value(from, i, k))
			return 1;
	return 0;
}

static int gather(int i, int n, int root)
{
	int r, bad = 0;

	MPI_Gather(sent, n, MPI_DOUBLE, received, n, MPI_DOUBLE, root, MPI_COMM_WORLD);
	for (r = 0; rank == root && r < size; r++)
		bad += wrong(received + r * n, r, i, n);
	return bad;
}

static int reduce(int i, int n, int root)
{
	MPI_Reduce(sent, received, n, MPI_DOUBLE, MPI_MAX, root, MPI_COMM_WORLD);
	return rank == root && wrong(received, size - 1, i, n);
}

static int bcast(int i, int n, int root)
{
	double *p = rank == root ? sent : received;

	MPI_Bcast(p, n, MPI_DOUBLE, root, MPI_COMM_WORLD);
	return wrong(p, root, i, n);
}

int main(int argc, char **argv)
{
	static int (*const operations[])(int, int, int) = { gather, reduce, bcast };
	static const int lengths[] = { 1, 20, 100, 400, LONGEST };
	int bad = 0, all, what, i, k, n, slow;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (what = 0; what < 3 * size; what++) {
		/* The one that gathers, or one of those that are sent to */
		slow = what % 3 == 2 ? (what / 3 + 1) % size : what / 3;
		for (i = 0; i < IN_A_ROW; i++) {
			n = lengths[(i / 50 + what) % 5];
			for (k = 0; k < n; k++)
				sent[k] = value(rank, i, k);
			if (rank == slow && i % 60 == 0)
				usleep(3000);
			bad += operations[what % 3](i, n, what / 3);
		}
	}
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (bad)
		printf("rank %d: %d wrong\n", rank, bad);
	MPI_Finalize();
	return all != 0;
}
