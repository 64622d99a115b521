// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Over several nodes: gatherv, scatterv. Only the root knows all lengths, so each node's short
 * blocks go together in one message between its leader and the root, with a table of the lengths
 * in front; long ones gain nothing by that, and go directly. All ranks do as the sender's lengths
 * say, so that no rank waits for another one whose counts differ.
 */
#include "nodes.h"
#include "post.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/pml/pml.h"

#define BYTE (&ompi_mpi_byte.dt)

/* The longest block that goes together with others */
#define TOGETHER ((size_t)4 << 10)

/**
 * struct rooted - a gatherv or scatterv in progress
 * @buf, @counts, @displs, @type:	the blocks of all ranks, at the root
 * @messages:	of nodes: the table, and behind it the blocks; at the root as many as @window has
 * @room:	of one of them
 * @requests:	of long blocks, by rank, at the root
 */
struct rooted {
	struct mca_coll_pvas_nodes *m;
	struct mca_coll_pvas_window window;
	char *buf;
	const int *counts;
	const int *displs;
	struct ompi_datatype_t *type;
	int root;
	int tag;
	char *messages;
	size_t room;
	ompi_request_t **requests;
};

static size_t short_bytes(size_t length)
{
	return length <= TOGETHER ? length : 0;
}

static char *block_of(const struct rooted *x, int rank)
{
	return x->buf + x->displs[rank] * mca_coll_pvas_extent(x->type);
}

static size_t bytes_of(const struct rooted *x, int rank)
{
	return mca_coll_pvas_bytes(x->counts[rank], x->type);
}

static size_t room_for(const struct rooted *x, int node)
{
	return mca_coll_pvas_nodes_ranks(x->m, node) * (sizeof(size_t) + TOGETHER);
}

/* At the root */
static bool reserve(struct rooted *x)
{
	int k;

	for (k = 0; k < x->m->nr; k++)
		if (room_for(x, k) > x->room)
			x->room = room_for(x, k);
	x->messages = malloc(MCA_COLL_PVAS_WINDOW * x->room);
	x->requests = calloc(ompi_comm_size(x->m->comm), sizeof(*x->requests));
	return x->messages && x->requests;
}

static char *message(const struct rooted *x, int i)
{
	return x->messages + i % MCA_COLL_PVAS_WINDOW * x->room;
}

/* The @i-th of the other nodes */
static int other_node(const struct rooted *x, int i)
{
	return i < x->m->me ? i : i + 1;
}

static int leader_of(const struct rooted *x, int node)
{
	return x->m->ranks[x->m->first[node]];
}

static int complete(struct rooted *x, int rc)
{
	const int size = ompi_comm_size(x->m->comm);
	int i;

	rc = mca_coll_pvas_wait_window(&x->window, rc);
	for (i = 0; x->requests && i < size; i++)
		if (x->requests[i])
			mca_coll_pvas_and_then(&rc, ompi_request_wait(&x->requests[i],
								      MPI_STATUS_IGNORE));
	free(x->requests);
	free(x->messages);
	return rc;
}

/* Receive a block of @length bytes, of which a part can be too much. */
static int receive_long(const struct rooted *x, int from, size_t length, void *to, size_t count,
			struct ompi_datatype_t *type)
{
	char *all;
	int rc;

	if (length <= mca_coll_pvas_bytes(count, type))
		return MCA_PML_CALL(recv(to, count, type, from, x->tag, x->m->comm,
					 MPI_STATUS_IGNORE));
	all = malloc(length);
	if (!all)
		return OMPI_ERR_OUT_OF_RESOURCE;
	rc = MCA_PML_CALL(recv(all, length, BYTE, from, x->tag, x->m->comm, MPI_STATUS_IGNORE));
	if (rc == OMPI_SUCCESS)
		rc = mca_coll_pvas_copy(to, count, type, all, length, BYTE);
	free(all);
	return rc;
}

/* How many bytes of each rank of our node are in the message, and where; freed by callers */
static int *counts_of(const size_t *lengths, int nr)
{
	int *counts = malloc(2 * nr * sizeof(*counts)), i, at = 0;

	for (i = 0; counts && i < nr; i++) {
		counts[i] = short_bytes(lengths[i]);
		counts[nr + i] = at;
		at += counts[i];
	}
	return counts;
}

/* The root's counts and displacements of its node's ranks */
static int *own_node(const struct rooted *x)
{
	const struct mca_coll_pvas_nodes *m = x->m;
	const int nr = mca_coll_pvas_nodes_ranks(m, m->me);
	int *counts = malloc(2 * nr * sizeof(*counts)), i;

	for (i = 0; counts && i < nr; i++) {
		counts[i] = x->counts[m->ranks[m->first[m->me] + i]];
		counts[nr + i] = x->displs[m->ranks[m->first[m->me] + i]];
	}
	return counts;
}

/* ---- gatherv ---- */

/* At a leader, whose node's lengths @all has, as counts_of(); NULL at others, or with an error */
static int *leaders_counts(const struct mca_coll_pvas_nodes *m, char *all, int *rc)
{
	int *counts = NULL;

	if (!m->leaders)
		return NULL;
	counts = counts_of((size_t *)all, mca_coll_pvas_nodes_ranks(m, m->me));
	if (!counts)
		*rc = OMPI_ERR_OUT_OF_RESOURCE;
	return counts;
}

/* In another node than the root's: to the leader, which sends what is short, and its table */
static int send_together(const struct rooted *x, size_t length, const void *sbuf, int scount,
			 struct ompi_datatype_t *stype)
{
	struct mca_coll_pvas_nodes *m = x->m;
	const int nr = mca_coll_pvas_nodes_ranks(m, m->me);
	char *all = m->leaders ? malloc(room_for(x, m->me)) : NULL;
	int *counts = NULL, rc, n = short_bytes(length) ? scount : 0;

	if (m->leaders && !all)
		return OMPI_ERR_OUT_OF_RESOURCE;
	rc = mca_coll_pvas_do(m->node, gather, &length, sizeof(length), BYTE, all, sizeof(length),
			      BYTE, 0);
	counts = leaders_counts(m, all, &rc);
	if (!m->leaders || counts)
		mca_coll_pvas_and_then(&rc, mca_coll_pvas_do(
			m->node, gatherv, sbuf, n, stype,
			all ? all + nr * sizeof(length) : NULL, counts, counts ? counts + nr : NULL,
			BYTE, 0));
	if (counts)
		mca_coll_pvas_and_then(&rc, MCA_PML_CALL(
			send(all, nr * sizeof(length) + counts[nr - 1] + counts[2 * nr - 1], BYTE,
			     x->root, x->tag, MCA_PML_BASE_SEND_STANDARD, m->comm)));
	free(counts);
	free(all);
	return rc;
}

static int receive_next(struct rooted *x, int i)
{
	const int node = other_node(x, i);

	if (i >= x->m->nr - 1)
		return OMPI_SUCCESS;
	return MCA_PML_CALL(irecv(message(x, i), room_for(x, node), BYTE, leader_of(x, node),
				  x->tag, x->m->comm, mca_coll_pvas_request_of(&x->window, i)));
}

/* Long blocks that fit are received while others are. */
static int take_block(struct rooted *x, int rank, size_t length, const char *together)
{
	if (length <= TOGETHER)
		return mca_coll_pvas_copy(block_of(x, rank), x->counts[rank], x->type, together,
					  length, BYTE);
	if (length > bytes_of(x, rank))
		return receive_long(x, rank, length, block_of(x, rank), x->counts[rank], x->type);
	return MCA_PML_CALL(irecv(block_of(x, rank), x->counts[rank], x->type, rank, x->tag,
				  x->m->comm, &x->requests[rank]));
}

static int take_blocks(struct rooted *x, int i)
{
	const struct mca_coll_pvas_nodes *m = x->m;
	const int node = other_node(x, i), nr = mca_coll_pvas_nodes_ranks(m, node);
	const size_t *lengths = (const size_t *)message(x, i);
	const char *at = message(x, i) + nr * sizeof(*lengths);
	int k, now, rc = OMPI_SUCCESS;

	for (k = 0; k < nr; k++) {
		now = take_block(x, m->ranks[m->first[node] + k], lengths[k], at);
		mca_coll_pvas_and_then(&rc, now);
		at += short_bytes(lengths[k]);
	}
	return rc;
}

/* As own_node(), with room for the requests, too */
static int *begin_at_root(struct rooted *x)
{
	int *own = own_node(x);

	if (own && !reserve(x)) {
		free(own);
		return NULL;
	}
	return own;
}

static int gatherv_at_root(struct rooted *x, const void *sbuf, int scount,
			   struct ompi_datatype_t *stype)
{
	struct mca_coll_pvas_nodes *m = x->m;
	const int nr = mca_coll_pvas_nodes_ranks(m, m->me);
	int *own = begin_at_root(x), i, now, rc = OMPI_SUCCESS;

	if (!own)
		return complete(x, OMPI_ERR_OUT_OF_RESOURCE);
	for (i = 0; i < MCA_COLL_PVAS_WINDOW; i++)
		mca_coll_pvas_and_then(&rc, receive_next(x, i));
	now = mca_coll_pvas_do(m->node, gatherv, sbuf, scount, stype, x->buf, own, own + nr,
			       x->type, ompi_comm_rank(m->node));
	mca_coll_pvas_and_then(&rc, now);
	for (i = 0; i < m->nr - 1; i++) {
		now = mca_coll_pvas_wait_request(&x->window, i);
		if (now == OMPI_SUCCESS)
			now = take_blocks(x, i);
		mca_coll_pvas_and_then(&rc, now);
		now = receive_next(x, i + MCA_COLL_PVAS_WINDOW);
		mca_coll_pvas_and_then(&rc, now);
	}
	free(own);
	return complete(x, rc);
}

int mca_coll_pvas_nodes_gatherv(const void *sbuf, int scount, struct ompi_datatype_t *stype,
				void *rbuf, const int *rcounts, const int *displs,
				struct ompi_datatype_t *rtype, int root,
				struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	mca_coll_pvas_nodes_t *m = (mca_coll_pvas_nodes_t *)module;
	struct rooted x = {
		.m = m, .buf = rbuf, .counts = rcounts, .displs = displs, .type = rtype,
		.root = root, .tag = MCA_COLL_BASE_TAG_GATHERV,
	};
	size_t length;
	int rc;

	if (!mca_coll_pvas_nodes_begin_if(m, gatherv, mca_coll_pvas_nodes_prefers()))
		return m->previous.gatherv(sbuf, scount, stype, rbuf, rcounts, displs, rtype, root,
					   comm, m->previous.gatherv_module);
	if (ompi_comm_rank(comm) == root)
		return gatherv_at_root(&x, sbuf, scount, stype);
	if (m->me == m->node_of[root])
		return mca_coll_pvas_do(m->node, gatherv, sbuf, scount, stype, NULL, NULL, NULL,
					BYTE, mca_coll_pvas_nodes_rank_in_node(m, root));
	length = mca_coll_pvas_bytes(scount, stype);
	rc = send_together(&x, length, sbuf, scount, stype);
	if (length > TOGETHER)
		mca_coll_pvas_and_then(&rc, MCA_PML_CALL(
			send(sbuf, scount, stype, root, x.tag, MCA_PML_BASE_SEND_STANDARD, comm)));
	return rc;
}

/* ---- scatterv ---- */

/* In another node than the root's: how long is our block? Short ones are in the message. */
static int receive_together(const struct rooted *x, size_t *length, void *rbuf, int rcount,
			    struct ompi_datatype_t *rtype)
{
	struct mca_coll_pvas_nodes *m = x->m;
	const int nr = mca_coll_pvas_nodes_ranks(m, m->me);
	char *all = m->leaders ? calloc(1, room_for(x, m->me)) : NULL;
	int *counts = NULL, rc = OMPI_SUCCESS;

	if (m->leaders && !all)
		return OMPI_ERR_OUT_OF_RESOURCE;
	if (m->leaders)
		rc = MCA_PML_CALL(recv(all, room_for(x, m->me), BYTE, x->root, x->tag, m->comm,
				       MPI_STATUS_IGNORE));
	mca_coll_pvas_and_then(&rc, mca_coll_pvas_do(m->node, scatter, all, sizeof(*length), BYTE,
						     length, sizeof(*length), BYTE, 0));
	counts = leaders_counts(m, all, &rc);
	if (!m->leaders || counts)
		mca_coll_pvas_and_then(&rc, mca_coll_pvas_do(
			m->node, scatterv, all ? all + nr * sizeof(*length) : NULL, counts,
			counts ? counts + nr : NULL, BYTE, rbuf,
			*length <= TOGETHER ? rcount : 0, rtype, 0));
	free(counts);
	free(all);
	return rc;
}

static int send_next(struct rooted *x, int i)
{
	const struct mca_coll_pvas_nodes *m = x->m;
	const int node = other_node(x, i), nr = mca_coll_pvas_nodes_ranks(m, node);
	size_t *lengths = (size_t *)message(x, i), n;
	char *at = (char *)(lengths + nr);
	int k, rank, rc = mca_coll_pvas_wait_request(&x->window, i);

	for (k = 0; k < nr; k++) {
		rank = m->ranks[m->first[node] + k];
		lengths[k] = bytes_of(x, rank);
		n = short_bytes(lengths[k]);
		if (n)
			mca_coll_pvas_copy(at, n, BYTE, block_of(x, rank), x->counts[rank],
					   x->type);
		at += n;
	}
	mca_coll_pvas_and_then(&rc, MCA_PML_CALL(
		isend(message(x, i), at - message(x, i), BYTE, leader_of(x, node), x->tag,
		      MCA_PML_BASE_SEND_STANDARD, m->comm,
		      mca_coll_pvas_request_of(&x->window, i))));
	for (k = 0; k < nr; k++) {
		rank = m->ranks[m->first[node] + k];
		if (bytes_of(x, rank) > TOGETHER)
			mca_coll_pvas_and_then(&rc, MCA_PML_CALL(
				isend(block_of(x, rank), x->counts[rank], x->type, rank, x->tag,
				      MCA_PML_BASE_SEND_STANDARD, m->comm, &x->requests[rank])));
	}
	return rc;
}

static int scatterv_at_root(struct rooted *x, void *rbuf, int rcount, struct ompi_datatype_t *rtype)
{
	struct mca_coll_pvas_nodes *m = x->m;
	const int nr = mca_coll_pvas_nodes_ranks(m, m->me);
	int *own = begin_at_root(x), i, now, rc = OMPI_SUCCESS;

	if (!own)
		return complete(x, OMPI_ERR_OUT_OF_RESOURCE);
	for (i = 0; i < m->nr - 1; i++) {
		now = send_next(x, i);
		mca_coll_pvas_and_then(&rc, now);
	}
	now = mca_coll_pvas_do(m->node, scatterv, x->buf, own, own + nr, x->type, rbuf, rcount,
			       rtype, ompi_comm_rank(m->node));
	mca_coll_pvas_and_then(&rc, now);
	free(own);
	return complete(x, rc);
}

int mca_coll_pvas_nodes_scatterv(const void *sbuf, const int *scounts, const int *displs,
				 struct ompi_datatype_t *stype, void *rbuf, int rcount,
				 struct ompi_datatype_t *rtype, int root,
				 struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	mca_coll_pvas_nodes_t *m = (mca_coll_pvas_nodes_t *)module;
	struct rooted x = {
		.m = m, .buf = (char *)sbuf, .counts = scounts, .displs = displs, .type = stype,
		.root = root, .tag = MCA_COLL_BASE_TAG_SCATTERV,
	};
	size_t length = 0;
	int rc;

	if (!mca_coll_pvas_nodes_begin_if(m, scatterv, mca_coll_pvas_nodes_prefers()))
		return m->previous.scatterv(sbuf, scounts, displs, stype, rbuf, rcount, rtype, root,
					    comm, m->previous.scatterv_module);
	if (ompi_comm_rank(comm) == root)
		return scatterv_at_root(&x, rbuf, rcount, rtype);
	if (m->me == m->node_of[root])
		return mca_coll_pvas_do(m->node, scatterv, NULL, NULL, NULL, BYTE, rbuf, rcount,
					rtype, mca_coll_pvas_nodes_rank_in_node(m, root));
	rc = receive_together(&x, &length, rbuf, rcount, rtype);
	if (length > TOGETHER)
		mca_coll_pvas_and_then(&rc, receive_long(&x, root, length, rbuf, rcount, rtype));
	return rc;
}
