// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Over several nodes: gather, scatter, alltoall. The blocks of a node go together, through its
 * leader, so there are fewer messages between nodes. Long blocks gain nothing by that: each goes
 * from its rank to its rank, as the component below ours or, of an alltoall, nodes_exchange.c
 * sends it.
 */
#include "nodes.h"
#include "post.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/pml/pml.h"

#define component mca_coll_pvas_component

#define BYTE (&ompi_mpi_byte.dt)

static bool go_together(const struct mca_coll_pvas_nodes *m, size_t bytes)
{
	return bytes <= component.segment && bytes <= (size_t)INT_MAX / ompi_comm_size(m->comm);
}

/* ---- gather, scatter ---- */

static bool blocks_go_together(const struct mca_coll_pvas_nodes *m, size_t bytes)
{
	return mca_coll_pvas_nodes_prefers() && go_together(m, bytes);
}

/**
 * struct rooted - a gather or scatter in progress
 * @bytes:	of a block
 * @at_root:	we are the root
 * @direct:	@all is the root's own buffer
 * @node, @in_node:	the root's
 * @all:	blocks sorted by node: of all ranks, or, of a leader of another node, of its ranks
 */
struct rooted {
	struct mca_coll_pvas_nodes *m;
	size_t bytes;
	bool at_root;
	bool direct;
	int node;
	int in_node;
	char *all;
};

/* @buf: with the blocks of all, at the root */
static bool reserve(struct rooted *x, const void *buf, int root, const struct ompi_datatype_t *type)
{
	struct mca_coll_pvas_nodes *m = x->m;
	int nr = 0;

	x->node = m->node_of[root];
	x->in_node = mca_coll_pvas_nodes_rank_in_node(m, root);
	if (m->me == x->node && (m->leaders || x->at_root))
		nr = ompi_comm_size(m->comm);
	else if (m->leaders)
		nr = mca_coll_pvas_nodes_ranks(m, m->me);
	x->direct = x->at_root && m->sorted && mca_coll_pvas_is_plain(type);
	if (x->direct)
		x->all = (char *)buf;
	else if (nr)
		x->all = malloc(nr * x->bytes);
	return x->all || !nr;
}

static int release(struct rooted *x, int rc)
{
	if (!x->direct)
		free(x->all);
	return rc;
}

/* The blocks of our node, at its leader */
static char *blocks(const struct rooted *x)
{
	if (!x->m->leaders)
		return NULL;
	return x->all + (x->m->me == x->node ? x->m->first[x->m->me] * x->bytes : 0);
}

/* Is this rank the root or its leader, and are they two? */
static bool must_pass(const struct rooted *x)
{
	return x->in_node && x->m->me == x->node && (x->at_root || x->m->leaders);
}

/* From the one to the other */
static int pass_all(const struct rooted *x, bool send, int tag)
{
	const size_t bytes = ompi_comm_size(x->m->comm) * x->bytes;
	const int peer = x->at_root ? 0 : x->in_node;

	if (send)
		return MCA_PML_CALL(send(x->all, bytes, BYTE, peer, tag, MCA_PML_BASE_SEND_STANDARD,
					 x->m->node));
	return MCA_PML_CALL(recv(x->all, bytes, BYTE, peer, tag, x->m->node, MPI_STATUS_IGNORE));
}

static int gather_leaders(const struct rooted *x)
{
	struct mca_coll_pvas_nodes *m = x->m;
	const void *from = m->me == x->node ? MPI_IN_PLACE : x->all;
	const int n = mca_coll_pvas_nodes_ranks(m, m->me) * x->bytes;
	int *counts, rc;

	if (m->even)
		return mca_coll_pvas_do(m->leaders, gather, from, n, BYTE, x->all, n, BYTE,
					x->node);
	counts = mca_coll_pvas_nodes_counts(m, x->bytes);
	if (!counts)
		return OMPI_ERR_OUT_OF_RESOURCE;
	rc = mca_coll_pvas_do(m->leaders, gatherv, from, n, BYTE, x->all, counts, counts + m->nr,
			      BYTE, x->node);
	free(counts);
	return rc;
}

int mca_coll_pvas_nodes_gather(const void *sbuf, int scount, struct ompi_datatype_t *stype,
			       void *rbuf, int rcount, struct ompi_datatype_t *rtype, int root,
			       struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	mca_coll_pvas_nodes_t *m = (mca_coll_pvas_nodes_t *)module;
	struct rooted x = { .m = m, .at_root = ompi_comm_rank(comm) == root };
	int rc;

	x.bytes = x.at_root ? mca_coll_pvas_bytes(rcount, rtype) :
			      mca_coll_pvas_bytes(scount, stype);
	if (!mca_coll_pvas_nodes_begin_if(m, gather, blocks_go_together(m, x.bytes)))
		return m->previous.gather(sbuf, scount, stype, rbuf, rcount, rtype, root, comm,
					  m->previous.gather_module);
	if (!x.bytes)
		return OMPI_SUCCESS;
	if (!reserve(&x, rbuf, root, rtype))
		return OMPI_ERR_OUT_OF_RESOURCE;
	/* Where it is in place, a leader's block is where it belongs. */
	if (sbuf == MPI_IN_PLACE && (!x.direct || x.in_node)) {
		sbuf = mca_coll_pvas_block_at(rbuf, rcount, rtype, root);
		scount = rcount;
		stype = rtype;
	}
	rc = mca_coll_pvas_do(m->node, gather, sbuf, scount, stype, blocks(&x), x.bytes, BYTE, 0);
	if (m->leaders)
		mca_coll_pvas_and_then(&rc, gather_leaders(&x));
	if (must_pass(&x))
		mca_coll_pvas_and_then(&rc, pass_all(&x, !x.at_root, MCA_COLL_BASE_TAG_GATHER));
	if (rc == OMPI_SUCCESS && x.at_root && !x.direct)
		rc = mca_coll_pvas_nodes_unsort(m, rbuf, rcount, rtype, x.all, x.bytes);
	return release(&x, rc);
}

static int scatter_leaders(const struct rooted *x)
{
	struct mca_coll_pvas_nodes *m = x->m;
	void *to = m->me == x->node ? MPI_IN_PLACE : x->all;
	const int n = mca_coll_pvas_nodes_ranks(m, m->me) * x->bytes;
	int *counts, rc;

	if (m->even)
		return mca_coll_pvas_do(m->leaders, scatter, x->all, n, BYTE, to, n, BYTE, x->node);
	counts = mca_coll_pvas_nodes_counts(m, x->bytes);
	if (!counts)
		return OMPI_ERR_OUT_OF_RESOURCE;
	rc = mca_coll_pvas_do(m->leaders, scatterv, x->all, counts, counts + m->nr, BYTE, to, n,
			      BYTE, x->node);
	free(counts);
	return rc;
}

/* A root that has its block in place, but is no leader, gets it once more, in @all or elsewhere. */
static int scatter_in_node(const struct rooted *x, void *rbuf, int rcount,
			   struct ompi_datatype_t *rtype)
{
	char *own = NULL;
	int rc;

	if (rbuf == MPI_IN_PLACE && x->in_node) {
		own = malloc(x->bytes);
		if (!own)
			return OMPI_ERR_OUT_OF_RESOURCE;
		rbuf = own;
		rcount = x->bytes;
		rtype = BYTE;
	}
	rc = mca_coll_pvas_do(x->m->node, scatter, blocks(x), x->bytes, BYTE, rbuf, rcount, rtype,
			      0);
	free(own);
	return rc;
}

int mca_coll_pvas_nodes_scatter(const void *sbuf, int scount, struct ompi_datatype_t *stype,
				void *rbuf, int rcount, struct ompi_datatype_t *rtype, int root,
				struct ompi_communicator_t *comm,
				mca_coll_base_module_t *module)
{
	mca_coll_pvas_nodes_t *m = (mca_coll_pvas_nodes_t *)module;
	struct rooted x = { .m = m, .at_root = ompi_comm_rank(comm) == root };
	int rc = OMPI_SUCCESS;

	x.bytes = x.at_root ? mca_coll_pvas_bytes(scount, stype) :
			      mca_coll_pvas_bytes(rcount, rtype);
	if (!mca_coll_pvas_nodes_begin_if(m, scatter, blocks_go_together(m, x.bytes)))
		return m->previous.scatter(sbuf, scount, stype, rbuf, rcount, rtype, root, comm,
					   m->previous.scatter_module);
	if (!x.bytes)
		return OMPI_SUCCESS;
	if (!reserve(&x, sbuf, root, stype))
		return OMPI_ERR_OUT_OF_RESOURCE;
	if (x.at_root && !x.direct)
		rc = mca_coll_pvas_nodes_sort(m, x.all, x.bytes, sbuf, scount, stype);
	if (must_pass(&x))
		mca_coll_pvas_and_then(&rc, pass_all(&x, x.at_root, MCA_COLL_BASE_TAG_SCATTER));
	if (m->leaders)
		mca_coll_pvas_and_then(&rc, scatter_leaders(&x));
	mca_coll_pvas_and_then(&rc, scatter_in_node(&x, rbuf, rcount, rtype));
	return release(&x, rc);
}

/* ---- alltoall ---- */

/**
 * struct exchange - an alltoall in progress
 * @bytes:	of a block
 * @mine:	our blocks, sorted by node
 * @all, @other:	of a leader: the blocks of its node's ranks, in two orders
 */
struct exchange {
	struct mca_coll_pvas_nodes *m;
	size_t bytes;
	char *mine;
	char *all;
	char *other;
};

/* From those of each rank to those for each node */
static void sort_by_node(const struct exchange *x)
{
	const struct mca_coll_pvas_nodes *m = x->m;
	const size_t size = ompi_comm_size(m->comm);
	const int nr = mca_coll_pvas_nodes_ranks(m, m->me);
	char *to = x->other;
	int i, k;

	for (k = 0; k < m->nr; k++) {
		const size_t bytes = mca_coll_pvas_nodes_ranks(m, k) * x->bytes;

		for (i = 0; i < nr; i++, to += bytes)
			memcpy(to, x->all + (i * size + m->first[k]) * x->bytes, bytes);
	}
}

/* From those of each rank of any node to those for each rank of ours */
static void sort_by_rank(const struct exchange *x)
{
	const int size = ompi_comm_size(x->m->comm);
	const int nr = mca_coll_pvas_nodes_ranks(x->m, x->m->me);
	char *to = x->other;
	int from, i;

	for (i = 0; i < nr; i++)
		for (from = 0; from < size; from++, to += x->bytes)
			memcpy(to, x->all + ((size_t)from * nr + i) * x->bytes, x->bytes);
}

static int alltoall_leaders(const struct exchange *x)
{
	struct mca_coll_pvas_nodes *m = x->m;
	const size_t bytes = mca_coll_pvas_nodes_ranks(m, m->me) * x->bytes;
	int n, *counts, rc;

	if (m->even) {
		n = bytes * m->first[1];
		return mca_coll_pvas_do(m->leaders, alltoall, x->other, n, BYTE, x->all, n, BYTE);
	}
	counts = mca_coll_pvas_nodes_counts(m, bytes);
	if (!counts)
		return OMPI_ERR_OUT_OF_RESOURCE;
	rc = mca_coll_pvas_do(m->leaders, alltoallv, x->other, counts, counts + m->nr, BYTE, x->all,
			      counts, counts + m->nr, BYTE);
	free(counts);
	return rc;
}

static int exchange(const struct exchange *x)
{
	struct mca_coll_pvas_nodes *m = x->m;
	const size_t bytes = ompi_comm_size(m->comm) * x->bytes;
	int rc;

	rc = mca_coll_pvas_do(m->node, gather, x->mine, bytes, BYTE, x->all, bytes, BYTE, 0);
	if (m->leaders) {
		sort_by_node(x);
		mca_coll_pvas_and_then(&rc, alltoall_leaders(x));
		sort_by_rank(x);
	}
	mca_coll_pvas_and_then(&rc, mca_coll_pvas_do(m->node, scatter, x->other, bytes, BYTE,
						     x->mine, bytes, BYTE, 0));
	return rc;
}

int mca_coll_pvas_nodes_alltoall(const void *sbuf, int scount, struct ompi_datatype_t *stype,
				 void *rbuf, int rcount, struct ompi_datatype_t *rtype,
				 struct ompi_communicator_t *comm,
				 mca_coll_base_module_t *module)
{
	mca_coll_pvas_nodes_t *m = (mca_coll_pvas_nodes_t *)module;
	struct exchange x = { .m = m, .bytes = mca_coll_pvas_bytes(rcount, rtype) };
	const size_t size = ompi_comm_size(comm);
	const bool possible = mca_coll_pvas_nodes_prefers() && x.bytes <= INT_MAX / size;
	size_t nr = 0;
	int rc;

	if (!mca_coll_pvas_nodes_begin_if(m, alltoall, possible))
		return m->previous.alltoall(sbuf, scount, stype, rbuf, rcount, rtype, comm,
					    m->previous.alltoall_module);
	if (!x.bytes)
		return OMPI_SUCCESS;
	if (!go_together(m, size * x.bytes))
		return mca_coll_pvas_nodes_exchange(m, sbuf, scount, stype, rbuf, rcount, rtype);
	if (sbuf == MPI_IN_PLACE) {
		sbuf = rbuf;
		scount = rcount;
		stype = rtype;
	}
	if (m->leaders)
		nr = mca_coll_pvas_nodes_ranks(m, m->me);
	x.mine = malloc((1 + 2 * nr) * size * x.bytes);
	if (!x.mine)
		return OMPI_ERR_OUT_OF_RESOURCE;
	x.all = x.mine + size * x.bytes;
	x.other = x.all + nr * size * x.bytes;
	rc = mca_coll_pvas_nodes_sort(m, x.mine, x.bytes, sbuf, scount, stype);
	mca_coll_pvas_and_then(&rc, exchange(&x));
	if (rc == OMPI_SUCCESS)
		rc = mca_coll_pvas_nodes_unsort(m, rbuf, rcount, rtype, x.mine, x.bytes);
	free(x.mine);
	return rc;
}
