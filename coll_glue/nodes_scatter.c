// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Over several nodes: reduce_scatter, reduce_scatter_block. Each node's contributions are combined
 * at its leader, in the order of their ranks; so operators that don't commute are passed on.
 */
#include "nodes.h"
#include "post.h"

#include <limits.h>
#include <stdlib.h>

/**
 * struct scattered - a reduction whose result is scattered
 * @counts:	by rank, or NULL: all have @each
 * @total:	the sum
 * @memory:	of a leader, for the sums of its node: elements begin @gap bytes before
 */
struct scattered {
	struct mca_coll_pvas_nodes *m;
	struct ompi_datatype_t *type;
	struct ompi_op_t *op;
	const int *counts;
	int each;
	size_t total;
	char *memory;
	ptrdiff_t gap;
};

static int count_of(const struct scattered *s, int rank)
{
	return s->counts ? s->counts[rank] : s->each;
}

static bool add_up(struct scattered *s)
{
	const int size = ompi_comm_size(s->m->comm);
	int i;

	for (i = 0; i < size; i++)
		s->total += count_of(s, i);
	return s->total <= INT_MAX;
}

static char *reserve(struct scattered *s)
{
	return malloc(opal_datatype_span(&s->type->super, s->total, &s->gap));
}

static char *elements(const struct scattered *s)
{
	return s->memory - s->gap;
}

static char *element(const struct scattered *s, size_t i)
{
	return elements(s) + (ptrdiff_t)i * mca_coll_pvas_extent(s->type);
}

/* Sort a leader's sums by node, as the leaders scatter them. */
static int sort_sums(struct scattered *s)
{
	const ptrdiff_t extent = mca_coll_pvas_extent(s->type);
	const int size = ompi_comm_size(s->m->comm);
	struct scattered by_rank = *s;
	size_t *first = malloc(size * sizeof(*first)), at = 0;
	int i, n, rc = OMPI_SUCCESS;

	s->memory = reserve(s);
	if (!first || !s->memory) {
		free(first);
		free(by_rank.memory);
		return OMPI_ERR_OUT_OF_RESOURCE;
	}
	for (i = 0; i < size; i++) {
		first[i] = at;
		at += count_of(s, i);
	}
	for (i = 0, at = 0; i < size && rc == OMPI_SUCCESS; i++, at += n) {
		n = count_of(s, s->m->ranks[i]);
		rc = ompi_datatype_copy_content_same_ddt(
			s->type, n, elements(s) + (ptrdiff_t)at * extent,
			element(&by_rank, first[s->m->ranks[i]]));
	}
	free(first);
	free(by_rank.memory);
	return rc;
}

/* Each leader gets the sums of its node's ranks. */
static int scatter_leaders(struct scattered *s)
{
	struct mca_coll_pvas_nodes *m = s->m;
	int *counts = calloc(m->nr, sizeof(*counts)), k, i, rc;

	if (!counts)
		return OMPI_ERR_OUT_OF_RESOURCE;
	for (k = 0; k < m->nr; k++)
		for (i = m->first[k]; i < m->first[k + 1]; i++)
			counts[k] += count_of(s, m->ranks[i]);
	rc = mca_coll_pvas_do(m->leaders, reduce_scatter, MPI_IN_PLACE, elements(s), counts,
			      s->type, s->op);
	free(counts);
	return rc;
}

static int scatter_in_node(struct scattered *s, void *rbuf)
{
	struct mca_coll_pvas_nodes *m = s->m;
	const int nr = mca_coll_pvas_nodes_ranks(m, m->me), *ranks = m->ranks + m->first[m->me];
	const int own = count_of(s, ompi_comm_rank(m->comm));
	int *counts = malloc(2 * nr * sizeof(*counts)), *displs = counts + nr, i, at = 0, rc;

	if (!counts)
		return OMPI_ERR_OUT_OF_RESOURCE;
	for (i = 0; i < nr; i++) {
		counts[i] = count_of(s, ranks[i]);
		displs[i] = at;
		at += counts[i];
	}
	rc = mca_coll_pvas_do(m->node, scatterv, m->leaders ? elements(s) : NULL, counts, displs,
			      s->type, rbuf, own, s->type, 0);
	free(counts);
	return rc;
}

static int reduce_scatter(struct scattered *s, const void *sbuf, void *rbuf)
{
	struct mca_coll_pvas_nodes *m = s->m;
	int rc = OMPI_SUCCESS;

	if (!s->total || !s->type->super.size)
		return OMPI_SUCCESS;
	if (m->leaders) {
		s->memory = reserve(s);
		if (!s->memory)
			return OMPI_ERR_OUT_OF_RESOURCE;
	}
	rc = mca_coll_pvas_do(m->node, reduce, sbuf == MPI_IN_PLACE ? rbuf : sbuf,
			      m->leaders ? elements(s) : NULL, s->total, s->type, s->op, 0);
	if (m->leaders && !m->sorted)
		mca_coll_pvas_and_then(&rc, sort_sums(s));
	if (m->leaders && s->memory)
		mca_coll_pvas_and_then(&rc, scatter_leaders(s));
	if (!m->leaders || s->memory)
		mca_coll_pvas_and_then(&rc, scatter_in_node(s, rbuf));
	free(s->memory);
	return rc;
}

int mca_coll_pvas_nodes_reduce_scatter(const void *sbuf, void *rbuf, const int *counts,
				       struct ompi_datatype_t *type, struct ompi_op_t *op,
				       struct ompi_communicator_t *comm,
				       mca_coll_base_module_t *module)
{
	mca_coll_pvas_nodes_t *m = (mca_coll_pvas_nodes_t *)module;
	struct scattered s = { .m = m, .type = type, .op = op, .counts = counts };
	const bool possible = mca_coll_pvas_nodes_prefers() && ompi_op_is_commute(op) &&
			      add_up(&s);

	if (!mca_coll_pvas_nodes_begin_if(m, reduce_scatter, possible))
		return m->previous.reduce_scatter(sbuf, rbuf, counts, type, op, comm,
						  m->previous.reduce_scatter_module);
	return reduce_scatter(&s, sbuf, rbuf);
}

int mca_coll_pvas_nodes_reduce_scatter_block(const void *sbuf, void *rbuf, int count,
					     struct ompi_datatype_t *type, struct ompi_op_t *op,
					     struct ompi_communicator_t *comm,
					     mca_coll_base_module_t *module)
{
	mca_coll_pvas_nodes_t *m = (mca_coll_pvas_nodes_t *)module;
	struct scattered s = { .m = m, .type = type, .op = op, .each = count };
	const bool possible = mca_coll_pvas_nodes_prefers() && ompi_op_is_commute(op) &&
			      add_up(&s);

	if (!mca_coll_pvas_nodes_begin_if(m, reduce_scatter_block, possible))
		return m->previous.reduce_scatter_block(sbuf, rbuf, count, type, op, comm,
							m->previous.reduce_scatter_block_module);
	return reduce_scatter(&s, sbuf, rbuf);
}
