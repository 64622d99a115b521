// SPDX-License-Identifier: GPL-2.0-only
/* Conjugate gradients on a matrix cut into blocks: sums over rows, gathers over columns. */
#include "patterns.h"

#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

/**
 * struct blocks - ranks in a grid; ours is block (@at[0], @at[1])
 * @row:	the ranks of our row, @column those of our column
 * @len:	rows and columns of a block; @n of the whole
 */
struct blocks {
	MPI_Comm row, column;
	int dims[2], at[2], len[2], n;
	double *a, *part;
};

/* Symmetric, and so heavy on the diagonal that it is positive definite */
static double entry(long i, long j, int n)
{
	return (i == j ? n : 0) + 1.0 / (1 + labs(i - j));
}

static void open_blocks(struct blocks *b, int n)
{
	int none[2] = { 0 }, keep_row[2] = { 0, 1 }, keep_column[2] = { 1, 0 }, i, j;
	MPI_Comm grid;

	b->dims[0] = b->dims[1] = 0;
	MPI_Dims_create(patterns_size, 2, b->dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, b->dims, none, 0, &grid);
	MPI_Cart_coords(grid, patterns_rank, 2, b->at);
	MPI_Cart_sub(grid, keep_row, &b->row);
	MPI_Cart_sub(grid, keep_column, &b->column);
	MPI_Comm_free(&grid);
	/* Equal blocks */
	b->n = n - n % (b->dims[0] * b->dims[1]);
	for (i = 0; i < 2; i++)
		b->len[i] = b->n / b->dims[i];
	b->a = patterns_alloc((size_t)b->len[0] * b->len[1], sizeof(double));
	b->part = patterns_alloc(b->len[0], sizeof(double));
	for (i = 0; i < b->len[0]; i++)
		for (j = 0; j < b->len[1]; j++)
			b->a[(size_t)i * b->len[1] + j] = entry(b->at[0] * b->len[0] + i,
								b->at[1] * b->len[1] + j, b->n);
}

static void close_blocks(struct blocks *b)
{
	free(b->a);
	free(b->part);
	MPI_Comm_free(&b->row);
	MPI_Comm_free(&b->column);
}

/* @y = A @x, whole vectors, which all ranks have */
static void multiply(struct blocks *b, const double *x, double *y)
{
	const double *mine = x + b->at[1] * b->len[1];
	int i, j;

	for (i = 0; i < b->len[0]; i++) {
		const double *row = b->a + (size_t)i * b->len[1];

		b->part[i] = 0;
		for (j = 0; j < b->len[1]; j++)
			b->part[i] += row[j] * mine[j];
	}
	MPI_Allreduce(MPI_IN_PLACE, b->part, b->len[0], MPI_DOUBLE, MPI_SUM, b->row);
	MPI_Allgather(b->part, b->len[0], MPI_DOUBLE, y, b->len[0], MPI_DOUBLE, b->column);
}

/* Each rank of a row sums its share of the vector's part; then all know it. */
static double dot(const struct blocks *b, const double *x, const double *y)
{
	int share = b->len[0] / b->dims[1];
	int from = b->at[0] * b->len[0] + b->at[1] * share, i;
	double sum = 0;

	for (i = from; i < from + share; i++)
		sum += x[i] * y[i];
	MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return sum;
}

/* Solves A x = @r, from x = 0. @r, @p, @q are used up. */
static void solve(struct blocks *b, double *x, double *r, double *p, double *q, int steps)
{
	double rho = dot(b, r, r), last, alpha;
	int i, j;

	memcpy(p, r, b->n * sizeof(*p));
	for (i = 0; i < steps && rho > 0; i++) {
		multiply(b, p, q);
		alpha = rho / dot(b, p, q);
		for (j = 0; j < b->n; j++) {
			x[j] += alpha * p[j];
			r[j] -= alpha * q[j];
		}
		last = rho;
		rho = dot(b, r, r);
		for (j = 0; j < b->n; j++)
			p[j] = r[j] + rho / last * p[j];
	}
}

static bool cg(int n, int rounds, double *seconds)
{
	double *x, *r, *p, *q;
	struct blocks b;
	bool right = true;
	int i;

	open_blocks(&b, n);
	x = patterns_alloc(b.n, sizeof(*x));
	r = patterns_alloc(b.n, sizeof(*r));
	p = patterns_alloc(b.n, sizeof(*p));
	q = patterns_alloc(b.n, sizeof(*q));
	MPI_Barrier(MPI_COMM_WORLD);
	*seconds = -MPI_Wtime();
	for (i = 0; i < rounds; i++) {
		int j;

		/* The answer is 1, 2, 3, 1, 2, 3, ... */
		for (j = 0; j < b.n; j++) {
			p[j] = 1 + j % 3;
			x[j] = 0;
		}
		multiply(&b, p, r);
		solve(&b, x, r, p, q, 15);
		for (j = 0; j < b.n; j++)
			right &= fabs(x[j] - (1 + j % 3)) < 1e-9;
	}
	*seconds += MPI_Wtime();
	free(x);
	free(r);
	free(p);
	free(q);
	close_blocks(&b);
	return right;
}

const struct pattern pattern_cg = { "cg", cg, { 256, 768, 2048 }, { 20, 10, 5 } };
