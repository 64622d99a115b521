// SPDX-License-Identifier: GPL-2.0-only
/*
 * usage: types MILLISECONDS SIZE...
 *
 * Two ranks exchange data that are not contiguous: blocks of 64 bytes with gaps of the same
 * length, a column of a matrix with rows of 1024 bytes, and of 1088, the inner part of a 3-D
 * array. A line for each layout
 * and size, "types-LAYOUT SIZE us TIME": half a round trip, the best of several pieces of so many
 * milliseconds, for other programs use the processors, too. 0.1 is much less than a time slice.
 * Each rank has a processor of its own: otherwise both can be on one all the time.
 * The last message of each is compared with what was sent.
 */
#include <math.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECES 40
#define BLOCK 64

static int rank;
static char *sent, *received;

/* ---- layouts of @n bytes ---- */

static MPI_Datatype blocks(size_t n, size_t *extent)
{
	MPI_Datatype type;

	MPI_Type_vector(n / BLOCK, BLOCK, 2 * BLOCK, MPI_BYTE, &type);
	*extent = 2 * n;
	return type;
}

/* As many rows as make the column @n bytes */
static MPI_Datatype column_of(int row, size_t n, size_t *extent)
{
	const int rows = n / sizeof(double);
	MPI_Datatype type;

	MPI_Type_vector(rows, 1, row, MPI_DOUBLE, &type);
	*extent = (size_t)rows * row * sizeof(double);
	return type;
}

/* A power of two: all lines of the column are in few sets of each cache. */
static MPI_Datatype column(size_t n, size_t *extent)
{
	return column_of(128, n, extent);
}

static MPI_Datatype padded(size_t n, size_t *extent)
{
	return column_of(136, n, extent);
}

static MPI_Datatype inner(size_t n, size_t *extent)
{
	const int side = cbrt((double)n / sizeof(double));
	const int parts[] = { n / sizeof(double) / side / side, side, side };
	const int whole[] = { parts[0] + 2, side + 2, side + 2 }, begin[] = { 1, 1, 1 };
	MPI_Datatype type;

	MPI_Type_create_subarray(3, whole, parts, begin, MPI_ORDER_C, MPI_DOUBLE, &type);
	*extent = (size_t)whole[0] * whole[1] * whole[2] * sizeof(double);
	return type;
}

static const struct layout {
	const char *name;
	MPI_Datatype (*make)(size_t n, size_t *extent);
} layouts[] = { { "blocks", blocks }, { "column", column }, { "padded", padded },
	      { "inner", inner } };

/* ---- measuring ---- */

static double timed(MPI_Datatype type, int rounds)
{
	double t;
	int i;

	MPI_Barrier(MPI_COMM_WORLD);
	t = MPI_Wtime();
	for (i = 0; i < rounds; i++) {
		if (rank == 0)
			MPI_Send(sent, 1, type, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(received, 1, type, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(sent, 1, type, 0, 0, MPI_COMM_WORLD);
	}
	t = (MPI_Wtime() - t) / rounds / 2;
	MPI_Bcast(&t, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	return t;
}

static double best(MPI_Datatype type, double seconds)
{
	double t, least;
	int rounds = 1, i;

	for (t = timed(type, 1); t * 2 * rounds < seconds; t = timed(type, rounds))
		rounds *= 2;
	for (least = t, i = 0; i < PIECES; i++) {
		t = timed(type, rounds);
		if (t < least)
			least = t;
	}
	return least;
}

/* Both ranks have sent the same. */
static void compare(MPI_Datatype type, size_t extent)
{
	char *a, *b;
	int n, at = 0, bt = 0;

	MPI_Pack_size(1, type, MPI_COMM_SELF, &n);
	a = malloc(n);
	b = malloc(n);
	MPI_Pack(sent, 1, type, a, n, &at, MPI_COMM_SELF);
	MPI_Pack(received, 1, type, b, n, &bt, MPI_COMM_SELF);
	if (memcmp(a, b, at)) {
		fprintf(stderr, "types: rank %d received other data\n", rank);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	free(a);
	free(b);
	memset(received, 0, extent);
}

static void measure(const struct layout *layout, size_t n, double seconds)
{
	MPI_Datatype type;
	size_t extent, i;
	double t;

	type = layout->make(n, &extent);
	MPI_Type_commit(&type);
	sent = malloc(extent);
	received = calloc(1, extent);
	for (i = 0; i < extent; i++)
		sent[i] = i * 7 + (i >> 8);
	t = best(type, seconds);
	compare(type, extent);
	if (rank == 0)
		printf("types-%s %zu us %.3f\n", layout->name, n, 1e6 * t);
	free(sent);
	free(received);
	MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
	cpu_set_t own;
	size_t i;
	int size, j;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc < 3 || size != 2) {
		fprintf(stderr, "usage: types MILLISECONDS SIZE..., in two ranks\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	CPU_ZERO(&own);
	CPU_SET(rank, &own);
	if (sched_setaffinity(0, sizeof(own), &own)) {
		perror("types: no processor for each rank");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	for (i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		for (j = 2; j < argc; j++)
			measure(&layouts[i], atol(argv[j]), atof(argv[1]) / 1000);
	MPI_Finalize();
	return 0;
}
