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
#include "operations.h"

/* The root's part once its data are published; it need not wait if they were copied. */
static void end_root(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_buffers *from,
		     enum mca_coll_pvas_kind kind, bool copied)
{
	/* Before our number: after it, a peer may use the line again that has its share. */
	if (!copied)
		mca_coll_pvas_help_all(m, from, kind);
	mca_coll_pvas_finish(m);
}

/* The other ranks': take the block @block of @nr_blocks. */
static int take(struct mca_coll_pvas_module *m, int root, int block, int nr_blocks, void *to,
		size_t count, const struct ompi_datatype_t *type)
{
	const struct mca_coll_pvas_line *slot = mca_coll_pvas_wait_slot(m);
	const struct mca_coll_pvas_piece ours = { .at = to, .count = count, .type = type };
	int rc = OMPI_SUCCESS;

	if (!mca_coll_pvas_share(m, slot, &ours, root, true))
		rc = mca_coll_pvas_fetch(slot, block, nr_blocks, to, count, type);
	mca_coll_pvas_finish(m);
	return rc;
}

/* Wait for the root, which has published its data, or has passed the operation on. */
static bool root_keeps(struct mca_coll_pvas_module *m, int root)
{
	const struct mca_coll_pvas_line *slot = mca_coll_pvas_slot(m);
	const struct mca_coll_pvas_line *line = mca_coll_pvas_line(m, root);

	mca_coll_pvas_inside++;
	mca_coll_pvas_wait_until(m, mca_coll_pvas_has_posted(slot, m->op) ||
				    mca_coll_pvas_has_posted(line, m->op));
	mca_coll_pvas_inside--;
	return mca_coll_pvas_has_posted(slot, m->op);
}

/* A root that has run ahead may have overwritten its length; then ours is not known to differ. */
static void pass_on_as_root(struct mca_coll_pvas_module *m, int root, size_t bytes)
{
	const struct mca_coll_pvas_line *line = mca_coll_pvas_line(m, root);
	const uint64_t passed = atomic_load_explicit(&line->passed, memory_order_relaxed);

	mca_coll_pvas_post_passed(m, 0);
	if (passed >> 16 == m->op && (passed & 0xffff) != bytes)
		mca_coll_pvas_differs(m, root);
}

/*
 * When ranks outnumber processors: the root's length decides, so that it can keep short data
 * without waiting for anybody. The others must wait for it anyway.
 */
static bool begin_bcast_chosen(struct mca_coll_pvas_module *m, int root, size_t bytes)
{
	const bool faster = bytes <= mca_coll_pvas_component.ring_limit ||
			    bytes >= MCA_COLL_PVAS_LEAST_BCAST;

	if (m->rank == root)
		return mca_coll_pvas_keeps(m, faster, bytes) && mca_coll_pvas_begin(m, bcast);
	if (mca_coll_pvas_number_next(m)) {
		if (root_keeps(m, root)) {
			mca_coll_pvas_inside++;
			mca_coll_pvas_count(operations, 1);
			return mca_coll_pvas_count_call(true, mca_coll_pvas_calls(bcast));
		}
		pass_on_as_root(m, root, bytes);
	}
	mca_coll_pvas_count(passed_on, 1);
	return false;
}

static bool begin_bcast(struct mca_coll_pvas_module *m, int root, size_t bytes)
{
	if (OPAL_UNLIKELY(mca_coll_pvas_component.choose))
		return begin_bcast_chosen(m, root, bytes);
	return mca_coll_pvas_begin(m, bcast);
}

int mca_coll_pvas_bcast(void *buf, int count, struct ompi_datatype_t *type, int root,
			struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers from = {
		.buf = buf, .type = type, .count = count,
	};
	bool copied;

	(void)comm;
	if (!begin_bcast(m, root, mca_coll_pvas_bytes(count, type)))
		return mca_coll_pvas_pass_on(m, bcast, buf, count, type, root);
	if (m->rank != root)
		return mca_coll_pvas_end(take(m, root, 0, 1, buf, count, type));
	copied = mca_coll_pvas_publish_data(m, buf, count, type, false);
	if (!copied)
		mca_coll_pvas_publish_buffers(m, &from, MCA_COLL_PVAS_BUFFERS_SAME);
	end_root(m, &from, MCA_COLL_PVAS_BUFFERS_SAME, copied);
	return mca_coll_pvas_end(OMPI_SUCCESS);
}

/* ---- scatter ---- */

/* The block that the root of a scatter sends to itself */
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
	if (!mca_coll_pvas_begin(m, scatter))
		return mca_coll_pvas_pass_on(m, scatter, sbuf, scount, stype, rbuf, rcount, rtype,
					     root);
	if (m->rank != root)
		return mca_coll_pvas_end(take(m, root, m->rank, m->size, rbuf, rcount, rtype));
	copied = mca_coll_pvas_publish_data(m, sbuf, (size_t)scount * m->size, stype, true);
	if (!copied)
		mca_coll_pvas_publish_buffers(m, &from, MCA_COLL_PVAS_BUFFERS);
	rc = keep_own(m, &from, rbuf, rcount, rtype);
	end_root(m, &from, MCA_COLL_PVAS_BUFFERS, copied);
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
	bool copied;
	int rc;

	(void)comm;
	if (!mca_coll_pvas_prefers(false) || !mca_coll_pvas_begin(m, scatterv))
		return mca_coll_pvas_pass_on(m, scatterv, sbuf, scounts, displs, stype, rbuf,
					     rcount, rtype, root);
	if (m->rank != root)
		return mca_coll_pvas_end(take(m, root, m->rank, m->size, rbuf, rcount, rtype));
	copied = mca_coll_pvas_publish_blocks(m, &(struct mca_coll_pvas_blocks) {
		.buffers = &from, .kind = MCA_COLL_PVAS_BUFFERS, .nr = m->size, .own = m->rank,
	});
	if (!copied)
		mca_coll_pvas_publish_buffers(m, &from, MCA_COLL_PVAS_BUFFERS);
	rc = keep_own(m, &from, rbuf, rcount, rtype);
	end_root(m, &from, MCA_COLL_PVAS_BUFFERS, copied);
	return mca_coll_pvas_end(rc);
}

/* ---- gather ---- */

/* Take what rank @r has for us, or our share of it. */
static int gather_from(struct mca_coll_pvas_module *m, int r,
		       const struct mca_coll_pvas_buffers *to)
{
	const struct mca_coll_pvas_piece piece = mca_coll_pvas_piece(to, MCA_COLL_PVAS_BUFFERS, r);
	const struct mca_coll_pvas_line *line = mca_coll_pvas_wait_post(m, r);

	if (mca_coll_pvas_kind(line) != MCA_COLL_PVAS_SHARE)
		return mca_coll_pvas_fetch(line, 0, 1, piece.at, piece.count, piece.type);
	while (mca_coll_pvas_help(m, to, MCA_COLL_PVAS_BUFFERS, r, false))
		;
	return OMPI_SUCCESS;
}

static int gather_at_root(struct mca_coll_pvas_module *m, const void *sbuf, size_t scount,
			  const struct ompi_datatype_t *stype,
			  const struct mca_coll_pvas_buffers *to)
{
	const struct mca_coll_pvas_piece own = mca_coll_pvas_piece(to, MCA_COLL_PVAS_BUFFERS,
								   m->rank);
	int i, r, err, rc = OMPI_SUCCESS;

	mca_coll_pvas_publish_buffers(m, to, MCA_COLL_PVAS_BUFFERS);
	if (sbuf != MPI_IN_PLACE)
		rc = mca_coll_pvas_copy(own.at, own.count, own.type, sbuf, scount, stype);
	for (i = 1; i < m->size; i++) {
		err = gather_from(m, (m->rank + i) % m->size, to);
		if (err)
			rc = err;
	}
	for (r = 0; r < m->size; r++)
		if (r != m->rank &&
		    mca_coll_pvas_kind(mca_coll_pvas_line(m, r)) == MCA_COLL_PVAS_SHARE)
			mca_coll_pvas_wait_finished(m, r, m->op);
	mca_coll_pvas_finish(m);
	return rc;
}

/* Little is posted as it is; long data are copied together with the root, or by it. */
static void gather_at_others(struct mca_coll_pvas_module *m, const void *sbuf, size_t scount,
			     const struct ompi_datatype_t *stype, int root)
{
	const struct mca_coll_pvas_piece ours = {
		.at = (char *)sbuf, .count = scount, .type = stype,
	};
	bool copied = false;

	if (mca_coll_pvas_is_long(&ours))
		copied = mca_coll_pvas_share(m, mca_coll_pvas_wait_slot(m), &ours, root, false);
	if (!copied)
		copied = mca_coll_pvas_post(m, sbuf, scount, 1, stype, root);
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
	const size_t bytes = m->rank == root ? mca_coll_pvas_bytes(rcount, rtype) :
					       mca_coll_pvas_bytes(scount, stype);

	(void)comm;
	if (!mca_coll_pvas_begin_if(m, gather, bytes >= MCA_COLL_PVAS_LEAST_GATHER))
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
	if (!mca_coll_pvas_prefers(false) || !mca_coll_pvas_begin(m, gatherv))
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
