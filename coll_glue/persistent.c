// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Persistent operations: as non-blocking ones, but ranks may start them in any order, so each
 * has a line of its own in a further block, in which its starts are numbered. They are
 * initialized in one order by all ranks.
 */
#include "nbc_operations.h"
#include "neighbor.h"

#include <stdlib.h>
#include <string.h>

#define component mca_coll_pvas_component

/* ---- lines ---- */

/* When its last request is freed, and no more come, the block is left. */
void mca_coll_pvas_put_persistent(struct mca_coll_pvas_module *m, struct mca_coll_pvas_nbc *nbc)
{
	bool gone;

	OPAL_THREAD_LOCK(&component.nbc_lock);
	/* If the broadcast still writes there, progress() does the rest. */
	gone = !--nbc->users && nbc->state != MCA_COLL_PVAS_ATTACHING;
	OPAL_THREAD_UNLOCK(&component.nbc_lock);
	if (!gone)
		return;
	mca_coll_pvas_nbc_leave(m, nbc);
	free(nbc);
}

/* Take the next line, of another block if there is none; false: no memory. */
static bool take_line(struct mca_coll_pvas_module *m)
{
	struct mca_coll_pvas_nbc *nbc = m->persistent;

	if (nbc && nbc->op == MCA_COLL_PVAS_PERSISTENT_LINES) {
		m->persistent = NULL;
		mca_coll_pvas_put_persistent(m, nbc);
		nbc = NULL;
	}
	if (!nbc) {
		nbc = calloc(1, sizeof(*nbc));
		if (!nbc)
			return false;
		nbc->users = 1;
		nbc->nr_lines = MCA_COLL_PVAS_PERSISTENT_LINES;
		m->persistent = nbc;
	}
	nbc->op++;
	return true;
}

/* ---- objects that the program may free before the request ---- */

static void hold(struct ompi_datatype_t *type, bool retain)
{
	if (ompi_datatype_is_predefined(type))
		return;
	if (retain) {
		OBJ_RETAIN(type);
	} else {
		OBJ_RELEASE(type);
	}
}

static void hold_types(const struct mca_coll_pvas_buffers *b, enum mca_coll_pvas_kind kind, int nr,
		       bool retain)
{
	int i;

	if (kind != MCA_COLL_PVAS_BUFFERS_W && kind != MCA_COLL_PVAS_BUFFERS_WA) {
		hold((struct ompi_datatype_t *)b->type, retain);
		return;
	}
	for (i = 0; i < nr; i++)
		hold(((struct ompi_datatype_t *const *)b->type)[i], retain);
}

/*
 * Open MPI retains them for non-blocking operations, but for no request that is complete when
 * it is made. Arguments that are of no use at this rank may be anything.
 */
static void hold_objects(const struct mca_coll_pvas_request *r, bool retain)
{
	const struct mca_coll_pvas_call *call = &r->call;
	const bool neighbors = call->sources == MCA_COLL_PVAS_NEIGHBORS;
	struct ompi_op_t *op = call->reduction.op;

	if (call->readers != MCA_COLL_PVAS_NONE || call->own)
		hold_types(&call->from, call->from_kind, call->nr_blocks, retain);
	if (call->sources != MCA_COLL_PVAS_NONE || call->own)
		hold_types(&call->to, call->to_kind,
			   neighbors ? r->m->neighbors->nr_sources : r->m->size, retain);
	if (!op || ompi_op_is_intrinsic(op))
		return;
	if (retain) {
		OBJ_RETAIN(op);
	} else {
		OBJ_RELEASE(op);
	}
}

/* ---- requests ---- */

static int free_request(ompi_request_t **request)
{
	struct mca_coll_pvas_request *r = (struct mca_coll_pvas_request *)*request;

	hold_objects(r, false);
	mca_coll_pvas_put_persistent(r->m, r->nbc);
	mca_coll_pvas_free_request(r);
	*request = MPI_REQUEST_NULL;
	return OMPI_SUCCESS;
}

static void start_one(struct mca_coll_pvas_request *r)
{
	const int nr = mca_coll_pvas_nr_sources(r->m, r->call.sources);

	memset(r->fetched, 0, nr * sizeof(*r->fetched));
	r->rc = OMPI_SUCCESS;
	r->at = 0;
	r->copied = false;
	r->op++;
	r->super.super.req_complete = REQUEST_PENDING;
	r->super.super.req_status = ompi_status_empty;
	if (!mca_coll_pvas_begin_request(r))
		return;
	r->super.super.req_status.MPI_ERROR = r->rc;
	ompi_request_complete(&r->super.super, true);
}

static int start(size_t count, ompi_request_t **requests)
{
	size_t i;

	for (i = 0; i < count; i++)
		start_one((struct mca_coll_pvas_request *)requests[i]);
	return OMPI_SUCCESS;
}

/* @call->kept is freed in any case. */
int mca_coll_pvas_init(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_call *call,
		       ompi_request_t **request)
{
	struct mca_coll_pvas_request *r = mca_coll_pvas_new_request(m, call);

	if (!r) {
		free(call->kept);
		return OMPI_ERR_OUT_OF_RESOURCE;
	}
	OPAL_THREAD_LOCK(&component.nbc_lock);
	r->nbc->users++;
	OPAL_THREAD_UNLOCK(&component.nbc_lock);
	r->line = r->nbc->op;
	r->super.super.req_start = start;
	r->super.super.req_free = free_request;
	hold_objects(r, true);
	*request = &r->super.super;
	return OMPI_SUCCESS;
}

/* ---- as Open MPI calls them ---- */

#define COMMON struct ompi_communicator_t *comm, struct ompi_info_t *info, \
	       ompi_request_t **request, mca_coll_base_module_t *module

/* Initialize @name as the non-blocking operation of that name would be started. */
#define INIT(name, params, ...)							\
int mca_coll_pvas_##name##_init params						\
{										\
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;		\
	int rc;									\
										\
	if (component.choose)							\
		return m->previous.name##_init(__VA_ARGS__ comm, info, request,	\
					       m->previous.name##_init_module);	\
	if (!take_line(m))							\
		return OMPI_ERR_OUT_OF_RESOURCE;				\
	m->initializing = true;							\
	rc = mca_coll_pvas_i##name(__VA_ARGS__ comm, request, module);		\
	m->initializing = false;						\
	return rc;								\
}

#define TYPE struct ompi_datatype_t *
#define TYPES struct ompi_datatype_t *const *
#define SEND const void *sbuf, int scount, TYPE stype
#define SEND_V const void *sbuf, const int *scounts, const int *sdispls, TYPE stype
#define RECEIVE void *rbuf, int rcount, TYPE rtype
#define RECEIVE_V void *rbuf, const int *rcounts, const int *rdispls, TYPE rtype
#define REDUCE TYPE type, struct ompi_op_t *op

#define SENT sbuf, scount, stype
#define SENT_V sbuf, scounts, sdispls, stype
#define RECEIVED rbuf, rcount, rtype
#define RECEIVED_V rbuf, rcounts, rdispls, rtype

INIT(barrier, (COMMON))
INIT(bcast, (void *buf, int count, TYPE type, int root, COMMON), buf, count, type, root,)
INIT(gather, (SEND, RECEIVE, int root, COMMON), SENT, RECEIVED, root,)
INIT(gatherv, (SEND, RECEIVE_V, int root, COMMON), SENT, rbuf, rcounts, rdispls, rtype, root,)
INIT(scatter, (SEND, RECEIVE, int root, COMMON), SENT, RECEIVED, root,)
INIT(scatterv, (SEND_V, RECEIVE, int root, COMMON), SENT_V, RECEIVED, root,)
INIT(allgather, (SEND, RECEIVE, COMMON), SENT, RECEIVED,)
INIT(allgatherv, (SEND, RECEIVE_V, COMMON), SENT, RECEIVED_V,)
INIT(alltoall, (SEND, RECEIVE, COMMON), SENT, RECEIVED,)
INIT(alltoallv, (SEND_V, RECEIVE_V, COMMON), SENT_V, RECEIVED_V,)
INIT(alltoallw, (const void *sbuf, const int *scounts, const int *sdispls, TYPES stypes,
		 void *rbuf, const int *rcounts, const int *rdispls, TYPES rtypes, COMMON),
	sbuf, scounts, sdispls, stypes, rbuf, rcounts, rdispls, rtypes,)
INIT(reduce, (const void *sbuf, void *rbuf, int count, REDUCE, int root, COMMON),
	sbuf, rbuf, count, type, op, root,)
INIT(allreduce, (const void *sbuf, void *rbuf, int count, REDUCE, COMMON),
	sbuf, rbuf, count, type, op,)
INIT(reduce_scatter, (const void *sbuf, void *rbuf, const int *rcounts, REDUCE, COMMON),
	sbuf, rbuf, rcounts, type, op,)
INIT(reduce_scatter_block, (const void *sbuf, void *rbuf, int rcount, REDUCE, COMMON),
	sbuf, rbuf, rcount, type, op,)
INIT(scan, (const void *sbuf, void *rbuf, int count, REDUCE, COMMON), sbuf, rbuf, count, type, op,)
INIT(exscan, (const void *sbuf, void *rbuf, int count, REDUCE, COMMON),
	sbuf, rbuf, count, type, op,)
INIT(neighbor_allgather, (SEND, RECEIVE, COMMON), SENT, RECEIVED,)
INIT(neighbor_allgatherv, (SEND, RECEIVE_V, COMMON), SENT, RECEIVED_V,)
INIT(neighbor_alltoall, (SEND, RECEIVE, COMMON), SENT, RECEIVED,)
INIT(neighbor_alltoallv, (SEND_V, RECEIVE_V, COMMON), SENT_V, RECEIVED_V,)
INIT(neighbor_alltoallw, (const void *sbuf, const int *scounts, const MPI_Aint *sdispls,
			  TYPES stypes, void *rbuf, const int *rcounts, const MPI_Aint *rdispls,
			  TYPES rtypes, COMMON),
	sbuf, scounts, sdispls, stypes, rbuf, rcounts, rdispls, rtypes,)
