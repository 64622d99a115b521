// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Operations with a root that only sends or only receives.
 *
 * Short data of the root are copied twice, through a slot or the ring, and nobody waits for
 * anybody behind him, as in XHC (Katevenis, Ploumidis, Marazakis, CLUSTER 2022: "copy-in,
 * copy-out"). Long ones every rank copies from the root's buffer itself: its readers share
 * the cost (contention-aware, as Chakraborty et al., CLUSTER 2017, for kernel-assisted
 * copies, which here need no kernel).
 */
#include "coll_pvas.h"

/* The root's part once its data are published; it need not wait if they were copied. */
static void end_root(struct mca_coll_pvas_module *m, bool copied)
{
	mca_coll_pvas_finish(m);
	if (!copied)
		mca_coll_pvas_wait_all_finished(m, m->op);
}

int mca_coll_pvas_bcast(void *buf, int count, struct ompi_datatype_t *type, int root,
			struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	int rc = OMPI_SUCCESS;
	bool copied;

	(void)comm;
	if (!mca_coll_pvas_begin(m))
		return mca_coll_pvas_pass_on(m, bcast, buf, count, type, root);
	if (m->rank != root) {
		rc = mca_coll_pvas_fetch(m, mca_coll_pvas_wait_slot(m), 0, 1, buf, count, type);
		mca_coll_pvas_finish(m);
		return mca_coll_pvas_end(rc);
	}
	copied = mca_coll_pvas_publish_data(m, buf, count, type);
	if (!copied)
		mca_coll_pvas_publish_buffers(m, &(struct mca_coll_pvas_buffers) {
			.buf = buf, .type = type, .count = count,
		});
	end_root(m, copied);
	return mca_coll_pvas_end(rc);
}

/* ---- scatter ---- */

/* What the root of a scatter sends to itself */
static int keep_own(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_buffers *from,
		    void *rbuf, int rcount, const struct ompi_datatype_t *rtype)
{
	struct mca_coll_pvas_piece own;

	if (rbuf == MPI_IN_PLACE)
		return OMPI_SUCCESS;
	own = mca_coll_pvas_piece(from, MCA_COLL_PVAS_BUFFERS, m->rank);
	return mca_coll_pvas_copy(rbuf, rcount, rtype, own.at, own.count, own.type);
}

int mca_coll_pvas_scatter(const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf,
			  int rcount, struct ompi_datatype_t *rtype, int root,
			  struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers from = {
		.buf = (char *)sbuf, .type = stype, .count = scount,
	};
	bool copied;
	int rc;

	(void)comm;
	if (!mca_coll_pvas_begin(m))
		return mca_coll_pvas_pass_on(m, scatter, sbuf, scount, stype, rbuf, rcount, rtype,
					     root);
	if (m->rank != root) {
		rc = mca_coll_pvas_fetch(m, mca_coll_pvas_wait_slot(m), m->rank, m->size, rbuf,
					 rcount, rtype);
		mca_coll_pvas_finish(m);
		return mca_coll_pvas_end(rc);
	}
	copied = mca_coll_pvas_publish_data(m, sbuf, (size_t)scount * m->size, stype);
	if (!copied)
		mca_coll_pvas_publish_buffers(m, &from);
	rc = keep_own(m, &from, rbuf, rcount, rtype);
	end_root(m, copied);
	return mca_coll_pvas_end(rc);
}

int mca_coll_pvas_scatterv(const void *sbuf, const int *scounts, const int *displs,
			   struct ompi_datatype_t *stype, void *rbuf, int rcount,
			   struct ompi_datatype_t *rtype, int root,
			   struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers from = {
		.buf = (char *)sbuf, .type = stype, .counts = scounts, .displs = displs,
	};
	int rc;

	(void)comm;
	if (!mca_coll_pvas_begin(m))
		return mca_coll_pvas_pass_on(m, scatterv, sbuf, scounts, displs, stype, rbuf,
					     rcount, rtype, root);
	if (m->rank != root) {
		rc = mca_coll_pvas_fetch(m, mca_coll_pvas_wait_slot(m), m->rank, m->size, rbuf,
					 rcount, rtype);
		mca_coll_pvas_finish(m);
		return mca_coll_pvas_end(rc);
	}
	mca_coll_pvas_publish_buffers(m, &from);
	rc = keep_own(m, &from, rbuf, rcount, rtype);
	end_root(m, false);
	return mca_coll_pvas_end(rc);
}

/* ---- gather ---- */

static int gather_at_root(struct mca_coll_pvas_module *m, const void *sbuf, size_t scount,
			  const struct ompi_datatype_t *stype,
			  const struct mca_coll_pvas_buffers *to)
{
	struct mca_coll_pvas_piece piece;
	int r, err, rc = OMPI_SUCCESS;

	for (r = 0; r < m->size; r++) {
		piece = mca_coll_pvas_piece(to, MCA_COLL_PVAS_BUFFERS, r);
		if (r != m->rank)
			err = mca_coll_pvas_fetch(m, mca_coll_pvas_wait_post(m, r), 0, 1, piece.at,
						  piece.count, piece.type);
		else if (sbuf != MPI_IN_PLACE)
			err = mca_coll_pvas_copy(piece.at, piece.count, piece.type, sbuf, scount,
						 stype);
		else
			continue;
		if (err)
			rc = err;
	}
	mca_coll_pvas_finish(m);
	return rc;
}

static void gather_at_others(struct mca_coll_pvas_module *m, const void *sbuf, size_t scount,
			     const struct ompi_datatype_t *stype, int root)
{
	const bool copied = mca_coll_pvas_post(m, sbuf, scount, 1, stype, root);

	mca_coll_pvas_finish(m);
	if (!copied)
		mca_coll_pvas_wait_readers(m);
}

int mca_coll_pvas_gather(const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf,
			 int rcount, struct ompi_datatype_t *rtype, int root,
			 struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	int rc = OMPI_SUCCESS;

	(void)comm;
	if (!mca_coll_pvas_begin(m))
		return mca_coll_pvas_pass_on(m, gather, sbuf, scount, stype, rbuf, rcount, rtype,
					     root);
	if (m->rank != root)
		gather_at_others(m, sbuf, scount, stype, root);
	else
		rc = gather_at_root(m, sbuf, scount, stype, &(struct mca_coll_pvas_buffers) {
			.buf = rbuf, .type = rtype, .count = rcount,
		});
	return mca_coll_pvas_end(rc);
}

int mca_coll_pvas_gatherv(const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf,
			  const int *rcounts, const int *displs, struct ompi_datatype_t *rtype,
			  int root, struct ompi_communicator_t *comm,
			  mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	int rc = OMPI_SUCCESS;

	(void)comm;
	if (!mca_coll_pvas_begin(m))
		return mca_coll_pvas_pass_on(m, gatherv, sbuf, scount, stype, rbuf, rcounts,
					     displs, rtype, root);
	if (m->rank != root)
		gather_at_others(m, sbuf, scount, stype, root);
	else
		rc = gather_at_root(m, sbuf, scount, stype, &(struct mca_coll_pvas_buffers) {
			.buf = rbuf, .type = rtype, .counts = rcounts, .displs = displs,
		});
	return mca_coll_pvas_end(rc);
}
