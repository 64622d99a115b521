// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * usage: lost barrier|ibarrier
 *
 * All wait in an operation for the last rank, which is lost: see lost.h. With the non-blocking one,
 * an operation of a communicator without that rank is in progress, too, since before.
 */
#include "lost.h"

int main(int argc, char **argv)
{
	MPI_Request requests[2];
	MPI_Comm others;
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1, 0, &others);
	lose(size - 1);
	if (argc > 1 && *argv[1] == 'i') {
		/* Rank 0 never starts the first one. */
		if (rank)
			MPI_Ibarrier(others, &requests[0]);
		MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
		MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
	} else {
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Finalize();
	return 0;
}
