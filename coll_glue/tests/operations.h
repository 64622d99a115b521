/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Each operation by its name, on @n doubles for or from each rank, with rank @root. */
#ifndef PVAS_TEST_COLL_OPERATIONS_H
#define PVAS_TEST_COLL_OPERATIONS_H

#include "common.h"

static const char *const operations[] = {
	"barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather",
	"allgatherv", "alltoall", "alltoallv", "alltoallw", "reduce", "allreduce",
	"reduce_scatter", "reduce_scatter_block", "scan", "exscan",
};
#define NR_OPERATIONS ((int)(sizeof(operations) / sizeof(operations[0])))
#define MOST_RANKS 64

static inline int operate_v(const char *what, double *s, double *r, int n, int root, MPI_Comm comm)
{
	int counts[MOST_RANKS], displs[MOST_RANKS], bytes[MOST_RANKS], i;
	MPI_Datatype types[MOST_RANKS];

	for (i = 0; i < size; i++) {
		counts[i] = n;
		displs[i] = i * n;
		bytes[i] = i * n * sizeof(*s);
		types[i] = MPI_DOUBLE;
	}
	if (!strcmp(what, "gatherv"))
		return MPI_Gatherv(s, n, MPI_DOUBLE, r, counts, displs, MPI_DOUBLE, root, comm);
	if (!strcmp(what, "scatterv"))
		return MPI_Scatterv(s, counts, displs, MPI_DOUBLE, r, n, MPI_DOUBLE, root, comm);
	if (!strcmp(what, "allgatherv"))
		return MPI_Allgatherv(s, n, MPI_DOUBLE, r, counts, displs, MPI_DOUBLE, comm);
	if (!strcmp(what, "alltoallv"))
		return MPI_Alltoallv(s, counts, displs, MPI_DOUBLE, r, counts, displs, MPI_DOUBLE,
				     comm);
	if (!strcmp(what, "alltoallw"))
		return MPI_Alltoallw(s, counts, bytes, types, r, counts, bytes, types, comm);
	return MPI_Reduce_scatter(s, r, counts, MPI_DOUBLE, MPI_SUM, comm);
}

/* @s and @r have room for @n numbers of each rank. */
static inline int operate(const char *what, double *s, double *r, int n, int root, MPI_Comm comm)
{
	if (!strcmp(what, "barrier"))
		return MPI_Barrier(comm);
	if (!strcmp(what, "bcast"))
		return MPI_Bcast(rank == root ? s : r, n, MPI_DOUBLE, root, comm);
	if (!strcmp(what, "gather"))
		return MPI_Gather(s, n, MPI_DOUBLE, r, n, MPI_DOUBLE, root, comm);
	if (!strcmp(what, "scatter"))
		return MPI_Scatter(s, n, MPI_DOUBLE, r, n, MPI_DOUBLE, root, comm);
	if (!strcmp(what, "allgather"))
		return MPI_Allgather(s, n, MPI_DOUBLE, r, n, MPI_DOUBLE, comm);
	if (!strcmp(what, "alltoall"))
		return MPI_Alltoall(s, n, MPI_DOUBLE, r, n, MPI_DOUBLE, comm);
	if (!strcmp(what, "reduce"))
		return MPI_Reduce(s, r, n, MPI_DOUBLE, MPI_SUM, root, comm);
	if (!strcmp(what, "allreduce"))
		return MPI_Allreduce(s, r, n, MPI_DOUBLE, MPI_SUM, comm);
	if (!strcmp(what, "reduce_scatter_block"))
		return MPI_Reduce_scatter_block(s, r, n, MPI_DOUBLE, MPI_SUM, comm);
	if (!strcmp(what, "scan"))
		return MPI_Scan(s, r, n, MPI_DOUBLE, MPI_SUM, comm);
	if (!strcmp(what, "exscan"))
		return MPI_Exscan(s, r, n, MPI_DOUBLE, MPI_SUM, comm);
	return operate_v(what, s, r, n, root, comm);
}

#endif /* PVAS_TEST_COLL_OPERATIONS_H */
