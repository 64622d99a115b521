// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Prefix reductions: x0 op x1 op ... op xr, combined from the left as in coll/basic. Each
 * rank combines a part of the elements for all ranks, so that nobody waits for a neighbour's
 * result.
 */
#include "fold.h"
#include "operations.h"

/* Store a part of the result where rank @r wants it. */
static int store(struct mca_coll_pvas_module *m, struct mca_coll_pvas_fold *f, int r,
		 const char *from, size_t first, size_t n)
{
	const struct mca_coll_pvas_buffers *b = &mca_coll_pvas_line(m, r)->buffers;

	return mca_coll_pvas_copy(b->result + (ptrdiff_t)first * mca_coll_pvas_extent(b->type), n,
				  b->type, from, n, f->type);
}

/*
 * Elements @first to @first + @n of all results. A rank's contribution is loaded before its
 * result is stored, for they can be one buffer.
 */
static int prefixes(struct mca_coll_pvas_module *m, struct mca_coll_pvas_fold *f, bool exclusive,
		    size_t first, size_t n)
{
	char *before = NULL, *now;
	int r, err, rc = OMPI_SUCCESS;

	for (r = 0; r < m->size; r++) {
		now = mca_coll_pvas_scratch(f, r % 2);
		mca_coll_pvas_fold_load(f, now, r, first, n);
		if (before)
			ompi_op_reduce(f->op, before, now, n, f->type);
		err = OMPI_SUCCESS;
		if (!exclusive)
			err = store(m, f, r, now, first, n);
		else if (before)
			err = store(m, f, r, before, first, n);
		if (err)
			rc = err;
		before = now;
	}
	return rc;
}

/* Short contributions are copied where they are posted, and each rank combines its own prefix. */
static int scan_posted(struct mca_coll_pvas_module *m, void *result, size_t count,
		       struct ompi_datatype_t *type, struct ompi_op_t *op, bool exclusive)
{
	const int last = exclusive ? m->rank - 1 : m->rank;
	struct mca_coll_pvas_fold fold;
	char *before, *now;
	int r, rc;

	mca_coll_pvas_wait_posts(m);
	rc = mca_coll_pvas_fold_init(m, &fold, count, type, op);
	if (!rc)
		rc = mca_coll_pvas_fold_reserve(&fold, count, 2);
	for (r = 0, before = NULL; !rc && r <= last; r++, before = now) {
		now = r == last ? result : mca_coll_pvas_scratch(&fold, r % 2);
		mca_coll_pvas_fold_load(&fold, now, r, 0, count);
		if (before)
			ompi_op_reduce(op, before, now, count, type);
	}
	mca_coll_pvas_fold_fini(&fold);
	if (rc)
		mca_coll_pvas_finish(m);
	return rc;
}

static int scan_long(struct mca_coll_pvas_module *m, const void *sbuf, void *rbuf, size_t count,
		     struct ompi_datatype_t *type, struct ompi_op_t *op, bool exclusive)
{
	struct mca_coll_pvas_fold fold;
	struct mca_coll_pvas_part part;
	size_t at, n;
	int rc;

	mca_coll_pvas_post_buffers(m, &(struct mca_coll_pvas_buffers) {
		.buf = sbuf == MPI_IN_PLACE ? rbuf : (char *)sbuf, .result = rbuf, .type = type,
		.count = count,
	}, MCA_COLL_PVAS_BUFFERS, MCA_COLL_PVAS_ALL);
	mca_coll_pvas_wait_posts(m);
	rc = mca_coll_pvas_fold_init(m, &fold, count, type, op);
	part = mca_coll_pvas_part(m, count, type);
	if (!rc)
		rc = mca_coll_pvas_fold_reserve(&fold, part.end - part.first, 2);
	for (at = part.first; !rc && at < part.end; at += n) {
		n = part.end - at < fold.step ? part.end - at : fold.step;
		rc = prefixes(m, &fold, exclusive, at, n);
	}
	mca_coll_pvas_fold_fini(&fold);
	mca_coll_pvas_finish(m);
	mca_coll_pvas_wait_readers(m);
	return rc;
}

static int scan(struct mca_coll_pvas_module *m, const void *sbuf, void *rbuf, size_t count,
		struct ompi_datatype_t *type, struct ompi_op_t *op, bool exclusive)
{
	if (!mca_coll_pvas_can_copy(m, count, type))
		return scan_long(m, sbuf, rbuf, count, type, op, exclusive);
	mca_coll_pvas_post(m, sbuf == MPI_IN_PLACE ? rbuf : sbuf, count, 1, type,
			   MCA_COLL_PVAS_ALL);
	return scan_posted(m, rbuf, count, type, op, exclusive);
}

int mca_coll_pvas_scan(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
		       struct ompi_op_t *op, struct ompi_communicator_t *comm,
		       mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;

	(void)comm;
	if (!mca_coll_pvas_begin(m))
		return mca_coll_pvas_pass_on(m, scan, sbuf, rbuf, count, type, op);
	return mca_coll_pvas_end(scan(m, sbuf, rbuf, count, type, op, false));
}

int mca_coll_pvas_exscan(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
			 struct ompi_op_t *op, struct ompi_communicator_t *comm,
			 mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;

	(void)comm;
	if (!mca_coll_pvas_begin(m))
		return mca_coll_pvas_pass_on(m, exscan, sbuf, rbuf, count, type, op);
	return mca_coll_pvas_end(scan(m, sbuf, rbuf, count, type, op, true));
}
