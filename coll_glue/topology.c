// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The neighbors of a rank in its communicator's topology. A receiver must know which of the
 * sender's blocks is for it. MPI's rule is that of messages: of several edges from one rank
 * to another, the first in the sender's list is the first in the receiver's, and so on; in a
 * cartesian topology a block that is sent in one direction arrives from the other one.
 */
#include "neighbor.h"
#include "post.h"

#include <stdlib.h>

#include "ompi/mca/topo/base/base.h"

static struct mca_coll_pvas_neighbors *allocate(int nr_sources, int nr_destinations, int nr_more)
{
	struct mca_coll_pvas_neighbors *n;

	n = malloc(sizeof(*n) + ((size_t)nr_sources + nr_more) * sizeof(int));
	if (!n)
		return NULL;
	n->nr_sources = nr_sources;
	n->nr_destinations = nr_destinations;
	n->block = n->memory;
	n->known = true;
	return n;
}

/* For each dimension the rank below and the one above; MPI_PROC_NULL at an edge */
static struct mca_coll_pvas_neighbors *cartesian(struct ompi_communicator_t *comm)
{
	const int nr = 2 * comm->c_topo->mtc.cart->ndims;
	struct mca_coll_pvas_neighbors *n = allocate(nr, nr, nr);
	int *ranks, i;

	if (!n)
		return NULL;
	ranks = n->memory + nr;
	for (i = 0; i < nr; i += 2)
		mca_topo_base_cart_shift(comm, i / 2, 1, &ranks[i], &ranks[i + 1]);
	for (i = 0; i < nr; i++)
		n->block[i] = i ^ 1;
	n->sources = n->destinations = ranks;
	return n;
}

static struct mca_coll_pvas_neighbors *distributed_graph(struct ompi_communicator_t *comm)
{
	const mca_topo_base_comm_dist_graph_t *graph = comm->c_topo->mtc.dist_graph;
	struct mca_coll_pvas_neighbors *n = allocate(graph->indegree, graph->outdegree, 0);
	int i;

	if (!n)
		return NULL;
	n->known = false;
	n->sources = graph->in;
	n->destinations = graph->out;
	for (i = 0; i < n->nr_sources; i++)
		n->block[i] = -1;
	return n;
}

/* Which of so many @destinations of our @source-th source is this rank? Negative: none */
int mca_coll_pvas_find_block(const struct mca_coll_pvas_module *m, int source,
			     const int *destinations, int nr)
{
	const struct mca_coll_pvas_neighbors *n = m->neighbors;
	int earlier = 0, i;

	for (i = 0; i < source; i++)
		earlier += n->sources[i] == n->sources[source];
	for (i = 0; i < nr; i++)
		if (destinations[i] == m->rank && !earlier--)
			return i;
	return -1;
}

/* Each rank has the whole graph: ends of the lists of edges, one behind the other. */
static struct mca_coll_pvas_neighbors *graph(struct ompi_communicator_t *comm)
{
	const mca_topo_base_comm_graph_t *g = comm->c_topo->mtc.graph;
	const int rank = ompi_comm_rank(comm);
	const int begin = rank ? g->index[rank - 1] : 0;
	const int nr = g->index[rank] - begin;
	struct mca_coll_pvas_neighbors *n = allocate(nr, nr, 0);

	if (n)
		n->sources = n->destinations = g->edges + begin;
	return n;
}

static void find_blocks_of_graph(struct mca_coll_pvas_module *m)
{
	const mca_topo_base_comm_graph_t *g = m->comm->c_topo->mtc.graph;
	struct mca_coll_pvas_neighbors *n = m->neighbors;
	int i, source, at;

	for (i = 0; i < n->nr_sources; i++) {
		source = n->sources[i];
		at = source ? g->index[source - 1] : 0;
		n->block[i] = mca_coll_pvas_find_block(m, i, g->edges + at, g->index[source] - at);
	}
}

/* Without the blocks of a graph; NULL: there is no memory, or no topology. */
struct mca_coll_pvas_neighbors *mca_coll_pvas_topology(struct ompi_communicator_t *comm)
{
	if (OMPI_COMM_IS_CART(comm))
		return cartesian(comm);
	if (OMPI_COMM_IS_GRAPH(comm))
		return graph(comm);
	return OMPI_COMM_IS_DIST_GRAPH(comm) ? distributed_graph(comm) : NULL;
}

/* False: there is no memory, or no topology. */
bool mca_coll_pvas_find_neighbors(struct mca_coll_pvas_module *m)
{
	if (m->neighbors)
		return true;
	m->neighbors = mca_coll_pvas_topology(m->comm);
	if (m->neighbors && OMPI_COMM_IS_GRAPH(m->comm))
		find_blocks_of_graph(m);
	return m->neighbors;
}

/*
 * A rank of a distributed graph knows its own edges only, so the first operation reads the
 * lists of the sources. Later ones need not, and so can post data without a list.
 */
void mca_coll_pvas_learn_blocks(struct mca_coll_pvas_module *m)
{
	struct mca_coll_pvas_neighbors *n = m->neighbors;
	const struct mca_coll_pvas_buffers *theirs;
	int i;

	mca_coll_pvas_post_buffers(m, &(struct mca_coll_pvas_buffers) {
		.buf = (char *)n->destinations, .count = n->nr_destinations,
	}, MCA_COLL_PVAS_BUFFERS, MCA_COLL_PVAS_NEIGHBORS);
	for (i = 0; i < n->nr_sources; i++) {
		theirs = &mca_coll_pvas_wait_post(m, n->sources[i])->buffers;
		n->block[i] = mca_coll_pvas_find_block(m, i, (const int *)theirs->buf,
						       theirs->count);
	}
	mca_coll_pvas_finish(m);
	mca_coll_pvas_wait_readers(m);
	n->known = true;
	m->op++;
}

/* Wait for those that read what we have posted for our neighbors. */
void mca_coll_pvas_wait_neighbors_finished(struct mca_coll_pvas_module *m, uint64_t op)
{
	const struct mca_coll_pvas_neighbors *n = m->neighbors;
	uint64_t least = m->op, last;
	int i;

	if (op <= m->neighbors_finished)
		return;
	for (i = 0; i < n->nr_destinations; i++) {
		if (n->destinations[i] == MPI_PROC_NULL)
			continue;
		last = mca_coll_pvas_wait_finished(m, n->destinations[i], op);
		if (last < least)
			least = last;
	}
	m->neighbors_finished = least;
}
