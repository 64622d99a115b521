// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * MPI_Iallgatherv, whose arrays of counts and displacements are gone when it returns, as mpi4py's.
 *
 *	arrays ROUNDS
 */
#include "common.h"

#define ROOM 64

static int round_of(int count)
{
	int send[ROOM], received[ROOM * ROOM], bad = 0, i, k;
	int *counts = malloc(2 * size * sizeof(int)), *displs = counts + size;
	MPI_Request request;

	for (i = 0; i < size; i++) {
		counts[i] = count;
		displs[i] = i * size;
		send[i] = rank + 10;
	}
	for (i = 0; i < size * size; i++)
		received[i] = -1;
	MPI_Iallgatherv(send, count, MPI_INT, received, counts, displs, MPI_INT, MPI_COMM_WORLD,
			&request);
	for (i = 0; i < 2 * size; i++)
		counts[i] = 1 << 28;
	free(counts);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	for (i = 0; i < size; i++)
		for (k = 0; k < size; k++)
			bad += received[i * size + k] != (k < count ? i + 10 : -1);
	return bad;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100, bad = 0, i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (i = 0; i < rounds && size <= ROOM; i++)
		bad += round_of(i % size);
	printf("arrays: rank %d: %d wrong\n", rank, bad);
	MPI_Finalize();
	return bad != 0;
}
