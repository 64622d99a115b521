// SPDX-License-Identifier: GPL-2.0-only
/*
 * The time of one-sided operations with a flush each, from rank 0 to rank 1, which waits in a
 * barrier; and of memcpy() of as much in rank 0. One line each: name and nanoseconds, the median
 * of many pieces.
 *
 *	onesided [create]
 *	create	windows of memory that the program has, instead of MPI_Win_allocate()
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG (1 << 20)
#define PIECES 41

static MPI_Win win;
static char *buf, *other;

static void put_8(void) { MPI_Put(buf, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, win); }
static void get_8(void) { MPI_Get(buf, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, win); }
static void put_4k(void) { MPI_Put(buf, 4096, MPI_CHAR, 1, 0, 4096, MPI_CHAR, win); }
static void get_4k(void) { MPI_Get(buf, 4096, MPI_CHAR, 1, 0, 4096, MPI_CHAR, win); }
static void put_1m(void) { MPI_Put(buf, LONG, MPI_CHAR, 1, 0, LONG, MPI_CHAR, win); }
static void get_1m(void) { MPI_Get(buf, LONG, MPI_CHAR, 1, 0, LONG, MPI_CHAR, win); }
static void memcpy_1m(void) { memcpy(other, buf, LONG); }

static void fetch_and_op(void)
{
	MPI_Fetch_and_op(buf, buf + 8, MPI_INT64_T, 1, 0, MPI_SUM, win);
}

static void compare_and_swap(void)
{
	MPI_Compare_and_swap(buf, buf + 8, buf + 16, MPI_INT64_T, 1, 0, win);
}

static void accumulate_double(void)
{
	MPI_Accumulate(buf, 1, MPI_DOUBLE, 1, 0, 1, MPI_DOUBLE, MPI_SUM, win);
}

static void accumulate_512(void)
{
	MPI_Accumulate(buf, 64, MPI_DOUBLE, 1, 0, 64, MPI_DOUBLE, MPI_SUM, win);
}

static void accumulate_1m(void)
{
	MPI_Accumulate(buf, LONG / 8, MPI_DOUBLE, 1, 0, LONG / 8, MPI_DOUBLE, MPI_SUM, win);
}

static const struct {
	const char *name;
	void (*operation)(void);
	int repeat;
} cases[] = {
	{ "put-8", put_8, 2000 }, { "get-8", get_8, 2000 }, { "put-4k", put_4k, 500 },
	{ "get-4k", get_4k, 500 }, { "put-1m", put_1m, 8 }, { "get-1m", get_1m, 8 },
	{ "memcpy-1m", memcpy_1m, 8 }, { "fetch_and_op-8", fetch_and_op, 2000 },
	/* From here on osc/rdma over vader can crash. */
	{ "compare_and_swap-8", compare_and_swap, 2000 },
	{ "accumulate-8", accumulate_double, 1000 }, { "accumulate-512", accumulate_512, 500 },
	{ "accumulate-1m", accumulate_1m, 4 },
};

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(int which)
{
	const int is_local = cases[which].operation == memcpy_1m;
	double ns[PIECES], began;
	int i, k;

	for (i = -2; i < PIECES; i++) {
		began = MPI_Wtime();
		for (k = 0; k < cases[which].repeat; k++) {
			cases[which].operation();
			if (!is_local)
				MPI_Win_flush(1, win);
		}
		if (i >= 0)
			ns[i] = (MPI_Wtime() - began) * 1e9 / cases[which].repeat;
	}
	qsort(ns, PIECES, sizeof(*ns), by_value);
	printf("%s %.1f\n", cases[which].name, ns[PIECES / 2]);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char *mem = NULL;
	int rank;
	size_t i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	/* All begin a page, as allocated windows do: copies of long data depend on that. */
	buf = aligned_alloc(4096, LONG);
	other = aligned_alloc(4096, LONG);
	memset(buf, 0, LONG);
	memset(other, 1, LONG);
	if (argc > 1)
		MPI_Win_create(mem = aligned_alloc(4096, LONG), LONG, 8, MPI_INFO_NULL,
			       MPI_COMM_WORLD, &win);
	else
		MPI_Win_allocate(LONG, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	memset(mem, 0, LONG);
	MPI_Win_lock_all(0, win);
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; !rank && i < sizeof(cases) / sizeof(cases[0]); i++)
		measure(i);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	MPI_Finalize();
	return 0;
}
