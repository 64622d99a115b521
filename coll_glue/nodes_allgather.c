// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Over several nodes: allgather, allgatherv. All ranks know all lengths, so the blocks of a node go
 * together, in segments of bytes.
 */
#include "nodes.h"
#include "post.h"

#include <limits.h>
#include <stdlib.h>

#define component mca_coll_pvas_component

#define BYTE (&ompi_mpi_byte.dt)

/**
 * struct allgather - an allgather or allgatherv in progress
 * @rbuf, @count, @counts, @displs, @type:	the result, as the caller describes it; @counts:
 *		NULL for an allgather
 * @all:	the blocks of all ranks, sorted by node
 * @begins:	by node: where its blocks begin in @all; one more than there are nodes
 */
struct allgather {
	struct mca_coll_pvas_nodes *m;
	struct mca_coll_pvas_window window;
	char *rbuf;
	size_t count;
	const int *counts;
	const int *displs;
	struct ompi_datatype_t *type;
	char *all;
	size_t *begins;
};

static size_t count_of(const struct allgather *a, int rank)
{
	return a->counts ? (size_t)a->counts[rank] : a->count;
}

static size_t bytes_of(const struct allgather *a, int rank)
{
	return mca_coll_pvas_bytes(count_of(a, rank), a->type);
}

static char *block_of(const struct allgather *a, int rank)
{
	if (!a->counts)
		return mca_coll_pvas_block_at(a->rbuf, a->count, a->type, rank);
	return a->rbuf + a->displs[rank] * mca_coll_pvas_extent(a->type);
}

static size_t add_up(const struct allgather *a)
{
	const int size = ompi_comm_size(a->m->comm);
	size_t bytes = 0;
	int i;

	for (i = 0; i < size; i++)
		bytes += bytes_of(a, i);
	return bytes;
}

/* Are the blocks in the caller's buffer as they are to be sent? */
static bool is_sorted(const struct allgather *a)
{
	const int size = ompi_comm_size(a->m->comm);
	bool sorted = a->m->sorted && mca_coll_pvas_is_plain(a->type);
	int i;

	for (i = 0; a->counts && sorted && i < size - 1; i++)
		sorted = a->displs[i] + a->counts[i] == a->displs[i + 1];
	return sorted;
}

static bool find_begins(struct allgather *a)
{
	const struct mca_coll_pvas_nodes *m = a->m;
	int i, k;

	a->begins = calloc(m->nr + 1, sizeof(*a->begins));
	for (k = 0; a->begins && k < m->nr; k++) {
		a->begins[k + 1] = a->begins[k];
		for (i = m->first[k]; i < m->first[k + 1]; i++)
			a->begins[k + 1] += bytes_of(a, m->ranks[i]);
	}
	return a->begins;
}

/* Where in @all segments are; the next one begins at @at, in the blocks of @node. */
struct cursor {
	int node;
	size_t at;
};

/* The next segment: its length, 0 behind the last one. Segments don't cross from node to node. */
static size_t next_segment(const struct allgather *a, struct cursor *c)
{
	const size_t left = a->begins[c->node + 1] - c->at;
	const size_t n = left < component.segment ? left : component.segment;

	c->at += n;
	return n;
}

static bool at_end(const struct allgather *a, struct cursor *c)
{
	while (c->node < a->m->nr && c->at == a->begins[c->node + 1])
		c->node++;
	return c->node == a->m->nr;
}

static int start_next(struct allgather *a, struct cursor *c, int i)
{
	char *from = a->all + c->at;

	if (at_end(a, c))
		return OMPI_SUCCESS;
	return mca_coll_pvas_start(a->m->leaders, mca_coll_pvas_request_of(&a->window, i), ibcast,
				   from, next_segment(a, c), BYTE, c->node);
}

/* Each leader broadcasts its node's blocks to the others, which copy them to theirs. */
static int spread_segments(struct allgather *a)
{
	struct mca_coll_pvas_nodes *m = a->m;
	struct cursor ahead = { 0 }, here = { 0 };
	char *from;
	int i, rc = OMPI_SUCCESS;

	for (i = 0; m->leaders && i < MCA_COLL_PVAS_WINDOW; i++)
		mca_coll_pvas_and_then(&rc, start_next(a, &ahead, i));
	for (i = 0; !at_end(a, &here); i++) {
		if (m->leaders)
			mca_coll_pvas_and_then(&rc, mca_coll_pvas_wait_request(&a->window, i));
		if (m->leaders)
			mca_coll_pvas_and_then(&rc,
					       start_next(a, &ahead, i + MCA_COLL_PVAS_WINDOW));
		from = a->all + here.at;
		mca_coll_pvas_and_then(&rc, mca_coll_pvas_do(m->node, bcast, from,
							     next_segment(a, &here), BYTE, 0));
	}
	return mca_coll_pvas_wait_window(&a->window, rc);
}

static int allgather_leaders(struct allgather *a)
{
	struct mca_coll_pvas_nodes *m = a->m;
	int *counts = malloc(2 * m->nr * sizeof(*counts)), k, rc;

	if (!counts)
		return OMPI_ERR_OUT_OF_RESOURCE;
	for (k = 0; k < m->nr; k++) {
		counts[k] = a->begins[k + 1] - a->begins[k];
		counts[m->nr + k] = a->begins[k];
	}
	rc = mca_coll_pvas_do(m->leaders, allgatherv, MPI_IN_PLACE, 0, BYTE, a->all, counts,
			      counts + m->nr, BYTE);
	free(counts);
	return rc;
}

/* Once each leader has the blocks of its node */
static int spread(struct allgather *a)
{
	struct mca_coll_pvas_nodes *m = a->m;
	const size_t all = a->begins[m->nr];
	int rc = OMPI_SUCCESS;

	if (all > component.segment)
		return spread_segments(a);
	if (m->leaders)
		rc = allgather_leaders(a);
	mca_coll_pvas_and_then(&rc, mca_coll_pvas_do(m->node, bcast, a->all, all, BYTE, 0));
	return rc;
}

/* To the leader: blocks of different lengths */
static int gatherv_in_node(const struct allgather *a, const void *sbuf, int scount,
			   struct ompi_datatype_t *stype)
{
	struct mca_coll_pvas_nodes *m = a->m;
	const int nr = mca_coll_pvas_nodes_ranks(m, m->me);
	int *counts = malloc(2 * nr * sizeof(*counts)), i, at = 0, rc;

	if (!counts)
		return OMPI_ERR_OUT_OF_RESOURCE;
	for (i = 0; i < nr; i++) {
		counts[i] = bytes_of(a, m->ranks[m->first[m->me] + i]);
		counts[nr + i] = at;
		at += counts[i];
	}
	rc = mca_coll_pvas_do(m->node, gatherv, sbuf, scount, stype, a->all + a->begins[m->me],
			      counts, counts + nr, BYTE, 0);
	free(counts);
	return rc;
}

static int gather_in_node(const struct allgather *a, const void *sbuf, int scount,
			  struct ompi_datatype_t *stype)
{
	struct mca_coll_pvas_nodes *m = a->m;

	if (a->counts)
		return gatherv_in_node(a, sbuf, scount, stype);
	return mca_coll_pvas_do(m->node, gather, sbuf, scount, stype, a->all + a->begins[m->me],
				bytes_of(a, 0), BYTE, 0);
}

static int unsort(const struct allgather *a)
{
	const int size = ompi_comm_size(a->m->comm);
	const char *from = a->all;
	int i, rank, rc = OMPI_SUCCESS;

	for (i = 0; i < size && rc == OMPI_SUCCESS; i++) {
		rank = a->m->ranks[i];
		rc = mca_coll_pvas_copy(block_of(a, rank), count_of(a, rank), a->type, from,
					bytes_of(a, rank), BYTE);
		from += bytes_of(a, rank);
	}
	return rc;
}

static int allgather(struct allgather *a, const void *sbuf, int scount,
		     struct ompi_datatype_t *stype)
{
	const int rank = ompi_comm_rank(a->m->comm);
	const bool sorted = is_sorted(a);
	int rc = OMPI_ERR_OUT_OF_RESOURCE;

	/* Where it is in place, a leader's block is where it belongs. */
	if (sbuf == MPI_IN_PLACE && (!sorted || !a->m->leaders)) {
		sbuf = block_of(a, rank);
		scount = count_of(a, rank);
		stype = a->type;
	}
	if (find_begins(a))
		a->all = sorted ? block_of(a, 0) : malloc(a->begins[a->m->nr]);
	if (a->all) {
		rc = gather_in_node(a, sbuf, scount, stype);
		mca_coll_pvas_and_then(&rc, spread(a));
		if (rc == OMPI_SUCCESS && !sorted)
			rc = unsort(a);
	}
	if (!sorted)
		free(a->all);
	free(a->begins);
	return rc;
}

int mca_coll_pvas_nodes_allgather(const void *sbuf, int scount, struct ompi_datatype_t *stype,
				  void *rbuf, int rcount, struct ompi_datatype_t *rtype,
				  struct ompi_communicator_t *comm,
				  mca_coll_base_module_t *module)
{
	mca_coll_pvas_nodes_t *m = (mca_coll_pvas_nodes_t *)module;
	struct allgather a = { .m = m, .rbuf = rbuf, .count = rcount, .type = rtype };
	const size_t bytes = mca_coll_pvas_bytes(rcount, rtype);
	const bool possible = mca_coll_pvas_nodes_prefers() &&
			      bytes <= (size_t)INT_MAX / ompi_comm_size(comm);

	if (!mca_coll_pvas_nodes_begin_if(m, allgather, possible))
		return m->previous.allgather(sbuf, scount, stype, rbuf, rcount, rtype, comm,
					     m->previous.allgather_module);
	return bytes ? allgather(&a, sbuf, scount, stype) : OMPI_SUCCESS;
}

int mca_coll_pvas_nodes_allgatherv(const void *sbuf, int scount, struct ompi_datatype_t *stype,
				   void *rbuf, const int *rcounts, const int *displs,
				   struct ompi_datatype_t *rtype,
				   struct ompi_communicator_t *comm,
				   mca_coll_base_module_t *module)
{
	mca_coll_pvas_nodes_t *m = (mca_coll_pvas_nodes_t *)module;
	struct allgather a = {
		.m = m, .rbuf = rbuf, .counts = rcounts, .displs = displs, .type = rtype,
	};
	const size_t bytes = add_up(&a);
	const bool possible = mca_coll_pvas_nodes_prefers() && bytes <= INT_MAX;

	if (!mca_coll_pvas_nodes_begin_if(m, allgatherv, possible))
		return m->previous.allgatherv(sbuf, scount, stype, rbuf, rcounts, displs, rtype,
					      comm, m->previous.allgatherv_module);
	return bytes ? allgather(&a, sbuf, scount, stype) : OMPI_SUCCESS;
}
