// SPDX-License-Identifier: GPL-2.0-only
/*
 * The time of collective operations, in the way of OSU's micro-benchmarks: the mean over the
 * ranks of the time for one operation, several in a row. Unlike there, buffers change from one
 * operation to the next, the sender stores into what it sends, and the time is that of the
 * best of many pieces. One line an operation and size: name, bytes, microseconds.
 *
 *	collectives [OPERATION...]
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST (1 << 20)
#define BUFFERS 4
#define PIECES 30

static int rank, size;
static char *sent[BUFFERS], *received[BUFFERS];

enum { BARRIER, BCAST, REDUCE, ALLREDUCE, ALLGATHER, ALLTOALL, GATHER, SCATTER, COLUMNS, NR };
static const char *const names[] = {
	"barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall", "gather", "scatter",
	"columns",
};

/* An alltoallw in which both sides are columns of a matrix of doubles */
static void exchange_columns(void *s, void *r, int n)
{
	static MPI_Datatype column, types[64];
	static int of, counts[64], displs[64];
	int i;

	if (of != n) {
		if (of)
			MPI_Type_free(&column);
		MPI_Type_vector(n / 8, 1, size, MPI_DOUBLE, &column);
		MPI_Type_commit(&column);
		of = n;
		for (i = 0; i < size; i++) {
			types[i] = column;
			counts[i] = 1;
			displs[i] = 8 * i;
		}
	}
	MPI_Alltoallw(s, counts, displs, types, r, counts, displs, types, MPI_COMM_WORLD);
}

static void operate(int what, char *s, char *r, int n)
{
	const MPI_Comm world = MPI_COMM_WORLD;

	switch (what) {
	case BARRIER:
		MPI_Barrier(world);
		break;
	case BCAST:
		MPI_Bcast(rank ? r : s, n, MPI_CHAR, 0, world);
		break;
	case REDUCE:
		MPI_Reduce(s, r, n / 8, MPI_DOUBLE, MPI_SUM, 0, world);
		break;
	case ALLREDUCE:
		MPI_Allreduce(s, r, n / 8, MPI_DOUBLE, MPI_SUM, world);
		break;
	case ALLGATHER:
		MPI_Allgather(s, n, MPI_CHAR, r, n, MPI_CHAR, world);
		break;
	case ALLTOALL:
		MPI_Alltoall(s, n, MPI_CHAR, r, n, MPI_CHAR, world);
		break;
	case GATHER:
		MPI_Gather(s, n, MPI_CHAR, r, n, MPI_CHAR, 0, world);
		break;
	case SCATTER:
		MPI_Scatter(s, n, MPI_CHAR, r, n, MPI_CHAR, 0, world);
		break;
	default:
		exchange_columns(s, r, n);
	}
}

static double piece(int what, int n, int times)
{
	double begin, all = 0, mine;
	int i;

	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	for (i = 0; i < times; i++) {
		if (what != BARRIER)
			memset(sent[i % BUFFERS], i & 1, n);
		operate(what, sent[i % BUFFERS], received[i % BUFFERS], n);
	}
	mine = MPI_Wtime() - begin;
	MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return 1e6 * all / times / size;
}

/* The best of many short pieces, in which other processes have little chance to disturb */
static double measure(int what, int n)
{
	const int times = n <= 1 << 10 ? 100 : n <= 8 << 10 ? 40 : n <= 64 << 10 ? 12 : 4;
	double best = piece(what, n, times), now;
	int i;

	for (i = 0; i < PIECES; i++) {
		now = piece(what, n, times);
		if (now < best)
			best = now;
	}
	return best;
}

static int wanted(const char *name, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return 1;
	return argc <= 1;
}

int main(int argc, char **argv)
{
	static const int sizes[] = { 8, 1 << 10, 8 << 10, 64 << 10, 1 << 20 };
	const int nr_sizes = sizeof(sizes) / sizeof(sizes[0]);
	int what, i, n;
	double us;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (i = 0; i < BUFFERS; i++) {
		sent[i] = calloc(size, LONGEST);
		received[i] = calloc(size, LONGEST);
		memset(sent[i], 1, (size_t)size * LONGEST);
		memset(received[i], 1, (size_t)size * LONGEST);
	}
	for (what = 0; what < NR; what++) {
		for (i = 0; i < nr_sizes && wanted(names[what], argc, argv); i++) {
			if (what == BARRIER && i)
				break;
			n = sizes[i];
			us = measure(what, n);
			if (rank == 0)
				printf("%s %d %.3f\n", names[what], n, us);
		}
	}
	MPI_Finalize();
	return 0;
}
