// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Over several nodes: barrier, bcast. Ranks can describe the same data by different
 * datatypes and counts, so what goes in segments are bytes: data with gaps are packed first.
 */
#include "nodes.h"
#include "post.h"

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

	if (!mca_coll_pvas_nodes_begin_if(m, bcast, mca_coll_pvas_nodes_prefers()))
		return m->previous.bcast(buf, count, type, root, comm, m->previous.bcast_module);
	if (!bytes)
		return OMPI_SUCCESS;
	if (bytes <= component.segment)
		return bcast_short(m, buf, count, type, root);
	if (!mca_coll_pvas_is_plain(type))
		return bcast_packed(m, buf, count, type, root);
	return bcast_bytes(m, buf, bytes, root);
}
