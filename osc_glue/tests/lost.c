// SPDX-License-Identifier: LGPL-2.1-or-later
/* All wait for a lock that the last rank has, which is lost: see lost.h. */
#include "../../btl_glue/tests/lost.h"

int main(int argc, char **argv)
{
	MPI_Win win;
	char *mem;
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	if (rank == size - 1)
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
	lose(size - 1);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
	MPI_Win_unlock(0, win);
	MPI_Win_free(&win);
	MPI_Finalize();
	return 0;
}
