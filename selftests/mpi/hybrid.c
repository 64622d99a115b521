// SPDX-License-Identifier: GPL-2.0-only
/*
 * MPI and OpenMP in one program: the integral of 4 / (1 + x^2), whose terms
 * ranks and their threads share. Says what it found; fails if that is not pi.
 */
#include <math.h>
#include <mpi.h>
#include <omp.h>
#include <stdio.h>

#define STEPS	2000000

int main(int argc, char **argv)
{
	int rank, size, provided, threads = 0, i;
	double sum = 0, pi = 0, x;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
#pragma omp parallel for reduction(+ : sum) private(x)
	for (i = rank; i < STEPS; i += size) {
		x = (i + 0.5) / STEPS;
		sum += 4 / (1 + x * x) / STEPS;
	}
#pragma omp parallel reduction(+ : threads)
	threads += 1;
	MPI_Allreduce(&sum, &pi, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(MPI_IN_PLACE, &threads, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("pi is %.9f by %d ranks, %d threads\n", pi, size, threads);
	MPI_Finalize();
	return fabs(pi - M_PI) > 1e-9 || threads < size || provided < MPI_THREAD_FUNNELED;
}
