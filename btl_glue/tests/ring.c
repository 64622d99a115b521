// SPDX-License-Identifier: LGPL-2.1-or-later
/* A token passes through all ranks, many times: order, and the small-message path. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 200;
	int rank, size, token = 0, i;
	char hello[MPI_MAX_PROCESSOR_NAME];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (i = 0; i < rounds; i++) {
		if (rank == 0) {
			MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, i, MPI_COMM_WORLD);
			MPI_Recv(&token, 1, MPI_INT, (rank + size - 1) % size, i, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(&token, 1, MPI_INT, rank - 1, i, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			token++;
			MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, i, MPI_COMM_WORLD);
		}
	}
	if (rank == 0 && token != rounds * (size - 1)) {
		printf("token is %d, not %d\n", token, rounds * (size - 1));
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	/* Different addresses of main() show that the ranks share one address space. */
	snprintf(hello, sizeof(hello), "rank %d of %d: %d rounds, text at %p", rank, size, rounds,
		 (void *)main);
	puts(hello);
	MPI_Finalize();
	return 0;
}
