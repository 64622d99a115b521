// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Over several nodes: scan, exscan. The sums of whole nodes are scanned between the leaders, while
 * each node scans its own contributions; then each rank puts the sum of the nodes before its own in
 * front. That takes ranks sorted by node. As in other reductions, operators that don't commute are
 * passed on, so that their results are coll/basic's.
 */
#include "nodes.h"
#include "post.h"

#include <stdlib.h>

/**
 * struct scan - a scan in progress
 * @from:	our contribution, or MPI_IN_PLACE
 * @memory:	segments: of a leader, the sums of its node; of all, those of the nodes before it
 * @room:	distance of two, in bytes; @gap: see opal_datatype_span()
 */
struct scan {
	struct mca_coll_pvas_nodes *m;
	struct mca_coll_pvas_segments segments;
	struct mca_coll_pvas_window window;
	struct ompi_datatype_t *type;
	struct ompi_op_t *op;
	const void *from;
	void *to;
	bool exclusive;
	char *memory;
	ptrdiff_t room;
	ptrdiff_t gap;
};

static char *sum_of_node(const struct scan *s, int i)
{
	return s->memory + i % MCA_COLL_PVAS_WINDOW * s->room - s->gap;
}

static char *sum_before(const struct scan *s, int i)
{
	return sum_of_node(s, i) + MCA_COLL_PVAS_WINDOW * s->room;
}

static bool reserve(struct scan *s)
{
	s->room = opal_datatype_span(&s->type->super, s->segments.each < s->segments.count ?
				     s->segments.each : s->segments.count, &s->gap);
	/* Aligned as any element */
	s->room = (s->room + 63) / 64 * 64;
	s->memory = malloc(2 * MCA_COLL_PVAS_WINDOW * s->room);
	return s->memory;
}

static int exscan_leaders(struct scan *s, int i)
{
	struct ompi_communicator_t *leaders = s->m->leaders;
	const int count = mca_coll_pvas_segment_count(&s->segments, i);
	char *from = sum_of_node(s, i), *to = sum_before(s, i);

	if (s->segments.nr == 1)
		return mca_coll_pvas_do(leaders, exscan, from, to, count, s->type, s->op);
	return mca_coll_pvas_start(leaders, mca_coll_pvas_request_of(&s->window, i), iexscan, from,
				   to, count, s->type, s->op);
}

/* Combine a segment of this node's contributions at its leader, and start between the leaders. */
static int sum_up(struct scan *s, int i)
{
	const struct mca_coll_pvas_segments *g = &s->segments;
	const void *from = s->from == MPI_IN_PLACE ? s->to : s->from;
	int rc;

	rc = mca_coll_pvas_do(s->m->node, reduce, mca_coll_pvas_segment(g, from, i),
			      s->m->leaders ? sum_of_node(s, i) : NULL,
			      mca_coll_pvas_segment_count(g, i), s->type, s->op, 0);
	if (s->m->leaders)
		mca_coll_pvas_and_then(&rc, exscan_leaders(s, i));
	return rc;
}

static int scan_in_node(struct scan *s, int i)
{
	const struct mca_coll_pvas_segments *g = &s->segments;
	const void *from = s->from == MPI_IN_PLACE ? s->from : mca_coll_pvas_segment(g, s->from, i);
	char *to = mca_coll_pvas_segment(g, s->to, i);
	const int count = mca_coll_pvas_segment_count(g, i);

	if (s->exclusive)
		return mca_coll_pvas_do(s->m->node, exscan, from, to, count, s->type, s->op);
	return mca_coll_pvas_do(s->m->node, scan, from, to, count, s->type, s->op);
}

/* The first rank of a node has no result of an exscan in it. */
static int put_in_front(struct scan *s, int i)
{
	char *to = mca_coll_pvas_segment(&s->segments, s->to, i), *before = sum_before(s, i);
	const int count = mca_coll_pvas_segment_count(&s->segments, i);

	if (s->exclusive && !ompi_comm_rank(s->m->node))
		return ompi_datatype_copy_content_same_ddt(s->type, count, to, before);
	ompi_op_reduce(s->op, before, to, count, s->type);
	return OMPI_SUCCESS;
}

static int finish(struct scan *s, int i)
{
	int rc = scan_in_node(s, i);

	if (s->m->leaders)
		mca_coll_pvas_and_then(&rc, mca_coll_pvas_wait_request(&s->window, i));
	/* There is nothing before the first node. */
	if (!s->m->me)
		return rc;
	mca_coll_pvas_and_then(&rc, mca_coll_pvas_do(
		s->m->node, bcast, sum_before(s, i), mca_coll_pvas_segment_count(&s->segments, i),
		s->type, 0));
	mca_coll_pvas_and_then(&rc, put_in_front(s, i));
	return rc;
}

static int scan(struct scan *s, int count)
{
	int i, nr, rc = OMPI_SUCCESS;

	s->segments = mca_coll_pvas_cut(count, s->type);
	nr = s->segments.nr;
	if (!nr)
		return OMPI_SUCCESS;
	if (!reserve(s))
		return OMPI_ERR_OUT_OF_RESOURCE;
	for (i = 0; i < nr + MCA_COLL_PVAS_WINDOW; i++) {
		if (i >= MCA_COLL_PVAS_WINDOW && i - MCA_COLL_PVAS_WINDOW < nr)
			mca_coll_pvas_and_then(&rc, finish(s, i - MCA_COLL_PVAS_WINDOW));
		if (i < nr)
			mca_coll_pvas_and_then(&rc, sum_up(s, i));
	}
	rc = mca_coll_pvas_wait_window(&s->window, rc);
	free(s->memory);
	return rc;
}

static bool is_possible(struct mca_coll_pvas_nodes *m, struct ompi_op_t *op)
{
	return mca_coll_pvas_nodes_prefers() && ompi_op_is_commute(op) &&
	       mca_coll_pvas_nodes_ready(m) && m->sorted;
}

int mca_coll_pvas_nodes_scan(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
			     struct ompi_op_t *op, struct ompi_communicator_t *comm,
			     mca_coll_base_module_t *module)
{
	mca_coll_pvas_nodes_t *m = (mca_coll_pvas_nodes_t *)module;
	struct scan s = { .m = m, .type = type, .op = op, .from = sbuf, .to = rbuf };

	if (!mca_coll_pvas_nodes_begin_if(m, scan, is_possible(m, op)))
		return m->previous.scan(sbuf, rbuf, count, type, op, comm,
					m->previous.scan_module);
	return scan(&s, count);
}

int mca_coll_pvas_nodes_exscan(const void *sbuf, void *rbuf, int count,
			       struct ompi_datatype_t *type, struct ompi_op_t *op,
			       struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	mca_coll_pvas_nodes_t *m = (mca_coll_pvas_nodes_t *)module;
	struct scan s = {
		.m = m, .type = type, .op = op, .from = sbuf, .to = rbuf, .exclusive = true,
	};

	if (!mca_coll_pvas_nodes_begin_if(m, exscan, is_possible(m, op)))
		return m->previous.exscan(sbuf, rbuf, count, type, op, comm,
					  m->previous.exscan_module);
	return scan(&s, count);
}
