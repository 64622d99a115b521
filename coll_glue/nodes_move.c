// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Over several nodes: barrier, bcast, allgather. Ranks can describe the same data by different
 * datatypes and counts, so what goes in segments are bytes: data with gaps are packed first.
 */
#include "nodes.h"
#include "post.h"

#include <limits.h>
#include <stdlib.h>

#define component mca_coll_pvas_component

#define BYTE (&ompi_mpi_byte.dt)

/* The leader's part of a reduction tells it that all of its node are there. */
int mca_coll_pvas_nodes_barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	mca_coll_pvas_nodes_t *m = (mca_coll_pvas_nodes_t *)module;
	char mine = 0, all = 0;
	int rc;

	if (!mca_coll_pvas_nodes_begin(m, barrier))
		return m->previous.barrier(comm, m->previous.barrier_module);
	rc = mca_coll_pvas_do(m->node, reduce, &mine, &all, 1, BYTE, &ompi_mpi_op_bor.op, 0);
	if (rc == OMPI_SUCCESS && m->leaders)
		rc = m->leaders->c_coll->coll_barrier(m->leaders,
						      m->leaders->c_coll->coll_barrier_module);
	return rc ? rc : mca_coll_pvas_do(m->node, bcast, &all, 1, BYTE, 0);
}

/* ---- bcast ---- */

/* One segment: each part when the one before is complete */
static int bcast_short(struct mca_coll_pvas_nodes *m, void *buf, int count,
		       struct ompi_datatype_t *type, int root)
{
	const int node = m->node_of[root];
	const int in_node = mca_coll_pvas_nodes_rank_in_node(m, root);
	int rc = OMPI_SUCCESS;

	if (m->me == node && in_node)
		rc = mca_coll_pvas_do(m->node, bcast, buf, count, type, in_node);
	if (m->leaders)
		mca_coll_pvas_and_then(&rc, mca_coll_pvas_do(m->leaders, bcast, buf, count, type,
							     node));
	if (m->me != node || !in_node)
		mca_coll_pvas_and_then(&rc, mca_coll_pvas_do(m->node, bcast, buf, count, type, 0));
	return rc;
}

/* A broadcast in progress: bytes from @buf, by the rank @in_node of @node */
struct bcast {
	struct mca_coll_pvas_nodes *m;
	struct mca_coll_pvas_segments segments;
	struct mca_coll_pvas_window window;
	char *buf;
	int node;
	int in_node;
};

static int start_segment(struct bcast *b, int i)
{
	if (i >= b->segments.nr)
		return OMPI_SUCCESS;
	return mca_coll_pvas_start(b->m->leaders, mca_coll_pvas_request_of(&b->window, i), ibcast,
				   mca_coll_pvas_segment(&b->segments, b->buf, i),
				   mca_coll_pvas_segment_count(&b->segments, i), BYTE, b->node);
}

static int bcast_in_node(struct bcast *b, int i, int root)
{
	return mca_coll_pvas_do(b->m->node, bcast, mca_coll_pvas_segment(&b->segments, b->buf, i),
				mca_coll_pvas_segment_count(&b->segments, i), BYTE, root);
}

/* In the root's node: segments leave it when its leader has them. */
static int send_segments(struct bcast *b)
{
	const bool leads = b->m->leaders;
	int i, rc = OMPI_SUCCESS;

	for (i = 0; i < b->segments.nr; i++) {
		if (leads)
			mca_coll_pvas_and_then(&rc, mca_coll_pvas_wait_request(&b->window, i));
		if (leads && !b->in_node)
			mca_coll_pvas_and_then(&rc, start_segment(b, i));
		mca_coll_pvas_and_then(&rc, bcast_in_node(b, i, b->in_node));
		if (leads && b->in_node)
			mca_coll_pvas_and_then(&rc, start_segment(b, i));
	}
	return rc;
}

/* In the others: while a segment is copied here, the leader is receiving the next ones. */
static int receive_segments(struct bcast *b)
{
	const bool leads = b->m->leaders;
	int i, rc = OMPI_SUCCESS;

	for (i = 0; leads && i < MCA_COLL_PVAS_WINDOW; i++)
		mca_coll_pvas_and_then(&rc, start_segment(b, i));
	for (i = 0; i < b->segments.nr; i++) {
		if (leads)
			mca_coll_pvas_and_then(&rc, mca_coll_pvas_wait_request(&b->window, i));
		if (leads)
			mca_coll_pvas_and_then(&rc, start_segment(b, i + MCA_COLL_PVAS_WINDOW));
		mca_coll_pvas_and_then(&rc, bcast_in_node(b, i, 0));
	}
	return rc;
}

static int bcast_bytes(struct mca_coll_pvas_nodes *m, char *buf, size_t bytes, int root)
{
	struct bcast b = {
		.m = m, .segments = mca_coll_pvas_cut(bytes, BYTE), .buf = buf,
		.node = m->node_of[root], .in_node = mca_coll_pvas_nodes_rank_in_node(m, root),
	};
	const int rc = m->me == b.node ? send_segments(&b) : receive_segments(&b);

	return mca_coll_pvas_wait_window(&b.window, rc);
}

/* Data with gaps */
static int bcast_packed(struct mca_coll_pvas_nodes *m, void *buf, int count,
			struct ompi_datatype_t *type, int root)
{
	const size_t bytes = mca_coll_pvas_bytes(count, type);
	const bool sends = ompi_comm_rank(m->comm) == root;
	char *packed = malloc(bytes);
	int rc = packed ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;

	if (rc == OMPI_SUCCESS && sends)
		rc = mca_coll_pvas_copy(packed, bytes, BYTE, buf, count, type);
	if (rc == OMPI_SUCCESS)
		rc = bcast_bytes(m, packed, bytes, root);
	if (rc == OMPI_SUCCESS && !sends)
		rc = mca_coll_pvas_copy(buf, count, type, packed, bytes, BYTE);
	free(packed);
	return rc;
}

int mca_coll_pvas_nodes_bcast(void *buf, int count, struct ompi_datatype_t *type, int root,
			      struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	mca_coll_pvas_nodes_t *m = (mca_coll_pvas_nodes_t *)module;
	const size_t bytes = mca_coll_pvas_bytes(count, type);
	const bool faster = mca_coll_pvas_nodes_prefers(bytes <= MCA_COLL_PVAS_NODES_MOST_BCAST);

	if (!mca_coll_pvas_nodes_begin_if(m, bcast, faster))
		return m->previous.bcast(buf, count, type, root, comm, m->previous.bcast_module);
	if (!bytes)
		return OMPI_SUCCESS;
	if (bytes <= component.segment)
		return bcast_short(m, buf, count, type, root);
	if (!mca_coll_pvas_is_plain(type))
		return bcast_packed(m, buf, count, type, root);
	return bcast_bytes(m, buf, bytes, root);
}

/* ---- allgather ---- */

/**
 * struct allgather - an allgather in progress
 * @all:	the blocks of all ranks, sorted by node
 * @bytes:	of a block
 */
struct allgather {
	struct mca_coll_pvas_nodes *m;
	struct mca_coll_pvas_window window;
	char *all;
	size_t bytes;
};

/* Where in @all segments are; the next one begins at @at, in the blocks of @node. */
struct cursor {
	int node;
	size_t at;
};

static char *blocks_of(const struct allgather *a, int node)
{
	return a->all + a->m->first[node] * a->bytes;
}

/* The next segment: its length, 0 behind the last one. Segments don't cross from node to node. */
static size_t next_segment(const struct allgather *a, struct cursor *c)
{
	const size_t left = a->m->first[c->node + 1] * a->bytes - c->at;
	const size_t n = left < component.segment ? left : component.segment;

	c->at += n;
	return n;
}

static bool at_end(const struct allgather *a, struct cursor *c)
{
	while (c->node < a->m->nr && c->at == a->m->first[c->node + 1] * a->bytes)
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
	int *counts = mca_coll_pvas_nodes_counts(m, a->bytes), rc;

	if (!counts)
		return OMPI_ERR_OUT_OF_RESOURCE;
	rc = mca_coll_pvas_do(m->leaders, allgatherv, MPI_IN_PLACE, 0, BYTE, a->all, counts,
			      counts + m->nr, BYTE);
	free(counts);
	return rc;
}

/* Once each leader has the blocks of its node */
static int spread(struct allgather *a)
{
	struct mca_coll_pvas_nodes *m = a->m;
	const size_t all = ompi_comm_size(m->comm) * a->bytes;
	int rc = OMPI_SUCCESS;

	if (all > component.segment)
		return spread_segments(a);
	if (m->leaders)
		rc = allgather_leaders(a);
	mca_coll_pvas_and_then(&rc, mca_coll_pvas_do(m->node, bcast, a->all, all, BYTE, 0));
	return rc;
}

static int gather_in_node(const struct allgather *a, const void *sbuf, int scount,
			  struct ompi_datatype_t *stype)
{
	return mca_coll_pvas_do(a->m->node, gather, sbuf, scount, stype, blocks_of(a, a->m->me),
				a->bytes, BYTE, 0);
}

int mca_coll_pvas_nodes_allgather(const void *sbuf, int scount, struct ompi_datatype_t *stype,
				  void *rbuf, int rcount, struct ompi_datatype_t *rtype,
				  struct ompi_communicator_t *comm,
				  mca_coll_base_module_t *module)
{
	mca_coll_pvas_nodes_t *m = (mca_coll_pvas_nodes_t *)module;
	struct allgather a = { .m = m, .bytes = mca_coll_pvas_bytes(rcount, rtype) };
	const int size = ompi_comm_size(comm);
	const bool possible = mca_coll_pvas_nodes_prefers(false) &&
			      a.bytes <= (size_t)INT_MAX / size;
	bool sorted;
	int rc;

	if (!mca_coll_pvas_nodes_begin_if(m, allgather, possible))
		return m->previous.allgather(sbuf, scount, stype, rbuf, rcount, rtype, comm,
					     m->previous.allgather_module);
	if (!a.bytes)
		return OMPI_SUCCESS;
	sorted = mca_coll_pvas_is_plain(rtype) && m->sorted;
	a.all = sorted ? rbuf : malloc(size * a.bytes);
	if (!a.all)
		return OMPI_ERR_OUT_OF_RESOURCE;
	/* Where it is in place, a leader's block is where it belongs. */
	if (sbuf == MPI_IN_PLACE && (!sorted || !m->leaders)) {
		sbuf = mca_coll_pvas_block_at(rbuf, rcount, rtype, ompi_comm_rank(comm));
		scount = rcount;
		stype = rtype;
	}
	rc = gather_in_node(&a, sbuf, scount, stype);
	mca_coll_pvas_and_then(&rc, spread(&a));
	if (rc == OMPI_SUCCESS && !sorted)
		rc = mca_coll_pvas_nodes_unsort(m, rbuf, rcount, rtype, a.all, a.bytes);
	if (!sorted)
		free(a.all);
	return rc;
}
