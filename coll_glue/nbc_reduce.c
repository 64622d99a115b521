// SPDX-License-Identifier: LGPL-2.1-or-later
/* Non-blocking reductions: combined as the blocking ones are, once all ranks have posted. */
#include "nbc_operations.h"

#include <stdlib.h>

/* Are contributions copied, wherever the operation gets its lines from? All ranks agree. */
static bool is_short(struct mca_coll_pvas_module *m, size_t count,
		     const struct ompi_datatype_t *type)
{
	const size_t most = mca_coll_pvas_nbc_most_copied(mca_coll_pvas_nbc(m));

	return mca_coll_pvas_can_copy(most, count, type);
}

/* The common part of all reductions; contributions are described unless they are short. */
static struct mca_coll_pvas_call reduction(const void *sbuf, void *rbuf, size_t count,
					   struct ompi_datatype_t *type, struct ompi_op_t *op)
{
	return (struct mca_coll_pvas_call) {
		.from = {
			.buf = sbuf == MPI_IN_PLACE ? rbuf : (char *)sbuf, .result = rbuf,
			.type = type, .count = count,
		},
		.from_kind = MCA_COLL_PVAS_BUFFERS, .nr_blocks = 1, .readers = MCA_COLL_PVAS_ALL,
		.sources = MCA_COLL_PVAS_NONE, .described = true,
		.reduction = {
			.type = type, .op = op, .count = count, .root = MCA_COLL_PVAS_ALL,
			.result = rbuf,
		},
	};
}

int mca_coll_pvas_iallreduce(const void *sbuf, void *rbuf, int count,
			     struct ompi_datatype_t *type, struct ompi_op_t *op,
			     struct ompi_communicator_t *comm, ompi_request_t **request,
			     mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	struct mca_coll_pvas_call call = reduction(sbuf, rbuf, count, type, op);

	(void)comm;
	mca_coll_pvas_nbc_begin(m, allreduce);
	call.described = !is_short(m, count, type);
	call.combine = call.described ? mca_coll_pvas_combine_part : mca_coll_pvas_combine_all;
	return mca_coll_pvas_start(m, &call, request);
}

int mca_coll_pvas_ireduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
			  struct ompi_op_t *op, int root, struct ompi_communicator_t *comm,
			  ompi_request_t **request, mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	struct mca_coll_pvas_call call = reduction(sbuf, rbuf, count, type, op);

	(void)comm;
	if (!mca_coll_pvas_prefers(false))
		return mca_coll_pvas_pass_on_nbc(m, ireduce, request, sbuf, rbuf, count, type, op,
						 root);
	mca_coll_pvas_nbc_begin(m, reduce);
	call.reduction.root = root;
	if (m->rank != root)
		call.from.result = NULL;
	call.described = !is_short(m, count, type);
	if (call.described)
		call.combine = mca_coll_pvas_combine_part;
	else if (m->rank == root)
		call.combine = mca_coll_pvas_combine_all;
	else
		call.readers = root;
	return mca_coll_pvas_start(m, &call, request);
}

/* With MPI_IN_PLACE the result may lie where others still read, so it is kept until they have. */
static int reduce_scatter(struct mca_coll_pvas_module *m, bool in_place,
			  struct mca_coll_pvas_call *call, ompi_request_t **request)
{
	struct mca_coll_pvas_reduction *r = &call->reduction;
	ptrdiff_t gap, span = opal_datatype_span(&r->type->super, r->own, &gap);

	call->combine = mca_coll_pvas_combine_own;
	if (in_place) {
		call->in_place = r->result;
		call->kept = malloc(span + 1);
		if (!call->kept)
			return OMPI_ERR_OUT_OF_RESOURCE;
		r->result = call->kept - gap;
	}
	return mca_coll_pvas_start(m, call, request);
}

int mca_coll_pvas_ireduce_scatter(const void *sbuf, void *rbuf, const int *rcounts,
				  struct ompi_datatype_t *type, struct ompi_op_t *op,
				  struct ompi_communicator_t *comm, ompi_request_t **request,
				  mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	struct mca_coll_pvas_call call;
	size_t total = 0, first = 0;
	int i;

	(void)comm;
	if (!mca_coll_pvas_prefers(false))
		return mca_coll_pvas_pass_on_nbc(m, ireduce_scatter, request, sbuf, rbuf, rcounts,
						 type, op);
	mca_coll_pvas_nbc_begin(m, reduce_scatter);
	for (i = 0; i < m->size; i++) {
		if (i == m->rank)
			first = total;
		total += rcounts[i];
	}
	call = reduction(sbuf, rbuf, total, type, op);
	call.reduction.first = first;
	call.reduction.own = rcounts[m->rank];
	call.reduction.halving = true;
	return reduce_scatter(m, sbuf == MPI_IN_PLACE, &call, request);
}

int mca_coll_pvas_ireduce_scatter_block(const void *sbuf, void *rbuf, int rcount,
					struct ompi_datatype_t *type, struct ompi_op_t *op,
					struct ompi_communicator_t *comm,
					ompi_request_t **request, mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	struct mca_coll_pvas_call call;
	const size_t count = rcount;

	(void)comm;
	if (!mca_coll_pvas_prefers(false))
		return mca_coll_pvas_pass_on_nbc(m, ireduce_scatter_block, request, sbuf, rbuf,
						 rcount, type, op);
	mca_coll_pvas_nbc_begin(m, reduce_scatter_block);
	call = reduction(sbuf, rbuf, m->size * count, type, op);
	call.reduction.first = m->rank * count;
	call.reduction.own = count;
	return reduce_scatter(m, sbuf == MPI_IN_PLACE, &call, request);
}

static int scan(struct mca_coll_pvas_module *m, struct mca_coll_pvas_call *call,
		ompi_request_t **request)
{
	call->described = !is_short(m, call->reduction.count, call->reduction.type);
	call->combine = call->described ? mca_coll_pvas_scan_part : mca_coll_pvas_scan_own;
	call->reduction.ranks = call->described ? 0 : m->rank + 1;
	return mca_coll_pvas_start(m, call, request);
}

int mca_coll_pvas_iscan(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
			struct ompi_op_t *op, struct ompi_communicator_t *comm,
			ompi_request_t **request, mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	struct mca_coll_pvas_call call = reduction(sbuf, rbuf, count, type, op);

	(void)comm;
	if (!mca_coll_pvas_prefers(false))
		return mca_coll_pvas_pass_on_nbc(m, iscan, request, sbuf, rbuf, count, type, op);
	mca_coll_pvas_nbc_begin(m, scan);
	return scan(m, &call, request);
}

int mca_coll_pvas_iexscan(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
			  struct ompi_op_t *op, struct ompi_communicator_t *comm,
			  ompi_request_t **request, mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	struct mca_coll_pvas_call call = reduction(sbuf, rbuf, count, type, op);

	(void)comm;
	if (!mca_coll_pvas_prefers(false))
		return mca_coll_pvas_pass_on_nbc(m, iexscan, request, sbuf, rbuf, count, type,
						 op);
	mca_coll_pvas_nbc_begin(m, exscan);
	call.reduction.exclusive = true;
	return scan(m, &call, request);
}
