// SPDX-License-Identifier: GPL-2.0-only
/*
 * usage: pairs [-b] WINDOW MILLISECONDS SIZE...
 *
 * The message rate of pairs of ranks, as OSU's osu_mbw_mr measures it: the lower half of the
 * ranks sends to the upper half, WINDOW messages at a time, and waits for an answer. A line
 * for each size, "pairs-RANKS SIZE M/s RATE": millions of messages per second of all pairs,
 * the median of five times so many milliseconds. With -b by blocking calls.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMES 5
#define MAX_WINDOW 256

static int rank, size, window, blocking;
static char *buf;

static void by_blocking_calls(int n, int peer)
{
	int i;

	for (i = 0; i < window; i++) {
		if (rank < size / 2)
			MPI_Send(buf, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
		else
			MPI_Recv(buf, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

static void at_once(int n, int peer)
{
	MPI_Request req[MAX_WINDOW];
	int i;

	for (i = 0; i < window; i++) {
		if (rank < size / 2)
			MPI_Isend(buf, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &req[i]);
		else
			MPI_Irecv(buf, n, MPI_CHAR, peer, 1, MPI_COMM_WORLD, &req[i]);
	}
	MPI_Waitall(window, req, MPI_STATUSES_IGNORE);
}

static void one_window(int n)
{
	int peer = (rank + size / 2) % size, answer = 0;

	if (blocking)
		by_blocking_calls(n, peer);
	else
		at_once(n, peer);
	if (rank < size / 2)
		MPI_Recv(&answer, 1, MPI_INT, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(&answer, 1, MPI_INT, peer, 2, MPI_COMM_WORLD);
}

/* Seconds that @windows of all pairs took */
static double timed(int n, int windows)
{
	double t, longest;
	int i;

	MPI_Barrier(MPI_COMM_WORLD);
	t = MPI_Wtime();
	for (i = 0; i < windows; i++)
		one_window(n);
	t = MPI_Wtime() - t;
	MPI_Allreduce(&t, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return longest;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(int n, double seconds)
{
	double rate[TIMES], t;
	int windows = 4, i;

	t = timed(n, windows);
	while (t < seconds && windows < 1 << 20) {
		windows *= 2;
		t = timed(n, windows);
	}
	for (i = 0; i < TIMES; i++)
		rate[i] = 1e-6 * (size / 2) * window * windows / timed(n, windows);
	qsort(rate, TIMES, sizeof(rate[0]), by_value);
	if (rank == 0)
		printf("pairs-%d %d M/s %.3f\n", size, n, rate[TIMES / 2]);
}

int main(int argc, char **argv)
{
	int i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	blocking = argc > 1 && !strcmp(argv[1], "-b");
	argv += blocking;
	argc -= blocking;
	window = argc > 3 ? atoi(argv[1]) : 0;
	if (window < 1 || window > MAX_WINDOW || size % 2) {
		fprintf(stderr, "usage: pairs [-b] WINDOW MILLISECONDS SIZE..., even number of ranks\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	buf = malloc(1 << 20);
	memset(buf, 1, 1 << 20);
	for (i = 3; i < argc; i++)
		if (atoi(argv[i]) <= 1 << 20)
			measure(atoi(argv[i]), atof(argv[2]) / 1000);
	MPI_Finalize();
	return 0;
}
