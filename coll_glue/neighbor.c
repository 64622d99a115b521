// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Exchange with the neighbors of a topology. As in exchange.c, but a rank waits for its
 * sources and for the destinations that read its buffers, and for nobody else.
 */
#include "neighbor.h"
#include "operations.h"

/* Begin an operation, with the neighbors known; false: pass it on. */
static bool begin_next(struct mca_coll_pvas_module *m)
{
	if (!mca_coll_pvas_find_neighbors(m) || !mca_coll_pvas_begin_next(m))
		return false;
	if (!m->neighbors->known)
		mca_coll_pvas_learn_blocks(m);
	return true;
}

#define begin(m, name) mca_coll_pvas_count_call(begin_next(m), mca_coll_pvas_calls(name))

/* @one_block: sources have posted the same data for all their destinations. */
static int receive(struct mca_coll_pvas_module *m, bool one_block,
		   const struct mca_coll_pvas_buffers *to, enum mca_coll_pvas_kind kind)
{
	const struct mca_coll_pvas_neighbors *n = m->neighbors;
	struct mca_coll_pvas_piece piece;
	struct mca_coll_pvas_line *line;
	int i, err, rc = OMPI_SUCCESS;

	for (i = 0; i < n->nr_sources; i++) {
		if (n->sources[i] == MPI_PROC_NULL)
			continue;
		line = mca_coll_pvas_wait_post(m, n->sources[i]);
		piece = mca_coll_pvas_piece(to, kind, i);
		/* The other side of the edge is missing, which is an error of the program. */
		if (n->block[i] < 0)
			err = MPI_ERR_TOPOLOGY;
		else
			err = mca_coll_pvas_fetch(line, one_block ? 0 : n->block[i], 1, piece.at,
						  piece.count, piece.type);
		if (err)
			rc = err;
	}
	mca_coll_pvas_finish(m);
	return rc;
}

/* ---- allgather ---- */

static int allgather(struct mca_coll_pvas_module *m, const void *sbuf, size_t scount,
		     const struct ompi_datatype_t *stype, const struct mca_coll_pvas_buffers *to)
{
	const bool copied = mca_coll_pvas_post(m, sbuf, scount, 1, stype, MCA_COLL_PVAS_NEIGHBORS);
	const int rc = receive(m, true, to, MCA_COLL_PVAS_BUFFERS);

	if (!copied)
		mca_coll_pvas_wait_readers(m);
	return rc;
}

int mca_coll_pvas_neighbor_allgather(const void *sbuf, int scount, struct ompi_datatype_t *stype,
				     void *rbuf, int rcount, struct ompi_datatype_t *rtype,
				     struct ompi_communicator_t *comm,
				     mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;

	(void)comm;
	if (!mca_coll_pvas_prefers(false) || !begin(m, neighbor_allgather))
		return mca_coll_pvas_pass_on(m, neighbor_allgather, sbuf, scount, stype, rbuf,
					     rcount, rtype);
	return mca_coll_pvas_end(allgather(m, sbuf, scount, stype,
					   &(struct mca_coll_pvas_buffers) {
		.buf = rbuf, .type = rtype, .count = rcount,
	}));
}

int mca_coll_pvas_neighbor_allgatherv(const void *sbuf, int scount, struct ompi_datatype_t *stype,
				      void *rbuf, const int *rcounts, const int *displs,
				      struct ompi_datatype_t *rtype,
				      struct ompi_communicator_t *comm,
				      mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;

	(void)comm;
	if (!mca_coll_pvas_prefers(false) || !begin(m, neighbor_allgatherv))
		return mca_coll_pvas_pass_on(m, neighbor_allgatherv, sbuf, scount, stype, rbuf,
					     rcounts, displs, rtype);
	return mca_coll_pvas_end(allgather(m, sbuf, scount, stype,
					   &(struct mca_coll_pvas_buffers) {
		.buf = rbuf, .type = rtype, .counts = rcounts, .displs = displs,
	}));
}

/* ---- alltoall ---- */

static int alltoall(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_buffers *from,
		    const struct mca_coll_pvas_buffers *to, enum mca_coll_pvas_kind kind)
{
	const bool copied = mca_coll_pvas_post_blocks(m, &(struct mca_coll_pvas_blocks) {
		.buffers = from, .kind = kind, .nr = m->neighbors->nr_destinations, .own = -1,
		.receivers = m->neighbors->destinations,
	}, MCA_COLL_PVAS_NEIGHBORS);
	const int rc = receive(m, false, to, kind);

	if (!copied)
		mca_coll_pvas_wait_readers(m);
	return rc;
}

int mca_coll_pvas_neighbor_alltoall(const void *sbuf, int scount, struct ompi_datatype_t *stype,
				    void *rbuf, int rcount, struct ompi_datatype_t *rtype,
				    struct ompi_communicator_t *comm,
				    mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers from = mca_coll_pvas_equal_blocks(sbuf, scount, stype),
	to = mca_coll_pvas_equal_blocks(rbuf, rcount, rtype);

	(void)comm;
	if (!mca_coll_pvas_prefers(false) || !begin(m, neighbor_alltoall))
		return mca_coll_pvas_pass_on(m, neighbor_alltoall, sbuf, scount, stype, rbuf,
					     rcount, rtype);
	return mca_coll_pvas_end(alltoall(m, &from, &to, MCA_COLL_PVAS_BUFFERS));
}

int mca_coll_pvas_neighbor_alltoallv(const void *sbuf, const int *scounts, const int *sdispls,
				     struct ompi_datatype_t *stype, void *rbuf, const int *rcounts,
				     const int *rdispls, struct ompi_datatype_t *rtype,
				     struct ompi_communicator_t *comm,
				     mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers from = mca_coll_pvas_runs(sbuf, scounts, sdispls, stype),
	to = mca_coll_pvas_runs(rbuf, rcounts, rdispls, rtype);

	(void)comm;
	if (!mca_coll_pvas_prefers(false) || !begin(m, neighbor_alltoallv))
		return mca_coll_pvas_pass_on(m, neighbor_alltoallv, sbuf, scounts, sdispls, stype,
					     rbuf, rcounts, rdispls, rtype);
	return mca_coll_pvas_end(alltoall(m, &from, &to, MCA_COLL_PVAS_BUFFERS));
}

int mca_coll_pvas_neighbor_alltoallw(const void *sbuf, const int *scounts, const MPI_Aint *sdispls,
				     struct ompi_datatype_t *const *stypes, void *rbuf,
				     const int *rcounts, const MPI_Aint *rdispls,
				     struct ompi_datatype_t *const *rtypes,
				     struct ompi_communicator_t *comm,
				     mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers
	from = mca_coll_pvas_runs(sbuf, scounts, sdispls, stypes),
	to = mca_coll_pvas_runs(rbuf, rcounts, rdispls, rtypes);

	(void)comm;
	if (!begin(m, neighbor_alltoallw))
		return mca_coll_pvas_pass_on(m, neighbor_alltoallw, sbuf, scounts, sdispls, stypes,
					     rbuf, rcounts, rdispls, rtypes);
	return mca_coll_pvas_end(alltoall(m, &from, &to, MCA_COLL_PVAS_BUFFERS_WA));
}
