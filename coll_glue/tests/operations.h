/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Each operation by its name, on @n doubles for or from each rank, with rank @root. That of a
 * non-blocking one begins with an "i", that of a persistent one with a "p"; they are complete
 * on return.
 */
#ifndef PVAS_TEST_COLL_OPERATIONS_H
#define PVAS_TEST_COLL_OPERATIONS_H

#include "common.h"


static const char *const operations[] = {
	"barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather",
	"allgatherv", "alltoall", "alltoallv", "alltoallw", "reduce", "allreduce",
	"reduce_scatter", "reduce_scatter_block", "scan", "exscan",
	"neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall", "neighbor_alltoallv",
	"neighbor_alltoallw",
};
#define NR_OPERATIONS ((int)(sizeof(operations) / sizeof(operations[0])))
#define MOST_RANKS 64

/* A topology of all ranks in use, for neighborhood operations; each thread has its own. */
static __thread MPI_Comm ring;

static inline void make_ring(MPI_Comm comm)
{
	const int periodic = 1;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	MPI_Cart_create(comm, 1, &size, &periodic, 0, &ring);
}

static __thread int persistent;

/* The type of numbers, at most as long as a double */
static MPI_Datatype elements = MPI_DOUBLE;

/* Call MPI_Name() or, with @request, MPI_Iname() or MPI_Name_init(). */
#define CALL(Name, name, ...)							\
	if (!strcmp(what, #name))						\
		return !request ? MPI_##Name(__VA_ARGS__) :			\
		       !persistent ? MPI_I##name(__VA_ARGS__, request) :	\
		       PERSISTENT(Name)(__VA_ARGS__, MPI_INFO_NULL, request)

static inline int call_blocks(const char *what, double *s, double *r, int n, int root,
			      MPI_Comm comm, MPI_Request *request)
{
	static __thread int counts[MOST_RANKS], displs[MOST_RANKS], bytes[MOST_RANKS];
	static __thread MPI_Aint far[MOST_RANKS];
	static __thread MPI_Datatype types[MOST_RANKS];
	const MPI_Datatype t = elements;
	int i;

	for (i = 0; i < MOST_RANKS; i++) {
		counts[i] = n;
		displs[i] = i * n;
		far[i] = bytes[i] = i * n * sizeof(*s);
		types[i] = t;
	}
	CALL(Gatherv, gatherv, s, n, t, r, counts, displs, t, root, comm);
	CALL(Scatterv, scatterv, s, counts, displs, t, r, n, t, root, comm);
	CALL(Allgatherv, allgatherv, s, n, t, r, counts, displs, t, comm);
	CALL(Alltoallv, alltoallv, s, counts, displs, t, r, counts, displs, t, comm);
	CALL(Alltoallw, alltoallw, s, counts, bytes, types, r, counts, bytes, types, comm);
	CALL(Reduce_scatter, reduce_scatter, s, r, counts, t, MPI_SUM, comm);
	CALL(Neighbor_allgather, neighbor_allgather, s, n, t, r, n, t, ring);
	CALL(Neighbor_allgatherv, neighbor_allgatherv, s, n, t, r, counts, displs, t, ring);
	CALL(Neighbor_alltoall, neighbor_alltoall, s, n, t, r, n, t, ring);
	CALL(Neighbor_alltoallv, neighbor_alltoallv, s, counts, displs, t, r, counts, displs, t,
	     ring);
	CALL(Neighbor_alltoallw, neighbor_alltoallw, s, counts, far, types, r, counts, far, types,
	     ring);
	return MPI_ERR_OTHER;
}

static inline int call(const char *what, double *s, double *r, int n, int root, MPI_Comm comm,
		       MPI_Request *request)
{
	const MPI_Datatype t = elements;

	CALL(Barrier, barrier, comm);
	CALL(Bcast, bcast, rank == root ? s : r, n, t, root, comm);
	CALL(Gather, gather, s, n, t, r, n, t, root, comm);
	CALL(Scatter, scatter, s, n, t, r, n, t, root, comm);
	CALL(Allgather, allgather, s, n, t, r, n, t, comm);
	CALL(Alltoall, alltoall, s, n, t, r, n, t, comm);
	CALL(Reduce, reduce, s, r, n, t, MPI_SUM, root, comm);
	CALL(Allreduce, allreduce, s, r, n, t, MPI_SUM, comm);
	CALL(Reduce_scatter_block, reduce_scatter_block, s, r, n, t, MPI_SUM, comm);
	CALL(Scan, scan, s, r, n, t, MPI_SUM, comm);
	CALL(Exscan, exscan, s, r, n, t, MPI_SUM, comm);
	return call_blocks(what, s, r, n, root, comm, request);
}

/* @s and @r have room for @n numbers of each rank, and of two. */
static inline int operate(const char *what, double *s, double *r, int n, int root, MPI_Comm comm)
{
	MPI_Request request;
	int rc;

	if (what[0] != 'i' && what[0] != 'p')
		return call(what, s, r, n, root, comm, NULL);
	persistent = what[0] == 'p';
	rc = call(what + 1, s, r, n, root, comm, &request);
	if (!rc && persistent)
		rc = MPI_Start(&request);
	if (!rc)
		rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (!rc && persistent)
		rc = MPI_Request_free(&request);
	return rc;
}

#endif /* PVAS_TEST_COLL_OPERATIONS_H */
