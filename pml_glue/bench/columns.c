// SPDX-License-Identifier: GPL-2.0-only
/*
 * usage: columns ROW SIZE...
 *
 * Two tasks of a space exchange a column of a matrix of doubles whose rows have ROW bytes, beside
 * bare loops that copy the same columns. A line for each size, in us: a message, half of a round
 * trip; the loop in one rank; the loop of which each rank does half. Then the pieces of a message
 * that its sender copied. Each time is the best of many, for other programs use the processors,
 * too, and each rank has a processor of its own: otherwise both can be on one all the time.
 *
 * Rows of 1024 bytes, and of any power of two, use few sets of each cache; rows of 1088 use all.
 */
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNTER_PREFIX "pml_pvas_"
#include "../../btl_glue/tests/counter.h"

#define PIECES 60
#define AHEAD 32

/* A rank's two buffers */
struct columns {
	char *sent;
	char *received;
};

static int rank;
static size_t row, rows;
static struct columns of[2];
static uint32_t *arrived;
static uint32_t times;

/* Both ranks leave at the same time: a loop on a line of rank 0. */
static void meet(void)
{
	__atomic_add_fetch(arrived, 1, __ATOMIC_SEQ_CST);
	for (times += 2; __atomic_load_n(arrived, __ATOMIC_SEQ_CST) < times;)
		__builtin_ia32_pause();
}

static void copy(char *to, const char *from, size_t first, size_t end)
{
	size_t i;

	for (i = first; i < end; i++) {
		if (i + AHEAD < rows) {
			__builtin_prefetch(from + (i + AHEAD) * row);
			__builtin_prefetch(to + (i + AHEAD) * row, 1);
		}
		*(double *)(to + i * row) = *(const double *)(from + i * row);
	}
}

/* ---- what is measured: two messages, or two copies ---- */

static void messages(MPI_Datatype type)
{
	if (rank == 0)
		MPI_Send(of[0].sent, 1, type, 1, 0, MPI_COMM_WORLD);
	MPI_Recv(of[rank].received, 1, type, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank == 1)
		MPI_Send(of[1].sent, 1, type, 0, 0, MPI_COMM_WORLD);
}

static void alone(MPI_Datatype type)
{
	(void)type;
	if (rank)
		return;
	copy(of[1].received, of[0].sent, 0, rows);
	copy(of[0].received, of[1].sent, 0, rows);
}

static void together(MPI_Datatype type)
{
	const size_t first = rank * rows / 2, end = first + rows / 2;

	(void)type;
	copy(of[1].received, of[0].sent, first, end);
	copy(of[0].received, of[1].sent, first, end);
}

/* One of them, in us. A rank that waits for the other one is no longer busy than it. */
static double best(void (*what)(MPI_Datatype type), MPI_Datatype type)
{
	double t, least = 1e9;
	int i;

	for (i = 0; i < PIECES; i++) {
		meet();
		t = MPI_Wtime();
		what(type);
		meet();
		t = 1e6 * (MPI_Wtime() - t) / 2;
		least = t < least ? t : least;
	}
	return least;
}

/* ---- buffers ---- */

static char *fill(size_t n)
{
	char *p = malloc(n);
	size_t i;

	if (!p)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (i = 0; i < n; i++)
		p[i] = i * 7 + rank;
	return p;
}

static void exchange(size_t bytes)
{
	struct columns own = { fill(bytes), fill(bytes) };
	uint32_t *flag = calloc(64, 1);

	MPI_Allgather(&own, sizeof(own), MPI_BYTE, of, sizeof(own), MPI_BYTE, MPI_COMM_WORLD);
	MPI_Bcast(&flag, sizeof(flag), MPI_BYTE, 0, MPI_COMM_WORLD);
	arrived = flag;
	times = 0;
}

static void measure(size_t n)
{
	double message, by_one, by_both;
	long long helped[2] = { 0, 0 };
	struct counter counter;
	MPI_Datatype type;
	long long before, own;

	rows = n / sizeof(double);
	exchange(rows * row);
	MPI_Type_vector(rows, 1, row / sizeof(double), MPI_DOUBLE, &type);
	MPI_Type_commit(&type);
	counter_find(&counter, "pieces_helped");
	before = counter_read(&counter);
	message = best(messages, type);
	own = counter_read(&counter) - before;
	by_one = best(alone, type);
	by_both = best(together, type);
	MPI_Gather(&own, 1, MPI_LONG_LONG, helped, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%zu message %.1f one %.1f both %.1f helped %.1f\n", n, message, by_one,
		       by_both, (double)(helped[0] + helped[1]) / PIECES / 2);
	MPI_Type_free(&type);
	MPI_Barrier(MPI_COMM_WORLD);
	free(of[rank].sent);
	free(of[rank].received);
}

int main(int argc, char **argv)
{
	cpu_set_t own;
	int size, i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	counters_begin();
	if (argc < 3 || size != 2) {
		fprintf(stderr, "usage: columns ROW SIZE..., in two ranks of a space\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	row = atol(argv[1]);
	CPU_ZERO(&own);
	CPU_SET(rank, &own);
	if (row < sizeof(double) || row % sizeof(double) ||
	    sched_setaffinity(0, sizeof(own), &own)) {
		fprintf(stderr, "columns: not a length of rows, or not two processors\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	for (i = 2; i < argc; i++)
		measure(atol(argv[i]));
	MPI_Finalize();
	return 0;
}
