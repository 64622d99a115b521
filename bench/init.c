// SPDX-License-Identifier: GPL-2.0
/*
 * How long does a job take to start? Prints "mpi-init RANKS ms MILLISECONDS": from the
 * time given (date +%s%N, before the launcher) until all ranks have left MPI_Init.
 *
 * usage: init NANOSECONDS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
	double mine, last;
	struct timespec t;
	int rank, size;

	MPI_Init(&argc, &argv);
	clock_gettime(CLOCK_REALTIME, &t);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc != 2) {
		fprintf(stderr, "usage: init NANOSECONDS\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	mine = (t.tv_sec * 1000000000LL + t.tv_nsec - atoll(argv[1])) / 1e6;
	MPI_Reduce(&mine, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("mpi-init %d ms %.2f\n", size, last);
	MPI_Finalize();
	return 0;
}
