// SPDX-License-Identifier: LGPL-2.1-or-later
/* Non-blocking exchange with the neighbors of a topology. */
#include "nbc_operations.h"
#include "neighbor.h"

static int exchange(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_buffers *from,
		    enum mca_coll_pvas_kind from_kind, const struct mca_coll_pvas_buffers *to,
		    enum mca_coll_pvas_kind to_kind, ompi_request_t **request)
{
	const bool same = from_kind == MCA_COLL_PVAS_BUFFERS_SAME;
	struct mca_coll_pvas_call call = {
		.from = *from, .from_kind = from_kind, .to = *to, .to_kind = to_kind,
		.nr_blocks = same ? 1 : m->neighbors->nr_destinations,
		.readers = MCA_COLL_PVAS_NEIGHBORS, .sources = MCA_COLL_PVAS_NEIGHBORS,
		.described = !same && !m->neighbors->known,
	};

	/* In a distributed graph a destination may have to look itself up in our list. */
	call.from.result = (char *)m->neighbors;
	return mca_coll_pvas_start(m, &call, request);
}

static bool begin_next(struct mca_coll_pvas_module *m)
{
	if (!mca_coll_pvas_find_neighbors(m))
		return false;
	mca_coll_pvas_nbc_begin_next(m);
	return true;
}

#define begin(m, name) mca_coll_pvas_count_call(begin_next(m), mca_coll_pvas_calls(name))

int mca_coll_pvas_ineighbor_allgather(const void *sbuf, int scount, struct ompi_datatype_t *stype,
				      void *rbuf, int rcount, struct ompi_datatype_t *rtype,
				      struct ompi_communicator_t *comm, ompi_request_t **request,
				      mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers from = mca_coll_pvas_equal_blocks(sbuf, scount, stype),
	to = mca_coll_pvas_equal_blocks(rbuf, rcount, rtype);

	(void)comm;
	if (!mca_coll_pvas_prefers(false) || !begin(m, neighbor_allgather))
		return mca_coll_pvas_pass_on_nbc(m, ineighbor_allgather, request, sbuf, scount,
						 stype, rbuf, rcount, rtype);
	return exchange(m, &from, MCA_COLL_PVAS_BUFFERS_SAME, &to, MCA_COLL_PVAS_BUFFERS, request);
}

int mca_coll_pvas_ineighbor_allgatherv(const void *sbuf, int scount,
				       struct ompi_datatype_t *stype, void *rbuf,
				       const int *rcounts, const int *displs,
				       struct ompi_datatype_t *rtype,
				       struct ompi_communicator_t *comm, ompi_request_t **request,
				       mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers from = {
		.buf = (char *)sbuf, .type = stype, .count = scount,
	}, to = { .buf = rbuf, .type = rtype, .counts = rcounts, .displs = displs };

	(void)comm;
	if (!mca_coll_pvas_prefers(false) || !begin(m, neighbor_allgatherv))
		return mca_coll_pvas_pass_on_nbc(m, ineighbor_allgatherv, request, sbuf, scount,
						 stype, rbuf, rcounts, displs, rtype);
	return exchange(m, &from, MCA_COLL_PVAS_BUFFERS_SAME, &to, MCA_COLL_PVAS_BUFFERS, request);
}

int mca_coll_pvas_ineighbor_alltoall(const void *sbuf, int scount, struct ompi_datatype_t *stype,
				     void *rbuf, int rcount, struct ompi_datatype_t *rtype,
				     struct ompi_communicator_t *comm, ompi_request_t **request,
				     mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers from = mca_coll_pvas_equal_blocks(sbuf, scount, stype),
	to = mca_coll_pvas_equal_blocks(rbuf, rcount, rtype);

	(void)comm;
	if (!mca_coll_pvas_prefers(false) || !begin(m, neighbor_alltoall))
		return mca_coll_pvas_pass_on_nbc(m, ineighbor_alltoall, request, sbuf, scount,
						 stype, rbuf, rcount, rtype);
	return exchange(m, &from, MCA_COLL_PVAS_BUFFERS, &to, MCA_COLL_PVAS_BUFFERS, request);
}

int mca_coll_pvas_ineighbor_alltoallv(const void *sbuf, const int *scounts, const int *sdispls,
				      struct ompi_datatype_t *stype, void *rbuf,
				      const int *rcounts, const int *rdispls,
				      struct ompi_datatype_t *rtype,
				      struct ompi_communicator_t *comm, ompi_request_t **request,
				      mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers from = mca_coll_pvas_runs(sbuf, scounts, sdispls, stype),
	to = mca_coll_pvas_runs(rbuf, rcounts, rdispls, rtype);

	(void)comm;
	if (!mca_coll_pvas_prefers(false) || !begin(m, neighbor_alltoallv))
		return mca_coll_pvas_pass_on_nbc(m, ineighbor_alltoallv, request, sbuf, scounts,
						 sdispls, stype, rbuf, rcounts, rdispls, rtype);
	return exchange(m, &from, MCA_COLL_PVAS_BUFFERS, &to, MCA_COLL_PVAS_BUFFERS, request);
}

int mca_coll_pvas_ineighbor_alltoallw(const void *sbuf, const int *scounts,
				      const MPI_Aint *sdispls,
				      struct ompi_datatype_t *const *stypes, void *rbuf,
				      const int *rcounts, const MPI_Aint *rdispls,
				      struct ompi_datatype_t *const *rtypes,
				      struct ompi_communicator_t *comm, ompi_request_t **request,
				      mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers
	from = mca_coll_pvas_runs(sbuf, scounts, sdispls, stypes),
	to = mca_coll_pvas_runs(rbuf, rcounts, rdispls, rtypes);

	(void)comm;
	if (!mca_coll_pvas_prefers(false) || !begin(m, neighbor_alltoallw))
		return mca_coll_pvas_pass_on_nbc(m, ineighbor_alltoallw, request, sbuf, scounts,
						 sdispls, stypes, rbuf, rcounts, rdispls, rtypes);
	return exchange(m, &from, MCA_COLL_PVAS_BUFFERS_WA, &to, MCA_COLL_PVAS_BUFFERS_WA, request);
}
