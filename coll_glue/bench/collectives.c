// SPDX-License-Identifier: GPL-2.0-only
/*
 * The time of collective operations, in the way of OSU's micro-benchmarks: the mean over the
 * ranks of the time for one operation, several in a row. Unlike there, buffers change from one
 * operation to the next, the sender stores into what it sends, and the time is that of the
 * best of many pieces. Pieces with coll/pvas, without it, with it once more, and with coll/sm
 * take turns, on communicators of one job, so that other users of the machine disturb all of
 * them alike. One line an operation and size: name, bytes, and microseconds in this order; with
 * "alone", with what the MPI chooses.
 *
 *	collectives [alone] [OPERATION | BYTES]...
 *	PIECES=...	of which the best one counts
 *	TIMES=...	operations in a piece, with very many ranks
 */
#include "layouts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST (1 << 20)
#define BUFFERS 4
#define MOST_SIZES 16

static int rank, size, pieces = 31, asked_times;
static char *sent[BUFFERS], *received[BUFFERS];

/* A cube for the halo's exchange, for faces of up to so many bytes */
#define LONGEST_FACE (64 << 10)
static double *cubes[2];

/* "fresh": a buffer is used for one operation, but its pages have been touched before. */
static char *fresh;
static size_t fresh_at, fresh_bytes;

/* A communicator of all ranks, a ring of them, and a grid with its diagonals */
struct system {
	MPI_Comm comm, ring, grid;
};

enum { OURS, OTHER, AGAIN, SM, MOST_SYSTEMS };
static struct system systems[MOST_SYSTEMS];
static int nr_systems = MOST_SYSTEMS;

/* Which components make up a communicator of that system, for Open MPI */
static const char *const preferences[MOST_SYSTEMS] = {
	[OTHER] = "^pvas", [SM] = "sm,tuned,libnbc,basic,^pvas",
};

enum {
	BARRIER, BCAST, REDUCE, ALLREDUCE, ALLGATHER, ALLTOALL, GATHER, SCATTER, COLUMNS,
	NEIGHBORS, ALLTOALLV, GATHERV, SCATTERV, REDUCE_SCATTER, SCAN, IBARRIER, IBCAST,
	IALLREDUCE, IALLGATHER, IALLTOALL, SUBARRAYS, HALO, FRESH, NR
};
static const char *const names[] = {
	"barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall", "gather", "scatter",
	"columns", "neighbors", "alltoallv", "gatherv", "scatterv", "reduce_scatter", "scan",
	"ibarrier", "ibcast", "iallreduce", "iallgather", "ialltoall", "subarrays", "halo",
	"fresh",
};

/* Exchanges with derived datatypes; both sides have the same. */
static void exchange_layouts(int what, char *s, char *r, int n, const struct system *on)
{
	static struct layouts columns, boxes, halo;

	switch (what) {
	case COLUMNS:
		if (columns.of != n)
			make_columns(&columns, n, size);
		exchange(&columns, s, r, on->comm);
		break;
	case SUBARRAYS:
		if (boxes.of != n)
			make_cubes(&boxes, n, size);
		exchange(&boxes, s, r, on->comm);
		break;
	default:
		if (halo.of != n)
			make_halo(&halo, n);
		exchange_halo(&halo, cubes[0], cubes[1], on->grid);
	}
}

static void bcast_fresh(int n, MPI_Comm comm)
{
	if (fresh_at + n > fresh_bytes)
		fresh_at = 0;
	MPI_Bcast(fresh + fresh_at, n, MPI_CHAR, 0, comm);
	fresh_at += n;
}

/* A non-blocking operation, which is complete on return */
static void start_and_wait(int what, char *s, char *r, int n, MPI_Comm comm)
{
	MPI_Request request;

	switch (what) {
	case IBARRIER:
		MPI_Ibarrier(comm, &request);
		break;
	case IBCAST:
		MPI_Ibcast(rank ? r : s, n, MPI_CHAR, 0, comm, &request);
		break;
	case IALLREDUCE:
		MPI_Iallreduce(s, r, n / 8, MPI_DOUBLE, MPI_SUM, comm, &request);
		break;
	case IALLGATHER:
		MPI_Iallgather(s, n, MPI_CHAR, r, n, MPI_CHAR, comm, &request);
		break;
	default:
		MPI_Ialltoall(s, n, MPI_CHAR, r, n, MPI_CHAR, comm, &request);
	}
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Operations with an array of counts, which here are all the same */
static void exchange_blocks(int what, char *s, char *r, int n, MPI_Comm comm)
{
	static int counts[64], displs[64];
	int i;

	for (i = 0; i < size; i++) {
		counts[i] = n;
		displs[i] = i * n;
	}
	switch (what) {
	case ALLTOALLV:
		MPI_Alltoallv(s, counts, displs, MPI_CHAR, r, counts, displs, MPI_CHAR, comm);
		break;
	case GATHERV:
		MPI_Gatherv(s, n, MPI_CHAR, r, counts, displs, MPI_CHAR, 0, comm);
		break;
	default:
		MPI_Scatterv(s, counts, displs, MPI_CHAR, r, n, MPI_CHAR, 0, comm);
	}
}

static void combine(int what, char *s, char *r, int n, MPI_Comm comm)
{
	switch (what) {
	case REDUCE:
		MPI_Reduce(s, r, n / 8, MPI_DOUBLE, MPI_SUM, 0, comm);
		break;
	case ALLREDUCE:
		MPI_Allreduce(s, r, n / 8, MPI_DOUBLE, MPI_SUM, comm);
		break;
	case REDUCE_SCATTER:
		MPI_Reduce_scatter_block(s, r, n / 8, MPI_DOUBLE, MPI_SUM, comm);
		break;
	default:
		MPI_Scan(s, r, n / 8, MPI_DOUBLE, MPI_SUM, comm);
	}
}

static void operate(int what, char *s, char *r, int n, const struct system *on)
{
	const MPI_Comm comm = on->comm;

	switch (what) {
	case BARRIER:
		MPI_Barrier(comm);
		break;
	case BCAST:
		MPI_Bcast(rank ? r : s, n, MPI_CHAR, 0, comm);
		break;
	case ALLGATHER:
		MPI_Allgather(s, n, MPI_CHAR, r, n, MPI_CHAR, comm);
		break;
	case ALLTOALL:
		MPI_Alltoall(s, n, MPI_CHAR, r, n, MPI_CHAR, comm);
		break;
	case GATHER:
		MPI_Gather(s, n, MPI_CHAR, r, n, MPI_CHAR, 0, comm);
		break;
	case SCATTER:
		MPI_Scatter(s, n, MPI_CHAR, r, n, MPI_CHAR, 0, comm);
		break;
	case COLUMNS:
	case SUBARRAYS:
	case HALO:
		exchange_layouts(what, s, r, n, on);
		break;
	case FRESH:
		bcast_fresh(n, comm);
		break;
	case NEIGHBORS:
		MPI_Neighbor_alltoall(s, n, MPI_CHAR, r, n, MPI_CHAR, on->ring);
		break;
	case ALLTOALLV:
	case GATHERV:
	case SCATTERV:
		exchange_blocks(what, s, r, n, comm);
		break;
	case REDUCE:
	case ALLREDUCE:
	case REDUCE_SCATTER:
	case SCAN:
		combine(what, s, r, n, comm);
		break;
	default:
		start_and_wait(what, s, r, n, comm);
	}
}

static int has_sent_buffer(int what)
{
	return what != BARRIER && what != IBARRIER && what != HALO && what != FRESH;
}

static double piece(int what, int n, int times, const struct system *on)
{
	double begin, mine;
	int i;

	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	for (i = 0; i < times; i++) {
		if (has_sent_buffer(what))
			memset(sent[i % BUFFERS], i & 1, n);
		operate(what, sent[i % BUFFERS], received[i % BUFFERS], n, on);
	}
	mine = MPI_Wtime() - begin;
	MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return 1e6 * mine / times / size;
}

/* The best of many short pieces, in which other processes have little chance to disturb */
static void measure(int what, int n, double best[MOST_SYSTEMS])
{
	const int usual = n <= 1 << 10 ? 100 : n <= 8 << 10 ? 40 : n <= 64 << 10 ? 12 : 4;
	const int times = asked_times ? asked_times : usual;
	double now;
	int i, k;

	for (k = 0; k < nr_systems; k++)
		best[k] = piece(what, n, times, &systems[k]);
	for (i = 1; i < pieces; i++) {
		for (k = 0; k < nr_systems; k++) {
			now = piece(what, n, times, &systems[k]);
			if (now < best[k])
				best[k] = now;
		}
	}
}

static void make_systems(void)
{
	const int periodic = 1;
	MPI_Comm ring;
	MPI_Info info;
	int k;

	MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
	for (k = 0; k < nr_systems; k++) {
		MPI_Info_create(&info);
		if (preferences[k])
			MPI_Info_set(info, "ompi_comm_coll_preference", preferences[k]);
		MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &systems[k].comm);
		MPI_Comm_dup_with_info(ring, info, &systems[k].ring);
		systems[k].grid = make_grid(MPI_COMM_WORLD, info);
		MPI_Info_free(&info);
	}
}

/* @longest: bytes for each rank. A rank has two neighbors, even if it is alone. */
static void make_buffers(int longest)
{
	const size_t bytes = (size_t)(size + 1) * longest;
	const int side = halo_side(LONGEST_FACE) + 2;
	int i;

	for (i = 0; i < BUFFERS; i++) {
		sent[i] = malloc(bytes);
		received[i] = malloc(bytes);
		memset(sent[i], 1, bytes);
		memset(received[i], 1, bytes);
	}
	for (i = 0; i < 2; i++)
		cubes[i] = calloc((size_t)side * side * side, sizeof(**cubes));
}

static void make_fresh(void)
{
	fresh_bytes = (size_t)(pieces + 1) * nr_systems * 12 * (32 << 10);
	fresh = malloc(fresh_bytes);
	memset(fresh, 1, fresh_bytes);
}

static int greatest(const int *values, int nr)
{
	int i, most = values[0];

	for (i = 1; i < nr; i++)
		if (values[i] > most)
			most = values[i];
	return most;
}

static int wanted(const char *name, int argc, char **argv)
{
	int i, all = 1;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], name))
			return 1;
		if (!atoi(argv[i]))
			all = 0;
	}
	return all;
}

/* Those that are among the arguments, or some of our own */
static int choose_sizes(int argc, char **argv, int sizes[MOST_SIZES])
{
	static const int ours[] = { 8, 1 << 10, 8 << 10, 64 << 10, 1 << 20 };
	int nr = 0, i;

	for (i = 1; i < argc && nr < MOST_SIZES; i++)
		if (atoi(argv[i]) >= 8 && atoi(argv[i]) <= LONGEST)
			sizes[nr++] = atoi(argv[i]);
	if (nr)
		return nr;
	memcpy(sizes, ours, sizeof(ours));
	return sizeof(ours) / sizeof(ours[0]);
}

/* Is this length of use with this operation? */
static int fits(int what, int n, int first)
{
	if (what == BARRIER || what == IBARRIER)
		return first;
	if (what == HALO)
		return n >= 64 && n <= LONGEST_FACE;
	return what != SUBARRAYS || n >= 64;
}

static void print(int what, int n, const double *us)
{
	int k;

	if (rank)
		return;
	printf("%s %d", names[what], n);
	for (k = 0; k < nr_systems; k++)
		printf(" %.3f", us[k]);
	printf("\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int sizes[MOST_SIZES], nr_sizes, what, i;
	double us[MOST_SYSTEMS];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (getenv("PIECES") && atoi(getenv("PIECES")) > 0)
		pieces = atoi(getenv("PIECES"));
	if (getenv("TIMES"))
		asked_times = atoi(getenv("TIMES"));
	if (argc > 1 && !strcmp(argv[1], "alone")) {
		nr_systems = 1;
		argc--;
		argv++;
	}
	make_systems();
	nr_sizes = choose_sizes(argc, argv, sizes);
	make_buffers(greatest(sizes, nr_sizes));
	if (wanted("fresh", argc, argv))
		make_fresh();
	for (what = 0; what < NR; what++) {
		for (i = 0; i < nr_sizes && wanted(names[what], argc, argv); i++) {
			if (what == FRESH && i)
				break;
			if (what == FRESH)
				sizes[0] = 32 << 10;
			if (!fits(what, sizes[i], !i))
				continue;
			measure(what, sizes[i], us);
			print(what, sizes[i], us);
		}
	}
	MPI_Finalize();
	return 0;
}
