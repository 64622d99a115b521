// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Prefix reductions: x0 op x1 op ... op xr, combined from the left as in coll/basic. Each
 * rank combines a part of the elements for all ranks, so that nobody waits for a neighbour's
 * result.
 */
#include "fold.h"
#include "operations.h"

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
			err = mca_coll_pvas_fold_store(f, r, now, first, n);
		else if (before)
			err = mca_coll_pvas_fold_store(f, r, before, first, n);
		if (err)
			rc = err;
		before = now;
	}
	return rc;
}

/*
 * Short contributions are copied where they are posted, and each rank combines its own prefix,
 * without waiting for the ranks behind it.
 */
int mca_coll_pvas_scan_own(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_reduction *r)
{
	const int last = r->exclusive ? m->rank - 1 : m->rank;
	struct mca_coll_pvas_fold fold;
	const char *before = NULL;
	char *now;
	int i, rc = mca_coll_pvas_fold_init(m, &fold, r);

	if (!rc && last > 1)
		rc = mca_coll_pvas_fold_reserve(&fold, r->count, 2);
	for (i = 0; !rc && i <= last; i++) {
		/* The first contribution is only read, where it is. */
		if (i == 0 && last) {
			before = fold.leaf[0];
			continue;
		}
		now = i == last ? r->result : mca_coll_pvas_scratch(&fold, i % 2);
		mca_coll_pvas_fold_load(&fold, now, i, 0, r->count);
		if (before)
			ompi_op_reduce(r->op, (void *)before, now, r->count, r->type);
		before = now;
	}
	mca_coll_pvas_fold_fini(&fold);
	return rc;
}

/* Contributions are described: each rank combines a part of all prefixes. */
int mca_coll_pvas_scan_part(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_reduction *r)
{
	const struct mca_coll_pvas_part part = mca_coll_pvas_part(m, r->count, r->type);
	struct mca_coll_pvas_fold fold;
	size_t at, n;
	int rc = mca_coll_pvas_fold_init(m, &fold, r);

	if (!rc)
		rc = mca_coll_pvas_fold_reserve(&fold, part.end - part.first, 2);
	for (at = part.first; !rc && at < part.end; at += n) {
		n = part.end - at < fold.step ? part.end - at : fold.step;
		rc = prefixes(m, &fold, r->exclusive, at, n);
	}
	mca_coll_pvas_fold_fini(&fold);
	return rc;
}

static int scan_long(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_buffers *ours,
		     struct mca_coll_pvas_reduction *r)
{
	int rc;

	mca_coll_pvas_post_buffers(m, ours, MCA_COLL_PVAS_BUFFERS, MCA_COLL_PVAS_ALL);
	mca_coll_pvas_wait_posts(m);
	r->posts = mca_coll_pvas_posts(m);
	rc = mca_coll_pvas_scan_part(m, r);
	mca_coll_pvas_finish(m);
	mca_coll_pvas_wait_readers(m);
	return rc;
}

static int scan(struct mca_coll_pvas_module *m, const void *sbuf, void *rbuf, size_t count,
		struct ompi_datatype_t *type, struct ompi_op_t *op, bool exclusive)
{
	const struct mca_coll_pvas_buffers ours = {
		.buf = sbuf == MPI_IN_PLACE ? rbuf : (char *)sbuf, .result = rbuf, .type = type,
		.count = count,
	};
	struct mca_coll_pvas_reduction r = {
		.type = type, .op = op, .count = count, .result = rbuf, .exclusive = exclusive,
	};
	int i, rc = OMPI_SUCCESS;

	if (!mca_coll_pvas_can_copy(mca_coll_pvas_most_copied(m), count, type))
		return scan_long(m, &ours, &r);
	mca_coll_pvas_post(m, ours.buf, count, 1, type, MCA_COLL_PVAS_ALL);
	for (i = 0; i < m->rank; i++)
		mca_coll_pvas_wait_post(m, i);
	r.posts = mca_coll_pvas_posts(m);
	r.ranks = m->rank + 1;
	if (m->rank)
		rc = mca_coll_pvas_scan_own(m, &r);
	else if (!exclusive && ours.buf != rbuf)
		rc = mca_coll_pvas_copy(rbuf, count, type, ours.buf, count, type);
	mca_coll_pvas_finish(m);
	return rc;
}

int mca_coll_pvas_scan(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
		       struct ompi_op_t *op, struct ompi_communicator_t *comm,
		       mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const size_t bytes = mca_coll_pvas_bytes(count, type);

	(void)comm;
	if (!mca_coll_pvas_begin_if(m, scan, bytes >= MCA_COLL_PVAS_LEAST_SCAN))
		return mca_coll_pvas_pass_on(m, scan, sbuf, rbuf, count, type, op);
	return mca_coll_pvas_end(scan(m, sbuf, rbuf, count, type, op, false));
}

int mca_coll_pvas_exscan(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
			 struct ompi_op_t *op, struct ompi_communicator_t *comm,
			 mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const size_t bytes = mca_coll_pvas_bytes(count, type);

	(void)comm;
	if (!mca_coll_pvas_begin_if(m, exscan, bytes >= MCA_COLL_PVAS_LEAST_SCAN))
		return mca_coll_pvas_pass_on(m, exscan, sbuf, rbuf, count, type, op);
	return mca_coll_pvas_end(scan(m, sbuf, rbuf, count, type, op, true));
}
