// SPDX-License-Identifier: GPL-2.0-only
/* Store the time when MPI_Init returned. usage: init FILE, in any number of ranks */
#include <mpi.h>

#include "stamp.h"

int main(int argc, char **argv)
{
	int status;

	MPI_Init(&argc, &argv);
	status = argc == 2 ? stamp(argv[1]) : 2;
	MPI_Finalize();
	return status;
}
