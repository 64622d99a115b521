// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Programs whose arrays are four times the budget, with results equal to those of the same
 * functions in ordinary memory: STREAM, a 7-point stencil, a blocked matrix product.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "far_test.h"

FIXTURE(programs)
{
	int unused;
};

FIXTURE_VARIANT(programs)
{
	struct how how;
	unsigned int threads;
};

FIXTURE_VARIANT_ADD(programs, zip) { { "zip", 65536 }, 1 };
FIXTURE_VARIANT_ADD(programs, file_2_threads) { { "file:/var/tmp", 65536 }, 2 };
FIXTURE_VARIANT_ADD(programs, file_2_threads_no_move) {
	{ "file:/var/tmp", 65536, .no_move = true }, 2
};
FIXTURE_VARIANT_ADD(programs, zip_16_threads) { { "zip", 16384 }, 16 };
FIXTURE_VARIANT_ADD(programs, zip_16_threads_no_move) { { "zip", 16384, .no_move = true }, 16 };

FIXTURE_SETUP(programs)
{
	/* Each test starts the pager, with a budget for its arrays. */
}

FIXTURE_TEARDOWN(programs)
{
	EXPECT_EQ(0, pvas_far_close());
}

/* ---- a loop divided among threads ---- */

struct loop {
	void (*body)(double *const *a, size_t from, size_t to);
	double *const *arrays;
	size_t from, to;
	pthread_t thread;
};

static void *run_part(void *arg)
{
	struct loop *part = arg;

	part->body(part->arrays, part->from, part->to);
	return NULL;
}

static void parallel(unsigned int threads, void (*body)(double *const *, size_t, size_t),
		     double *const *arrays, size_t n)
{
	struct loop part[16];
	unsigned int t;

	for (t = 0; t < threads; t++) {
		part[t] = (struct loop){ body, arrays, n * t / threads, n * (t + 1) / threads };
		if (pthread_create(&part[t].thread, NULL, run_part, &part[t]))
			abort();	/* no more threads on this machine just now */
	}
	for (t = 0; t < threads; t++)
		pthread_join(part[t].thread, NULL);
}

/* Allocate arrays in far memory, at four times the budget in all, and in ordinary memory. */
static int allocate(const struct how *how, unsigned int count, size_t elements, double **far_arrays,
		    double **arrays)
{
	size_t size = elements * sizeof(double), ram = count * size / 4;
	unsigned int i;

	if (open_far(how, ram, count * (size + how->page)))
		return -1;
	for (i = 0; i < count; i++) {
		arrays[i] = calloc(elements, sizeof(double));
		if (!arrays[i] || pvas_far_alloc((void **)&far_arrays[i], size))
			return -1;
	}
	return 0;
}

static int same(double **far_arrays, double **arrays, unsigned int count, size_t elements)
{
	unsigned int i, differ = 0;

	for (i = 0; i < count; i++) {
		differ += memcmp(far_arrays[i], arrays[i], elements * sizeof(double)) != 0;
		free(arrays[i]);
	}
	return !differ;
}

/* ---- STREAM ---- */

enum { STREAM_ELEMENTS = 1 << 19 };

static void stream_init(double *const *x, size_t from, size_t to)
{
	size_t i;

	for (i = from; i < to; i++) {
		x[0][i] = 1.0 + (double)i;
		x[1][i] = 2.0;
		x[2][i] = 0.0;
	}
}

static void stream_copy(double *const *x, size_t from, size_t to)
{
	size_t i;

	for (i = from; i < to; i++)
		x[2][i] = x[0][i];
}

static void stream_scale(double *const *x, size_t from, size_t to)
{
	size_t i;

	for (i = from; i < to; i++)
		x[1][i] = 3.0 * x[2][i];
}

static void stream_add(double *const *x, size_t from, size_t to)
{
	size_t i;

	for (i = from; i < to; i++)
		x[2][i] = x[0][i] + x[1][i];
}

static void stream_triad(double *const *x, size_t from, size_t to)
{
	size_t i;

	for (i = from; i < to; i++)
		x[0][i] = x[1][i] + 3.0 * x[2][i];
}

static void stream(double *const *x, unsigned int threads)
{
	int round;

	parallel(threads, stream_init, x, STREAM_ELEMENTS);
	for (round = 0; round < 3; round++) {
		parallel(threads, stream_copy, x, STREAM_ELEMENTS);
		parallel(threads, stream_scale, x, STREAM_ELEMENTS);
		parallel(threads, stream_add, x, STREAM_ELEMENTS);
		parallel(threads, stream_triad, x, STREAM_ELEMENTS);
	}
}

TEST_F(programs, stream)
{
	double *x[3], *y[3];

	ASSERT_EQ(0, allocate(&variant->how, 3, STREAM_ELEMENTS, x, y));
	stream(x, variant->threads);
	stream(y, variant->threads);
	EXPECT_TRUE(same(x, y, 3, STREAM_ELEMENTS));
	EXPECT_LT(0, counters().fetched);
}

/* ---- a 7-point stencil ---- */

enum { EDGE = 96 };

static size_t at(size_t x, size_t y, size_t z)
{
	return (z * EDGE + y) * EDGE + x;
}

static void stencil_init(double *const *a, size_t from, size_t to)
{
	size_t i;

	for (i = from * EDGE * EDGE; i < to * EDGE * EDGE; i++)
		a[0][i] = a[1][i] = (double)(i * 7919 % 1000);
}

/* One step: planes @from to @to - 1, but not the outermost */
static void stencil_step(double *const *a, size_t from, size_t to)
{
	const double *o = a[0];
	size_t x, y, z;

	for (z = from ? from : 1; z < to && z < EDGE - 1; z++)
		for (y = 1; y < EDGE - 1; y++)
			for (x = 1; x < EDGE - 1; x++)
				a[1][at(x, y, z)] = 0.4 * o[at(x, y, z)] +
					0.1 * (o[at(x - 1, y, z)] + o[at(x + 1, y, z)] +
					       o[at(x, y - 1, z)] + o[at(x, y + 1, z)] +
					       o[at(x, y, z - 1)] + o[at(x, y, z + 1)]);
}

static void stencil(double *const *a, unsigned int threads)
{
	double *turned[2] = { a[1], a[0] };
	int step;

	parallel(threads, stencil_init, a, EDGE);
	for (step = 0; step < 4; step++)
		parallel(threads, stencil_step, step % 2 ? turned : a, EDGE);
}

TEST_F(programs, stencil)
{
	double *x[2], *y[2];

	ASSERT_EQ(0, allocate(&variant->how, 2, EDGE * EDGE * EDGE, x, y));
	stencil(x, variant->threads);
	stencil(y, variant->threads);
	EXPECT_TRUE(same(x, y, 2, EDGE * EDGE * EDGE));
	EXPECT_LT(0, counters().fetched);
}

/* ---- a matrix product, C = A B, in blocks ---- */

enum { ORDER = 448, BLOCK = 32 };

static void product_init(double *const *m, size_t from, size_t to)
{
	size_t i;

	for (i = from * BLOCK * ORDER; i < to * BLOCK * ORDER; i++) {
		m[0][i] = (double)(i % 101);
		m[1][i] = (double)(i % 103);
		m[2][i] = 0;
	}
}

static void product_block(double *const *m, size_t row, size_t column, size_t k)
{
	size_t i, j, l;

	for (i = row; i < row + BLOCK; i++)
		for (l = k; l < k + BLOCK; l++)
			for (j = column; j < column + BLOCK; j++)
				m[2][i * ORDER + j] += m[0][i * ORDER + l] * m[1][l * ORDER + j];
}

/* Rows of blocks @from to @to - 1 */
static void product_rows(double *const *m, size_t from, size_t to)
{
	size_t row, column, k;

	for (row = from; row < to; row++)
		for (column = 0; column < ORDER; column += BLOCK)
			for (k = 0; k < ORDER; k += BLOCK)
				product_block(m, row * BLOCK, column, k);
}

static void product(double *const *m, unsigned int threads)
{
	parallel(threads, product_init, m, ORDER / BLOCK);
	parallel(threads, product_rows, m, ORDER / BLOCK);
}

TEST_F(programs, matrix_product)
{
	/* 4.8 MB in all: pages of 16 KiB, for 32 of them in the budget */
	struct how how = variant->how;
	/* The blocks of 16 threads do not fit into the budget: pages would only come and go. */
	unsigned int threads = variant->threads < 4 ? variant->threads : 4;
	double *x[3], *y[3];

	how.page = 16384;
	ASSERT_EQ(0, allocate(&how, 3, ORDER * ORDER, x, y));
	product(x, threads);
	product(y, threads);
	EXPECT_TRUE(same(x, y, 3, ORDER * ORDER));
	EXPECT_LT(0, counters().fetched);
}

TEST_HARNESS_MAIN
