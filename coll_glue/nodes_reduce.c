// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Over several nodes: reduce, allreduce. Each node's contributions are combined first, in the
 * order of their ranks; so operators that don't commute are passed on. All of it depends on the
 * communicator and the length only, so results are the same in each run.
 */
#include "nodes.h"
#include "post.h"

#include <stdlib.h>

#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/pml/pml.h"

/* Not that of a reduction inside the node, which is in progress at the same time */
#define RESULT_TAG MCA_COLL_BASE_TAG_SCATTER

/**
 * struct reduction - a reduction in progress
 * @from:	our contribution
 * @to:		the result, or NULL
 * @root:	the rank that gets the result, in the communicator of @node
 * @memory:	of segments that are at the leaders; @room: distance of two, in bytes; @gap: see
 *		opal_datatype_span()
 */
struct reduction {
	struct mca_coll_pvas_nodes *m;
	struct mca_coll_pvas_segments segments;
	struct mca_coll_pvas_window window;
	struct ompi_datatype_t *type;
	struct ompi_op_t *op;
	char *from;
	char *to;
	int node;
	int root;
	char *memory;
	ptrdiff_t room;
	ptrdiff_t gap;
};

static int begin(struct reduction *r, struct mca_coll_pvas_nodes *m, const void *sbuf, void *rbuf,
		 int count)
{
	r->m = m;
	r->from = sbuf == MPI_IN_PLACE ? rbuf : (char *)sbuf;
	r->to = rbuf;
	r->segments = mca_coll_pvas_cut(count, r->type);
	return r->segments.nr;
}

/* Combine a segment of this node's contributions at its leader, in @result. */
static int reduce_in_node(struct reduction *r, int i, void *result)
{
	const struct mca_coll_pvas_segments *s = &r->segments;
	const void *from = mca_coll_pvas_segment(s, r->from, i);

	if (result == from)
		from = MPI_IN_PLACE;
	return mca_coll_pvas_do(r->m->node, reduce, from, result, mca_coll_pvas_segment_count(s, i),
				r->type, r->op, 0);
}

/* ---- allreduce ---- */

static int allreduce_leaders(struct reduction *r, int i)
{
	const struct mca_coll_pvas_segments *s = &r->segments;
	char *at = mca_coll_pvas_segment(s, r->to, i);
	const int count = mca_coll_pvas_segment_count(s, i);

	if (s->nr == 1)
		return mca_coll_pvas_do(r->m->leaders, allreduce, MPI_IN_PLACE, at, count, r->type,
					r->op);
	return mca_coll_pvas_start(r->m->leaders, mca_coll_pvas_request_of(&r->window, i),
				   iallreduce, MPI_IN_PLACE, at, count, r->type, r->op);
}

static int combine_segment(struct reduction *r, int i)
{
	char *result = r->m->leaders ? mca_coll_pvas_segment(&r->segments, r->to, i) : NULL;
	int rc = reduce_in_node(r, i, result);

	if (r->m->leaders)
		mca_coll_pvas_and_then(&rc, allreduce_leaders(r, i));
	return rc;
}

static int spread_segment(struct reduction *r, int i)
{
	int rc = OMPI_SUCCESS;

	if (r->m->leaders)
		rc = mca_coll_pvas_wait_request(&r->window, i);
	mca_coll_pvas_and_then(&rc, mca_coll_pvas_do(
		r->m->node, bcast, mca_coll_pvas_segment(&r->segments, r->to, i),
		mca_coll_pvas_segment_count(&r->segments, i), r->type, 0));
	return rc;
}

int mca_coll_pvas_nodes_allreduce(const void *sbuf, void *rbuf, int count,
				  struct ompi_datatype_t *type, struct ompi_op_t *op,
				  struct ompi_communicator_t *comm,
				  mca_coll_base_module_t *module)
{
	mca_coll_pvas_nodes_t *m = (mca_coll_pvas_nodes_t *)module;
	struct reduction r = { .type = type, .op = op };
	const bool possible = mca_coll_pvas_nodes_prefers() && ompi_op_is_commute(op);
	int i, nr, rc = OMPI_SUCCESS;

	if (!mca_coll_pvas_nodes_begin_if(m, allreduce, possible))
		return m->previous.allreduce(sbuf, rbuf, count, type, op, comm,
					     m->previous.allreduce_module);
	nr = begin(&r, m, sbuf, rbuf, count);
	/* Segments are spread while later ones are between the leaders. */
	for (i = 0; i < nr + MCA_COLL_PVAS_WINDOW; i++) {
		if (i >= MCA_COLL_PVAS_WINDOW && i - MCA_COLL_PVAS_WINDOW < nr)
			mca_coll_pvas_and_then(&rc, spread_segment(&r, i - MCA_COLL_PVAS_WINDOW));
		if (i < nr)
			mca_coll_pvas_and_then(&rc, combine_segment(&r, i));
	}
	return mca_coll_pvas_wait_window(&r.window, rc);
}

/* ---- reduce ---- */

/* Is the result in the leader's own buffer, or in memory that it must send to the root? */
static bool is_root(const struct reduction *r)
{
	return r->m->me == r->node && ompi_comm_rank(r->m->node) == r->root;
}

/* Where a leader has a segment */
static char *place(const struct reduction *r, int i)
{
	if (is_root(r))
		return mca_coll_pvas_segment(&r->segments, r->to, i);
	return r->memory + i % MCA_COLL_PVAS_WINDOW * r->room - r->gap;
}

static int reduce_leaders(struct reduction *r, int i)
{
	struct ompi_communicator_t *leaders = r->m->leaders;
	const int count = mca_coll_pvas_segment_count(&r->segments, i);
	char *at = place(r, i), *result = r->m->me == r->node ? at : NULL;
	const void *from = result ? MPI_IN_PLACE : at;

	if (r->segments.nr == 1)
		return mca_coll_pvas_do(leaders, reduce, from, result, count, r->type, r->op,
					r->node);
	return mca_coll_pvas_start(leaders, mca_coll_pvas_request_of(&r->window, i), ireduce, from,
				   result, count, r->type, r->op, r->node);
}

/* The root's leader sends a segment to the root, if that is another rank. */
static int deliver(struct reduction *r, int i)
{
	const int count = mca_coll_pvas_segment_count(&r->segments, i);
	int rc = OMPI_SUCCESS;

	if (r->m->leaders)
		rc = mca_coll_pvas_wait_request(&r->window, i);
	if (r->m->me != r->node || !r->root)
		return rc;
	if (r->m->leaders)
		mca_coll_pvas_and_then(&rc, MCA_PML_CALL(
			send(place(r, i), count, r->type, r->root, RESULT_TAG,
			     MCA_PML_BASE_SEND_STANDARD, r->m->node)));
	else if (is_root(r))
		mca_coll_pvas_and_then(&rc, MCA_PML_CALL(
			recv(mca_coll_pvas_segment(&r->segments, r->to, i), count, r->type, 0,
			     RESULT_TAG, r->m->node, MPI_STATUS_IGNORE)));
	return rc;
}

static int reserve(struct reduction *r)
{
	if (!r->m->leaders || is_root(r))
		return OMPI_SUCCESS;
	r->room = opal_datatype_span(&r->type->super, r->segments.each < r->segments.count ?
				     r->segments.each : r->segments.count, &r->gap);
	/* Aligned as any element */
	r->room = (r->room + 63) / 64 * 64;
	r->memory = malloc(r->room * MCA_COLL_PVAS_WINDOW);
	return r->memory ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

static int reduce_segments(struct reduction *r)
{
	const int nr = r->segments.nr;
	int i, rc = reserve(r);

	if (rc != OMPI_SUCCESS)
		return rc;
	for (i = 0; i < nr + MCA_COLL_PVAS_WINDOW; i++) {
		if (i >= MCA_COLL_PVAS_WINDOW && i - MCA_COLL_PVAS_WINDOW < nr)
			mca_coll_pvas_and_then(&rc, deliver(r, i - MCA_COLL_PVAS_WINDOW));
		if (i >= nr)
			continue;
		mca_coll_pvas_and_then(&rc,
				       reduce_in_node(r, i, r->m->leaders ? place(r, i) : NULL));
		if (r->m->leaders)
			mca_coll_pvas_and_then(&rc, reduce_leaders(r, i));
	}
	rc = mca_coll_pvas_wait_window(&r->window, rc);
	free(r->memory);
	return rc;
}

int mca_coll_pvas_nodes_reduce(const void *sbuf, void *rbuf, int count,
			       struct ompi_datatype_t *type, struct ompi_op_t *op, int root,
			       struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	mca_coll_pvas_nodes_t *m = (mca_coll_pvas_nodes_t *)module;
	struct reduction r = { .type = type, .op = op };
	const bool possible = mca_coll_pvas_nodes_prefers() && ompi_op_is_commute(op);

	if (!mca_coll_pvas_nodes_begin_if(m, reduce, possible))
		return m->previous.reduce(sbuf, rbuf, count, type, op, root, comm,
					  m->previous.reduce_module);
	r.node = m->node_of[root];
	r.root = mca_coll_pvas_nodes_rank_in_node(m, root);
	begin(&r, m, sbuf, rbuf, count);
	return reduce_segments(&r);
}
