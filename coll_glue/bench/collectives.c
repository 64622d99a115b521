// SPDX-License-Identifier: GPL-2.0-only
/*
 * The time of collective operations, in the way of OSU's micro-benchmarks: the mean over the
 * ranks of the time for one operation, several in a row. Unlike there, buffers change from one
 * operation to the next, the sender stores into what it sends, and the time is that of the
 * best of many pieces. Pieces with coll/pvas, without it, and with it once more take turns, on
 * communicators of one job, so that other users of the machine disturb all of them alike. One
 * line an operation and size: name, bytes, microseconds with coll/pvas, without, with.
 *
 *	collectives [OPERATION | BYTES]...
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST (1 << 20)
#define BUFFERS 4
#define PIECES 31
#define MOST_SIZES 16

static int rank, size;
static char *sent[BUFFERS], *received[BUFFERS];

/* A communicator of all ranks, and a ring of them */
struct system {
	MPI_Comm comm, ring;
};

enum { OURS, OTHER, AGAIN, NR_SYSTEMS };
static struct system systems[NR_SYSTEMS];

enum {
	BARRIER, BCAST, REDUCE, ALLREDUCE, ALLGATHER, ALLTOALL, GATHER, SCATTER, COLUMNS,
	NEIGHBORS, ALLTOALLV, GATHERV, SCATTERV, REDUCE_SCATTER, SCAN, IBARRIER, IBCAST,
	IALLREDUCE, IALLGATHER, IALLTOALL, NR
};
static const char *const names[] = {
	"barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall", "gather", "scatter",
	"columns", "neighbors", "alltoallv", "gatherv", "scatterv", "reduce_scatter", "scan",
	"ibarrier", "ibcast", "iallreduce", "iallgather", "ialltoall",
};

/* An alltoallw in which both sides are columns of a matrix of doubles */
static void exchange_columns(void *s, void *r, int n, MPI_Comm comm)
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
	MPI_Alltoallw(s, counts, displs, types, r, counts, displs, types, comm);
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
		exchange_columns(s, r, n, comm);
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

static double piece(int what, int n, int times, const struct system *on)
{
	double begin, mine;
	int i;

	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	for (i = 0; i < times; i++) {
		if (what != BARRIER && what != IBARRIER)
			memset(sent[i % BUFFERS], i & 1, n);
		operate(what, sent[i % BUFFERS], received[i % BUFFERS], n, on);
	}
	mine = MPI_Wtime() - begin;
	MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return 1e6 * mine / times / size;
}

/* The best of many short pieces, in which other processes have little chance to disturb */
static void measure(int what, int n, double best[NR_SYSTEMS])
{
	const int times = n <= 1 << 10 ? 100 : n <= 8 << 10 ? 40 : n <= 64 << 10 ? 12 : 4;
	double now;
	int i, k;

	for (k = 0; k < NR_SYSTEMS; k++)
		best[k] = piece(what, n, times, &systems[k]);
	for (i = 1; i < PIECES; i++) {
		for (k = 0; k < NR_SYSTEMS; k++) {
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
	for (k = 0; k < NR_SYSTEMS; k++) {
		MPI_Info_create(&info);
		if (k == OTHER)
			MPI_Info_set(info, "ompi_comm_coll_preference", "^pvas");
		MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &systems[k].comm);
		MPI_Comm_dup_with_info(ring, info, &systems[k].ring);
		MPI_Info_free(&info);
	}
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

int main(int argc, char **argv)
{
	int sizes[MOST_SIZES], nr_sizes, what, i;
	double us[NR_SYSTEMS];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	make_systems();
	nr_sizes = choose_sizes(argc, argv, sizes);
	for (i = 0; i < BUFFERS; i++) {
		/* A rank has two neighbors, even if it is alone. */
		sent[i] = calloc(size + 1, LONGEST);
		received[i] = calloc(size + 1, LONGEST);
		memset(sent[i], 1, (size_t)(size + 1) * LONGEST);
		memset(received[i], 1, (size_t)(size + 1) * LONGEST);
	}
	for (what = 0; what < NR; what++) {
		for (i = 0; i < nr_sizes && wanted(names[what], argc, argv); i++) {
			if ((what == BARRIER || what == IBARRIER) && i)
				break;
			measure(what, sizes[i], us);
			if (rank == 0)
				printf("%s %d %.3f %.3f %.3f\n", names[what], sizes[i], us[OURS],
				       us[OTHER], us[AGAIN]);
			fflush(stdout);
		}
	}
	MPI_Finalize();
	return 0;
}
