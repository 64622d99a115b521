/* SPDX-License-Identifier: GPL-2.0-only */
/* Exchanges with derived datatypes on both sides, by alltoallw and neighbor_alltoallw. */
#ifndef PVAS_BENCH_COLL_LAYOUTS_H
#define PVAS_BENCH_COLL_LAYOUTS_H

#include <mpi.h>
#include <math.h>

#define MOST_RANKS 256
#define DIRECTIONS 26

/* The arguments of an exchange; made anew when the length changes */
struct layouts {
	int of;
	int counts[MOST_RANKS];
	int displs[MOST_RANKS];
	MPI_Aint displs_a[DIRECTIONS];
	MPI_Datatype sent[MOST_RANKS];
	MPI_Datatype received[MOST_RANKS];
};

static inline void free_layouts(struct layouts *l, int nr)
{
	int i;

	for (i = 0; l->of && i < nr; i++) {
		MPI_Type_free(&l->sent[i]);
		MPI_Type_free(&l->received[i]);
	}
}

/* Columns of a matrix of doubles: one for each rank, of @n bytes */
static inline void make_columns(struct layouts *l, int n, int size)
{
	int i;

	free_layouts(l, size);
	for (i = 0; i < size; i++) {
		MPI_Type_vector(n / 8, 1, size, MPI_DOUBLE, &l->sent[i]);
		MPI_Type_commit(&l->sent[i]);
		MPI_Type_dup(l->sent[i], &l->received[i]);
		l->counts[i] = 1;
		l->displs[i] = 8 * i;
	}
	l->of = n;
}

/* Cubes of about @n bytes, of an array that has them side by side */
static inline void make_cubes(struct layouts *l, int n, int size)
{
	const int a = cbrt(n / 8), sizes[3] = { a, a, a * size }, cube[3] = { a, a, a };
	int i, at[3] = { 0, 0, 0 };

	free_layouts(l, size);
	for (i = 0; i < size; i++) {
		at[2] = i * a;
		MPI_Type_create_subarray(3, sizes, cube, at, MPI_ORDER_C, MPI_DOUBLE, &l->sent[i]);
		MPI_Type_commit(&l->sent[i]);
		MPI_Type_dup(l->sent[i], &l->received[i]);
		l->counts[i] = 1;
		l->displs[i] = 0;
	}
	l->of = n;
}

static inline void exchange(struct layouts *l, void *s, void *r, MPI_Comm comm)
{
	MPI_Alltoallw(s, l->counts, l->displs, l->sent, r, l->counts, l->displs, l->received, comm);
}

/* ---- the halo of a cube: six faces of @n bytes, edges, corners ---- */

/* The side of the cube, without its halo */
static inline int halo_side(int n)
{
	return sqrt(n / 8) > 1 ? sqrt(n / 8) : 1;
}

/* Direction @k of 26: -1, 0 or 1 in each dimension */
static inline void direction(int k, int d[3])
{
	k += k >= DIRECTIONS / 2;
	d[0] = k / 9 - 1;
	d[1] = k / 3 % 3 - 1;
	d[2] = k % 3 - 1;
}

static inline MPI_Datatype halo_part(int side, const int d[3], int outside)
{
	const int whole[3] = { side + 2, side + 2, side + 2 };
	int i, length[3], at[3];
	MPI_Datatype type;

	for (i = 0; i < 3; i++) {
		length[i] = d[i] ? 1 : side;
		at[i] = d[i] > 0 ? side + outside : d[i] < 0 ? 1 - outside : 1;
	}
	MPI_Type_create_subarray(3, whole, length, at, MPI_ORDER_C, MPI_DOUBLE, &type);
	MPI_Type_commit(&type);
	return type;
}

/* The part sent in direction k is received in the opposite one, 25 - k. */
static inline void make_halo(struct layouts *l, int n)
{
	int k, d[3];

	free_layouts(l, DIRECTIONS);
	for (k = 0; k < DIRECTIONS; k++) {
		direction(k, d);
		l->sent[k] = halo_part(halo_side(n), d, 0);
		l->received[k] = halo_part(halo_side(n), d, 1);
		l->counts[k] = 1;
		l->displs_a[k] = 0;
	}
	l->of = n;
}

/* A periodic grid of three dimensions with its diagonals, as a graph */
static inline MPI_Comm make_grid(MPI_Comm comm, MPI_Info info)
{
	int size, k, i, d[3], at[3], dims[3] = { 0, 0, 0 }, periods[3] = { 1, 1, 1 }, rank;
	int from[DIRECTIONS], to[DIRECTIONS], weights[DIRECTIONS];
	MPI_Comm cart, graph, grid;

	MPI_Comm_size(comm, &size);
	MPI_Dims_create(size, 3, dims);
	MPI_Cart_create(comm, 3, dims, periods, 0, &cart);
	MPI_Comm_rank(cart, &rank);
	for (k = 0; k < DIRECTIONS; k++) {
		weights[k] = 1;
		direction(k, d);
		MPI_Cart_coords(cart, rank, 3, at);
		for (i = 0; i < 3; i++)
			at[i] += d[i];
		MPI_Cart_rank(cart, at, &to[k]);
		/* Received from the other side; then each pair's edges are in one order. */
		MPI_Cart_coords(cart, rank, 3, at);
		for (i = 0; i < 3; i++)
			at[i] -= d[i];
		MPI_Cart_rank(cart, at, &from[k]);
	}
	MPI_Dist_graph_create_adjacent(comm, DIRECTIONS, from, weights, DIRECTIONS, to, weights,
				       MPI_INFO_NULL, 0, &graph);
	MPI_Comm_dup_with_info(graph, info, &grid);
	MPI_Comm_free(&graph);
	MPI_Comm_free(&cart);
	return grid;
}

static inline void exchange_halo(struct layouts *l, void *s, void *r, MPI_Comm grid)
{
	MPI_Neighbor_alltoallw(s, l->counts, l->displs_a, l->sent, r, l->counts, l->displs_a,
			       l->received, grid);
}

#endif /* PVAS_BENCH_COLL_LAYOUTS_H */
