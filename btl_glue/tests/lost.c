// SPDX-License-Identifier: LGPL-2.1-or-later
/* All wait for a message of the last rank, which is lost: see lost.h. */
#include "lost.h"

int main(int argc, char **argv)
{
	MPI_Request request;
	int size, data;

	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Irecv(&data, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, &request);
	lose(size - 1);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Finalize();
	return 0;
}
