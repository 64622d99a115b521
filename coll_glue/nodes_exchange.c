// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Over several nodes: alltoallv, alltoallw, and alltoall of long blocks. No rank knows others'
 * lengths, and long blocks gain nothing by going together. So each rank copies the blocks of its
 * node's ranks out of their buffers, and those between nodes go from rank to rank; as many as a
 * window has are in progress, also while the former are copied.
 */
#include "nodes.h"
#include "post.h"

#include <limits.h>
#include <stdlib.h>

#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/pml/pml.h"

#define BYTE (&ompi_mpi_byte.dt)

/* Steps in progress, each with a message to one rank and one from another */
#define STEPS 32

/**
 * struct direct - an exchange in progress
 * @from, @to, @kind:	the blocks of all ranks
 * @copy:	MPI_IN_PLACE: what other nodes' ranks get, by rank; likewise @at, where that begins
 */
struct direct {
	struct mca_coll_pvas_nodes *m;
	struct mca_coll_pvas_buffers from;
	struct mca_coll_pvas_buffers to;
	enum mca_coll_pvas_kind kind;
	int tag;
	char *copy;
	size_t *at;
	ompi_request_t *sent[STEPS];
	ompi_request_t *received[STEPS];
};

static size_t piece_bytes(const struct mca_coll_pvas_piece *piece)
{
	return mca_coll_pvas_bytes(piece->count, piece->type);
}

static bool is_near(const struct direct *x, int rank)
{
	return x->m->node_of[rank] == x->m->me;
}

/* ---- MPI_IN_PLACE ---- */

/* Blocks for other nodes are received where they lie. */
static int copy_far_blocks(struct direct *x)
{
	const int size = ompi_comm_size(x->m->comm);
	struct mca_coll_pvas_piece piece;
	size_t bytes = 0;
	int i, rc = OMPI_SUCCESS;

	x->at = malloc((size + 1) * sizeof(*x->at));
	if (!x->at)
		return OMPI_ERR_OUT_OF_RESOURCE;
	for (i = 0; i < size; i++) {
		x->at[i] = bytes;
		piece = mca_coll_pvas_piece(&x->to, x->kind, i);
		bytes += is_near(x, i) ? 0 : piece_bytes(&piece);
	}
	x->at[size] = bytes;
	x->copy = malloc(bytes + 1);
	if (!x->copy)
		return OMPI_ERR_OUT_OF_RESOURCE;
	for (i = 0; i < size && rc == OMPI_SUCCESS; i++) {
		piece = mca_coll_pvas_piece(&x->to, x->kind, i);
		if (x->at[i + 1] > x->at[i])
			rc = mca_coll_pvas_copy(x->copy + x->at[i], x->at[i + 1] - x->at[i], BYTE,
						piece.at, piece.count, piece.type);
	}
	return rc;
}

/* ---- between nodes ---- */

static int send_to(struct direct *x, int rank, ompi_request_t **request)
{
	struct mca_coll_pvas_piece piece;

	if (x->copy)
		piece = (struct mca_coll_pvas_piece) {
			.at = x->copy + x->at[rank], .count = x->at[rank + 1] - x->at[rank],
			.type = BYTE,
		};
	else
		piece = mca_coll_pvas_piece(&x->from, x->kind, rank);
	if (!piece_bytes(&piece))
		return OMPI_SUCCESS;
	return MCA_PML_CALL(isend(piece.at, piece.count, (struct ompi_datatype_t *)piece.type, rank,
				  x->tag, MCA_PML_BASE_SEND_STANDARD, x->m->comm, request));
}

static int receive_from(struct direct *x, int rank, ompi_request_t **request)
{
	const struct mca_coll_pvas_piece piece = mca_coll_pvas_piece(&x->to, x->kind, rank);

	if (!piece_bytes(&piece))
		return OMPI_SUCCESS;
	return MCA_PML_CALL(irecv(piece.at, piece.count, (struct ompi_datatype_t *)piece.type, rank,
				  x->tag, x->m->comm, request));
}

static int wait_for(ompi_request_t **request)
{
	int rc = OMPI_SUCCESS;

	if (*request)
		rc = ompi_request_wait(request, MPI_STATUS_IGNORE);
	*request = NULL;
	return rc;
}

static int wait_step(struct direct *x, int step)
{
	int rc = wait_for(&x->received[step % STEPS]);

	mca_coll_pvas_and_then(&rc, wait_for(&x->sent[step % STEPS]));
	return rc;
}

/* No two ranks begin with one receiver. */
static int start_step(struct direct *x, int step)
{
	const int rank = ompi_comm_rank(x->m->comm), size = ompi_comm_size(x->m->comm);
	const int to = (rank + step) % size, from = (rank + size - step) % size;
	int rc = OMPI_SUCCESS;

	if (step >= size)
		return OMPI_SUCCESS;
	if (!is_near(x, from))
		rc = receive_from(x, from, &x->received[step % STEPS]);
	if (!is_near(x, to))
		mca_coll_pvas_and_then(&rc, send_to(x, to, &x->sent[step % STEPS]));
	return rc;
}

/* ---- inside the node ---- */

/* The blocks of a node's ranks, as numbers and displacements; @types: of alltoallw */
struct in_node {
	int *counts;
	int *displs;
	struct ompi_datatype_t **types;
};

static int block_count(const struct mca_coll_pvas_buffers *b, int rank)
{
	return b->counts ? b->counts[rank] : (int)b->count;
}

static int block_displ(const struct mca_coll_pvas_buffers *b, int rank)
{
	return b->displs ? ((const int *)b->displs)[rank] : rank * (int)b->count;
}

static bool choose_blocks(const struct direct *x, const struct mca_coll_pvas_buffers *b,
			  struct in_node *near)
{
	const int nr = mca_coll_pvas_nodes_ranks(x->m, x->m->me);
	const int *ranks = &x->m->ranks[x->m->first[x->m->me]];
	int i;

	near->types = malloc(nr * (sizeof(*near->types) + 2 * sizeof(*near->counts)));
	if (!near->types)
		return false;
	near->counts = (int *)(near->types + nr);
	near->displs = near->counts + nr;
	for (i = 0; i < nr; i++) {
		near->counts[i] = block_count(b, ranks[i]);
		near->displs[i] = block_displ(b, ranks[i]);
		if (x->kind == MCA_COLL_PVAS_BUFFERS_W)
			near->types[i] =
				((struct ompi_datatype_t *const *)b->type)[ranks[i]];
	}
	return true;
}

static int exchange_near(struct direct *x, struct in_node *from, struct in_node *to)
{
	const void *sbuf = x->from.buf;
	struct ompi_datatype_t *stype = (struct ompi_datatype_t *)x->from.type;
	struct ompi_datatype_t *rtype = (struct ompi_datatype_t *)x->to.type;

	if (x->kind == MCA_COLL_PVAS_BUFFERS_W)
		return mca_coll_pvas_do(x->m->node, alltoallw, sbuf, from->counts, from->displs,
					from->types, x->to.buf, to->counts, to->displs, to->types);
	return mca_coll_pvas_do(x->m->node, alltoallv, sbuf, from->counts, from->displs, stype,
				x->to.buf, to->counts, to->displs, rtype);
}

/* A rank that is alone: Open MPI 4.1's coll/self takes an alltoallw's displacements for extents. */
static int keep_own(const struct direct *x)
{
	const int rank = ompi_comm_rank(x->m->comm);
	const struct mca_coll_pvas_piece to = mca_coll_pvas_piece(&x->to, x->kind, rank);
	struct mca_coll_pvas_piece from;

	if (x->from.buf == MPI_IN_PLACE)
		return OMPI_SUCCESS;
	from = mca_coll_pvas_piece(&x->from, x->kind, rank);
	return mca_coll_pvas_copy(to.at, to.count, to.type, from.at, from.count, from.type);
}

static int exchange_in_node(struct direct *x)
{
	const bool in_place = x->from.buf == MPI_IN_PLACE;
	struct in_node from = { 0 }, to = { 0 };
	int rc = OMPI_ERR_OUT_OF_RESOURCE;

	if (ompi_comm_size(x->m->node) == 1)
		return keep_own(x);
	if (choose_blocks(x, &x->to, &to) && (in_place || choose_blocks(x, &x->from, &from)))
		rc = exchange_near(x, &from, &to);
	free(from.types);
	free(to.types);
	return rc;
}

/* ---- the operations ---- */

static int exchange(struct direct *x)
{
	const int size = ompi_comm_size(x->m->comm);
	int i, rc = OMPI_SUCCESS;

	if (x->from.buf == MPI_IN_PLACE)
		rc = copy_far_blocks(x);
	if (rc == OMPI_SUCCESS) {
		for (i = 1; i < STEPS; i++)
			mca_coll_pvas_and_then(&rc, start_step(x, i));
		mca_coll_pvas_and_then(&rc, exchange_in_node(x));
		for (i = 1; i < size; i++) {
			mca_coll_pvas_and_then(&rc, wait_step(x, i));
			mca_coll_pvas_and_then(&rc, start_step(x, i + STEPS - 1));
		}
	}
	free(x->copy);
	free(x->at);
	return rc;
}

/* An alltoall of blocks that are at most INT_MAX bytes in all */
int mca_coll_pvas_nodes_exchange(struct mca_coll_pvas_nodes *m, const void *sbuf, int scount,
				 struct ompi_datatype_t *stype, void *rbuf, int rcount,
				 struct ompi_datatype_t *rtype)
{
	struct direct x = {
		.m = m, .kind = MCA_COLL_PVAS_BUFFERS, .tag = MCA_COLL_BASE_TAG_ALLTOALL,
		.from = mca_coll_pvas_equal_blocks(sbuf, scount, stype),
		.to = mca_coll_pvas_equal_blocks(rbuf, rcount, rtype),
	};

	return exchange(&x);
}

int mca_coll_pvas_nodes_alltoallv(const void *sbuf, const int *scounts, const int *sdispls,
				  struct ompi_datatype_t *stype, void *rbuf, const int *rcounts,
				  const int *rdispls, struct ompi_datatype_t *rtype,
				  struct ompi_communicator_t *comm,
				  mca_coll_base_module_t *module)
{
	mca_coll_pvas_nodes_t *m = (mca_coll_pvas_nodes_t *)module;
	struct direct x = {
		.m = m, .kind = MCA_COLL_PVAS_BUFFERS, .tag = MCA_COLL_BASE_TAG_ALLTOALLV,
		.from = mca_coll_pvas_runs(sbuf, scounts, sdispls, stype),
		.to = mca_coll_pvas_runs(rbuf, rcounts, rdispls, rtype),
	};

	if (!mca_coll_pvas_nodes_begin_if(m, alltoallv, mca_coll_pvas_nodes_prefers()))
		return m->previous.alltoallv(sbuf, scounts, sdispls, stype, rbuf, rcounts, rdispls,
					     rtype, comm, m->previous.alltoallv_module);
	return exchange(&x);
}

int mca_coll_pvas_nodes_alltoallw(const void *sbuf, const int *scounts, const int *sdispls,
				  struct ompi_datatype_t *const *stypes, void *rbuf,
				  const int *rcounts, const int *rdispls,
				  struct ompi_datatype_t *const *rtypes,
				  struct ompi_communicator_t *comm,
				  mca_coll_base_module_t *module)
{
	mca_coll_pvas_nodes_t *m = (mca_coll_pvas_nodes_t *)module;
	struct direct x = {
		.m = m, .kind = MCA_COLL_PVAS_BUFFERS_W, .tag = MCA_COLL_BASE_TAG_ALLTOALLW,
		.from = mca_coll_pvas_runs(sbuf, scounts, sdispls, stypes),
		.to = mca_coll_pvas_runs(rbuf, rcounts, rdispls, rtypes),
	};

	if (!mca_coll_pvas_nodes_begin_if(m, alltoallw, mca_coll_pvas_nodes_prefers()))
		return m->previous.alltoallw(sbuf, scounts, sdispls, stypes, rbuf, rcounts, rdispls,
					     rtypes, comm, m->previous.alltoallw_module);
	return exchange(&x);
}
