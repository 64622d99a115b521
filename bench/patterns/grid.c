// SPDX-License-Identifier: GPL-2.0-only
/* Kernels whose ranks lie in a grid and talk to their neighbours in it. */
#include "patterns.h"

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- halo: six faces of a cube, each round ---- */

/**
 * struct cube - a rank's part, and a layer more on each side
 * @from:	where it begins in the whole, by axis
 * @len:	how long it is, without the layers
 */
struct cube {
	MPI_Comm comm;
	int from[3], len[3], low[3], high[3];
	double *now, *next, *out, *in;
};

static size_t cell(const struct cube *c, int x, int y, int z)
{
	return ((size_t)x * (c->len[1] + 2) + y) * (c->len[2] + 2) + z;
}

/* A function that doesn't change by averaging over the six neighbours, plus 1 each round */
static double exact(const struct cube *c, int x, int y, int z, int round)
{
	return (c->from[0] + x) + 2.0 * (c->from[1] + y) + 3.0 * (c->from[2] + z) + round;
}

/* Which cells a pass is over: one layer of an axis */
struct layer {
	int begin[3], end[3];
};

static struct layer layer_of(const struct cube *c, int axis, int at)
{
	struct layer l;
	int i;

	for (i = 0; i < 3; i++) {
		l.begin[i] = i == axis ? at : 1;
		l.end[i] = i == axis ? at + 1 : c->len[i] + 1;
	}
	return l;
}

enum pass { PACK, UNPACK, FILL };

static int pass_over(struct cube *c, int axis, int at, enum pass what, int round)
{
	struct layer l = layer_of(c, axis, at);
	int x, y, z, n = 0;

	for (x = l.begin[0]; x < l.end[0]; x++)
		for (y = l.begin[1]; y < l.end[1]; y++)
			for (z = l.begin[2]; z < l.end[2]; z++) {
				double *v = &c->now[cell(c, x, y, z)];

				if (what == PACK)
					c->out[n++] = *v;
				else if (what == UNPACK)
					*v = c->in[n++];
				else
					*v = exact(c, x, y, z, round);
			}
	return n;
}

/* Sends one layer to @to, gets the layer beside ours from @from: the edge's is known. */
static void trade(struct cube *c, int axis, int to, int mine, int from, int theirs, int round)
{
	int n = pass_over(c, axis, mine, PACK, round);

	MPI_Sendrecv(c->out, n, MPI_DOUBLE, to, axis, c->in, n, MPI_DOUBLE, from, axis, c->comm,
		     MPI_STATUS_IGNORE);
	pass_over(c, axis, theirs, from == MPI_PROC_NULL ? FILL : UNPACK, round);
}

static void sweep(struct cube *c)
{
	size_t dx = cell(c, 1, 0, 0), dy = cell(c, 0, 1, 0), i;
	double *v = c->now, *swap;
	int x, y, z;

	for (x = 1; x <= c->len[0]; x++)
		for (y = 1; y <= c->len[1]; y++)
			for (z = 1; z <= c->len[2]; z++) {
				i = cell(c, x, y, z);
				c->next[i] = (v[i - dx] + v[i + dx] + v[i - dy] + v[i + dy] +
					      v[i - 1] + v[i + 1]) / 6 + 1;
			}
	swap = c->now;
	c->now = c->next;
	c->next = swap;
}

static void one_round(struct cube *c, int round)
{
	int a;

	for (a = 0; a < 3; a++) {
		trade(c, a, c->low[a], 1, c->high[a], c->len[a] + 1, round);
		trade(c, a, c->high[a], c->len[a], c->low[a], 0, round);
	}
	sweep(c);
}

static void open_cube(struct cube *c, int n)
{
	int dims[3] = { 0 }, none[3] = { 0 }, at[3], a;
	size_t cells = 1, face = 0;

	MPI_Dims_create(patterns_size, 3, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 3, dims, none, 0, &c->comm);
	MPI_Cart_coords(c->comm, patterns_rank, 3, at);
	for (a = 0; a < 3; a++) {
		c->from[a] = n * at[a] / dims[a];
		c->len[a] = n * (at[a] + 1) / dims[a] - c->from[a];
		MPI_Cart_shift(c->comm, a, 1, &c->low[a], &c->high[a]);
		cells *= c->len[a] + 2;
	}
	for (a = 0; a < 3; a++)
		if (cells / (c->len[a] + 2) > face)
			face = cells / (c->len[a] + 2);
	c->now = patterns_alloc(cells, sizeof(double));
	c->next = patterns_alloc(cells, sizeof(double));
	c->out = patterns_alloc(face, sizeof(double));
	c->in = patterns_alloc(face, sizeof(double));
	for (a = 1; a <= c->len[0]; a++)
		pass_over(c, 0, a, FILL, 0);
}

/* All values are whole numbers, so they are exact. */
static bool cube_is_right(const struct cube *c, int round)
{
	int x, y, z;

	for (x = 1; x <= c->len[0]; x++)
		for (y = 1; y <= c->len[1]; y++)
			for (z = 1; z <= c->len[2]; z++)
				if (c->now[cell(c, x, y, z)] != exact(c, x, y, z, round))
					return false;
	return true;
}

static bool halo(int n, int rounds, double *seconds)
{
	struct cube c;
	bool right;
	int i;

	open_cube(&c, n);
	MPI_Barrier(c.comm);
	*seconds = -MPI_Wtime();
	for (i = 0; i < rounds; i++)
		one_round(&c, i);
	*seconds += MPI_Wtime();
	right = cube_is_right(&c, rounds);
	free(c.now);
	free(c.next);
	free(c.out);
	free(c.in);
	MPI_Comm_free(&c.comm);
	return right;
}

const struct pattern pattern_halo = { "halo", halo, { 32, 64, 128 }, { 60, 40, 20 } };

/* ---- wave: planes, one after the other, each from the north and west of it ---- */

struct wave {
	MPI_Comm comm;
	int len[2], low[2], high[2];
	uint32_t *plane, *column;
};

/* Of the cell's neighbours: a step of a product that no order but this one gives */
static uint32_t mix(uint32_t above, uint32_t north, uint32_t west)
{
	return 1664525 * above + 22695477 * north + west + 1013904223;
}

static void compute_plane(struct wave *w)
{
	int stride = w->len[1] + 1, i, j;

	for (i = 1; i <= w->len[0]; i++)
		for (j = 1; j <= w->len[1]; j++) {
			uint32_t *v = &w->plane[i * stride + j];

			*v = mix(*v, v[-stride], v[-1]);
		}
}

/* Row 0 and column 0 hold the neighbours' edges, or zeros at the edge of the whole. */
static void one_plane(struct wave *w)
{
	int stride = w->len[1] + 1, i;

	MPI_Recv(w->plane + 1, w->len[1], MPI_UINT32_T, w->low[0], 0, w->comm, MPI_STATUS_IGNORE);
	MPI_Recv(w->column, w->len[0], MPI_UINT32_T, w->low[1], 1, w->comm, MPI_STATUS_IGNORE);
	for (i = 0; i < w->len[0]; i++)
		w->plane[(i + 1) * stride] = w->column[i];
	compute_plane(w);
	if (w->high[1] == MPI_PROC_NULL && w->high[0] == MPI_PROC_NULL)
		return;
	MPI_Send(w->plane + w->len[0] * stride + 1, w->len[1], MPI_UINT32_T, w->high[0], 0,
		 w->comm);
	/* The column from the west is no longer needed: its buffer can be reused. */
	for (i = 0; i < w->len[0]; i++)
		w->column[i] = w->plane[(i + 1) * stride + w->len[1]];
	MPI_Send(w->column, w->len[0], MPI_UINT32_T, w->high[1], 1, w->comm);
	if (w->low[1] == MPI_PROC_NULL)
		for (i = 0; i < w->len[0]; i++)
			w->column[i] = 0;
}

/* The same on one rank; the last rank compares its last cell with the result. */
static uint32_t alone(int n, int planes)
{
	struct wave w = { .len = { n, n } };
	uint32_t last;
	int i;

	w.plane = patterns_alloc((size_t)(n + 1) * (n + 1), sizeof(*w.plane));
	for (i = 0; i < planes; i++)
		compute_plane(&w);
	last = w.plane[n * (n + 1) + n];
	free(w.plane);
	return last;
}

static bool wave(int n, int planes, double *seconds)
{
	int dims[2] = { 0 }, none[2] = { 0 }, at[2], a, i;
	bool right = true;
	struct wave w;

	MPI_Dims_create(patterns_size, 2, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, none, 0, &w.comm);
	MPI_Cart_coords(w.comm, patterns_rank, 2, at);
	for (a = 0; a < 2; a++) {
		w.len[a] = n * (at[a] + 1) / dims[a] - n * at[a] / dims[a];
		MPI_Cart_shift(w.comm, a, 1, &w.low[a], &w.high[a]);
	}
	w.plane = patterns_alloc((size_t)(w.len[0] + 1) * (w.len[1] + 1), sizeof(*w.plane));
	w.column = patterns_alloc(w.len[0], sizeof(*w.column));
	MPI_Barrier(w.comm);
	*seconds = -MPI_Wtime();
	for (i = 0; i < planes; i++)
		one_plane(&w);
	*seconds += MPI_Wtime();
	if (patterns_rank == patterns_size - 1)
		right = w.plane[w.len[0] * (w.len[1] + 1) + w.len[1]] == alone(n, planes);
	free(w.plane);
	free(w.column);
	MPI_Comm_free(&w.comm);
	return right;
}

const struct pattern pattern_wave = { "wave", wave, { 64, 128, 256 }, { 500, 500, 500 } };
