// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Two ranks: one-way latency (half a round trip) and stream (a window of
 * messages one way), by size; the median of short samples. One line a size:
 * bytes, microseconds, GB/s.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES 15
#define WINDOW 16

static char *buf;
static int rank;

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, int n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 2];
}

static double ping_pong(size_t n, int rounds)
{
	double t = MPI_Wtime();
	int i;

	for (i = 0; i < rounds; i++) {
		if (rank == 0) {
			MPI_Send(buf, n, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
			MPI_Recv(buf, n, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(buf, n, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(buf, n, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
		}
	}
	return (MPI_Wtime() - t) / rounds / 2;
}

static double stream(size_t n, int rounds)
{
	MPI_Request req[WINDOW];
	double t = MPI_Wtime();
	int i, j;

	for (i = 0; i < rounds; i++) {
		for (j = 0; j < WINDOW; j++) {
			char *p = buf + (n << 10 <= 64 << 20 ? n * j : 0);

			if (rank == 0)
				MPI_Isend(p, n, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &req[j]);
			else
				MPI_Irecv(p, n, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &req[j]);
		}
		MPI_Waitall(WINDOW, req, MPI_STATUSES_IGNORE);
	}
	if (rank == 0)
		MPI_Recv(buf, 0, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(buf, 0, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
	return (double)n * WINDOW * rounds / (MPI_Wtime() - t);
}

static void measure(size_t n)
{
	int rounds = n <= 4096 ? 1000 : n <= 65536 ? 200 : n <= 1 << 20 ? 20 : 4;
	double lat[SAMPLES], bw[SAMPLES];
	int i;

	ping_pong(n, rounds / 4 + 1);
	for (i = 0; i < SAMPLES; i++) {
		lat[i] = ping_pong(n, rounds);
		bw[i] = stream(n, rounds / WINDOW + 1);
	}
	if (rank == 0)
		printf("%zu %.3f %.3f\n", n, median(lat, SAMPLES) * 1e6,
		       median(bw, SAMPLES) / 1e9);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {
		0, 8, 64, 1024, 4096, 16384, 65536, 262144, 1 << 20, 8 << 20,
	};
	unsigned int i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	buf = malloc(64 << 20);
	memset(buf, 1, 64 << 20);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		measure(sizes[i]);
	MPI_Finalize();
	return 0;
}
