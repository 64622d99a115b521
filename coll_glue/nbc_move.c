// SPDX-License-Identifier: LGPL-2.1-or-later
/* Non-blocking operations that move data: who fetches which block from whom. */
#include "nbc_operations.h"

#include <stdlib.h>
#include <string.h>

int mca_coll_pvas_ibarrier(struct ompi_communicator_t *comm, ompi_request_t **request,
			   mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;

	(void)comm;
	mca_coll_pvas_nbc_begin(m, barrier);
	return mca_coll_pvas_start(m, &(struct mca_coll_pvas_call) {
		.from = { .type = &ompi_mpi_byte.dt }, .to = { .type = &ompi_mpi_byte.dt },
		.nr_blocks = 1, .readers = MCA_COLL_PVAS_ALL, .sources = MCA_COLL_PVAS_ALL,
	}, request);
}

int mca_coll_pvas_ibcast(void *buf, int count, struct ompi_datatype_t *type, int root,
			 struct ompi_communicator_t *comm, ompi_request_t **request,
			 mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers data = { .buf = buf, .type = type, .count = count };

	(void)comm;
	if (!mca_coll_pvas_prefers(false))
		return mca_coll_pvas_pass_on_nbc(m, ibcast, request, buf, count, type, root);
	mca_coll_pvas_nbc_begin(m, bcast);
	return mca_coll_pvas_start(m, &(struct mca_coll_pvas_call) {
		.from = data, .from_kind = MCA_COLL_PVAS_BUFFERS_SAME,
		.to = data, .to_kind = MCA_COLL_PVAS_BUFFERS_SAME, .nr_blocks = 1,
		.readers = m->rank == root ? MCA_COLL_PVAS_ALL : MCA_COLL_PVAS_NONE,
		.sources = m->rank == root ? MCA_COLL_PVAS_NONE : root,
	}, request);
}

/* ---- gather, scatter ---- */

static int gather(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_buffers *from,
		  const struct mca_coll_pvas_buffers *to, int root, ompi_request_t **request)
{
	const bool receives = m->rank == root;

	return mca_coll_pvas_start(m, &(struct mca_coll_pvas_call) {
		.from = *from, .from_kind = MCA_COLL_PVAS_BUFFERS_SAME,
		.to = *to, .to_kind = MCA_COLL_PVAS_BUFFERS, .nr_blocks = 1,
		.readers = receives ? MCA_COLL_PVAS_NONE : root,
		.sources = receives ? MCA_COLL_PVAS_ALL : MCA_COLL_PVAS_NONE,
		.own = receives && from->buf != MPI_IN_PLACE,
	}, request);
}

int mca_coll_pvas_igather(const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf,
			  int rcount, struct ompi_datatype_t *rtype, int root,
			  struct ompi_communicator_t *comm, ompi_request_t **request,
			  mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers from = mca_coll_pvas_equal_blocks(sbuf, scount, stype),
	to = mca_coll_pvas_equal_blocks(rbuf, rcount, rtype);

	(void)comm;
	if (!mca_coll_pvas_prefers(false))
		return mca_coll_pvas_pass_on_nbc(m, igather, request, sbuf, scount, stype, rbuf,
						 rcount, rtype, root);
	mca_coll_pvas_nbc_begin(m, gather);
	return gather(m, &from, &to, root, request);
}

int mca_coll_pvas_igatherv(const void *sbuf, int scount, struct ompi_datatype_t *stype,
			   void *rbuf, const int *rcounts, const int *displs,
			   struct ompi_datatype_t *rtype, int root,
			   struct ompi_communicator_t *comm, ompi_request_t **request,
			   mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers from = {
		.buf = (char *)sbuf, .type = stype, .count = scount,
	}, to = { .buf = rbuf, .type = rtype, .counts = rcounts, .displs = displs };

	(void)comm;
	if (!mca_coll_pvas_prefers(false))
		return mca_coll_pvas_pass_on_nbc(m, igatherv, request, sbuf, scount, stype, rbuf,
						 rcounts, displs, rtype, root);
	mca_coll_pvas_nbc_begin(m, gatherv);
	return gather(m, &from, &to, root, request);
}

static int scatter(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_buffers *from,
		   const struct mca_coll_pvas_buffers *to, int root, ompi_request_t **request)
{
	const bool sends = m->rank == root;

	return mca_coll_pvas_start(m, &(struct mca_coll_pvas_call) {
		.from = *from, .from_kind = MCA_COLL_PVAS_BUFFERS,
		.to = *to, .to_kind = MCA_COLL_PVAS_BUFFERS_SAME, .nr_blocks = m->size,
		.readers = sends ? MCA_COLL_PVAS_ALL : MCA_COLL_PVAS_NONE,
		.sources = sends ? MCA_COLL_PVAS_NONE : root, .block = m->rank,
		.own = sends && to->buf != MPI_IN_PLACE,
	}, request);
}

int mca_coll_pvas_iscatter(const void *sbuf, int scount, struct ompi_datatype_t *stype,
			   void *rbuf, int rcount, struct ompi_datatype_t *rtype, int root,
			   struct ompi_communicator_t *comm, ompi_request_t **request,
			   mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers from = mca_coll_pvas_equal_blocks(sbuf, scount, stype),
	to = mca_coll_pvas_equal_blocks(rbuf, rcount, rtype);

	(void)comm;
	if (!mca_coll_pvas_prefers(false))
		return mca_coll_pvas_pass_on_nbc(m, iscatter, request, sbuf, scount, stype, rbuf,
						 rcount, rtype, root);
	mca_coll_pvas_nbc_begin(m, scatter);
	return scatter(m, &from, &to, root, request);
}

int mca_coll_pvas_iscatterv(const void *sbuf, const int *scounts, const int *displs,
			    struct ompi_datatype_t *stype, void *rbuf, int rcount,
			    struct ompi_datatype_t *rtype, int root,
			    struct ompi_communicator_t *comm, ompi_request_t **request,
			    mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers from = {
		.buf = (char *)sbuf, .type = stype, .counts = scounts, .displs = displs,
	}, to = { .buf = rbuf, .type = rtype, .count = rcount };

	(void)comm;
	if (!mca_coll_pvas_prefers(false))
		return mca_coll_pvas_pass_on_nbc(m, iscatterv, request, sbuf, scounts, displs,
						 stype, rbuf, rcount, rtype, root);
	mca_coll_pvas_nbc_begin(m, scatterv);
	return scatter(m, &from, &to, root, request);
}

/* ---- allgather ---- */

static int allgather(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_buffers *from,
		     const struct mca_coll_pvas_buffers *to, char *kept, ompi_request_t **request)
{
	const bool in_place = from->buf == MPI_IN_PLACE;
	struct mca_coll_pvas_buffers ours = *from;
	struct mca_coll_pvas_piece piece;

	if (in_place) {
		piece = mca_coll_pvas_piece(to, MCA_COLL_PVAS_BUFFERS, m->rank);
		ours = (struct mca_coll_pvas_buffers) {
			.buf = piece.at, .type = piece.type, .count = piece.count,
		};
	}
	return mca_coll_pvas_start(m, &(struct mca_coll_pvas_call) {
		.from = ours, .from_kind = MCA_COLL_PVAS_BUFFERS_SAME,
		.to = *to, .to_kind = MCA_COLL_PVAS_BUFFERS, .nr_blocks = 1,
		.readers = MCA_COLL_PVAS_ALL, .sources = MCA_COLL_PVAS_ALL, .own = !in_place,
		.kept = kept,
	}, request);
}

/*
 * mpi4py (3.1.6) frees its arrays when MPI_Iallgatherv returns, and Open MPI's own component has
 * read them by then.
 */
static char *keep_arrays(const struct mca_coll_pvas_module *m, struct mca_coll_pvas_buffers *b)
{
	const size_t bytes = m->size * sizeof(int);
	char *kept = malloc(2 * bytes);

	if (!kept)
		return NULL;
	b->counts = memcpy(kept, b->counts, bytes);
	b->displs = memcpy(kept + bytes, b->displs, bytes);
	return kept;
}

int mca_coll_pvas_iallgather(const void *sbuf, int scount, struct ompi_datatype_t *stype,
			     void *rbuf, int rcount, struct ompi_datatype_t *rtype,
			     struct ompi_communicator_t *comm, ompi_request_t **request,
			     mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers from = mca_coll_pvas_equal_blocks(sbuf, scount, stype),
	to = mca_coll_pvas_equal_blocks(rbuf, rcount, rtype);

	(void)comm;
	mca_coll_pvas_nbc_begin(m, allgather);
	return allgather(m, &from, &to, NULL, request);
}

int mca_coll_pvas_iallgatherv(const void *sbuf, int scount, struct ompi_datatype_t *stype,
			      void *rbuf, const int *rcounts, const int *displs,
			      struct ompi_datatype_t *rtype, struct ompi_communicator_t *comm,
			      ompi_request_t **request, mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers from = {
		.buf = (char *)sbuf, .type = stype, .count = scount,
	};
	struct mca_coll_pvas_buffers to = {
		.buf = rbuf, .type = rtype, .counts = rcounts, .displs = displs,
	};
	char *kept = keep_arrays(m, &to);

	(void)comm;
	if (!kept)
		return OMPI_ERR_OUT_OF_RESOURCE;
	mca_coll_pvas_nbc_begin(m, allgatherv);
	return allgather(m, &from, &to, kept, request);
}

/* ---- alltoall ---- */

/* Memory for a copy of all blocks, in their layout */
static char *allocate_blocks(const struct mca_coll_pvas_module *m,
			     const struct mca_coll_pvas_buffers *b, enum mca_coll_pvas_kind kind,
			     struct mca_coll_pvas_buffers *copy)
{
	char *begin = NULL, *end = NULL, *memory;
	struct mca_coll_pvas_piece piece;
	ptrdiff_t gap, span;
	int i;

	for (i = 0; i < m->size; i++) {
		piece = mca_coll_pvas_piece(b, kind, i);
		span = opal_datatype_span(&piece.type->super, piece.count, &gap);
		if (!span)
			continue;
		if (!begin || piece.at + gap < begin)
			begin = piece.at + gap;
		if (!end || piece.at + gap + span > end)
			end = piece.at + gap + span;
	}
	memory = malloc(end - begin + 1);
	*copy = *b;
	copy->buf = memory + (b->buf - begin);
	return memory;
}

static int alltoall(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_buffers *from,
		    const struct mca_coll_pvas_buffers *to, enum mca_coll_pvas_kind kind,
		    ompi_request_t **request)
{
	struct mca_coll_pvas_call call = {
		.from = *from, .from_kind = kind, .to = *to, .to_kind = kind, .nr_blocks = m->size,
		.readers = MCA_COLL_PVAS_ALL, .sources = MCA_COLL_PVAS_ALL, .block = m->rank,
		.own = from->buf != MPI_IN_PLACE, .swap = from->buf == MPI_IN_PLACE,
	};

	if (call.swap) {
		call.kept = allocate_blocks(m, to, kind, &call.from);
		if (!call.kept)
			return OMPI_ERR_OUT_OF_RESOURCE;
	}
	return mca_coll_pvas_start(m, &call, request);
}

int mca_coll_pvas_ialltoall(const void *sbuf, int scount, struct ompi_datatype_t *stype,
			    void *rbuf, int rcount, struct ompi_datatype_t *rtype,
			    struct ompi_communicator_t *comm, ompi_request_t **request,
			    mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers from = mca_coll_pvas_equal_blocks(sbuf, scount, stype),
	to = mca_coll_pvas_equal_blocks(rbuf, rcount, rtype);

	(void)comm;
	if (!mca_coll_pvas_prefers(false))
		return mca_coll_pvas_pass_on_nbc(m, ialltoall, request, sbuf, scount, stype, rbuf,
						 rcount, rtype);
	mca_coll_pvas_nbc_begin(m, alltoall);
	return alltoall(m, &from, &to, MCA_COLL_PVAS_BUFFERS, request);
}

int mca_coll_pvas_ialltoallv(const void *sbuf, const int *scounts, const int *sdispls,
			     struct ompi_datatype_t *stype, void *rbuf, const int *rcounts,
			     const int *rdispls, struct ompi_datatype_t *rtype,
			     struct ompi_communicator_t *comm, ompi_request_t **request,
			     mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers from = mca_coll_pvas_runs(sbuf, scounts, sdispls, stype),
	to = mca_coll_pvas_runs(rbuf, rcounts, rdispls, rtype);

	(void)comm;
	if (!mca_coll_pvas_prefers(false))
		return mca_coll_pvas_pass_on_nbc(m, ialltoallv, request, sbuf, scounts, sdispls,
						 stype, rbuf, rcounts, rdispls, rtype);
	mca_coll_pvas_nbc_begin(m, alltoallv);
	return alltoall(m, &from, &to, MCA_COLL_PVAS_BUFFERS, request);
}

int mca_coll_pvas_ialltoallw(const void *sbuf, const int *scounts, const int *sdispls,
			     struct ompi_datatype_t *const *stypes, void *rbuf,
			     const int *rcounts, const int *rdispls,
			     struct ompi_datatype_t *const *rtypes,
			     struct ompi_communicator_t *comm, ompi_request_t **request,
			     mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers
	from = mca_coll_pvas_runs(sbuf, scounts, sdispls, stypes),
	to = mca_coll_pvas_runs(rbuf, rcounts, rdispls, rtypes);

	(void)comm;
	if (!mca_coll_pvas_prefers(false))
		return mca_coll_pvas_pass_on_nbc(m, ialltoallw, request, sbuf, scounts, sdispls,
						 stypes, rbuf, rcounts, rdispls, rtypes);
	mca_coll_pvas_nbc_begin(m, alltoallw);
	return alltoall(m, &from, &to, MCA_COLL_PVAS_BUFFERS_W, request);
}
