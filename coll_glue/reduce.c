// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reductions. Short contributions are copied where they are posted, and each rank that wants
 * the result combines them. Of long ones each rank combines a part, reading the others'
 * buffers and storing the result into theirs: no data move that the operation does not need
 * (YHCCL: Peng et al., SC 2023; PiP-MColl: Huang et al., CLUSTER 2023).
 */
#include "fold.h"
#include "operations.h"

#include <stdlib.h>

/* Must the result wait in scratch memory until the contribution at the same place was read? */
static bool must_wait(const struct mca_coll_pvas_line *line)
{
	return !line->buffers.result || line->buffers.result == line->buffers.buf;
}

/* Combine our part step by step, and store it for the root, or for all. */
static int combine_steps(struct mca_coll_pvas_module *m, struct mca_coll_pvas_fold *f,
			 struct mca_coll_pvas_part part, int root)
{
	struct mca_coll_pvas_line *ours = mca_coll_pvas_post_of(*f->posts, m->rank);
	const bool wait = must_wait(ours);
	size_t at, n;
	char *out;
	int i, err, rc = mca_coll_pvas_fold_reserve(f, part.end - part.first, wait);

	for (at = part.first; !rc && at < part.end; at += n) {
		n = part.end - at < f->step ? part.end - at : f->step;
		out = wait ? mca_coll_pvas_scratch(f, 0) :
			     ours->buffers.result + (ptrdiff_t)at * f->extent;
		f->combine(f, out, at, n);
		if (root != MCA_COLL_PVAS_ALL) {
			rc = mca_coll_pvas_fold_store(f, root, out, at, n);
			continue;
		}
		for (i = 0; i < m->size; i++) {
			err = mca_coll_pvas_fold_store(f, (m->rank + i) % m->size, out, at, n);
			if (err)
				rc = err;
		}
	}
	return rc;
}

/* Contributions are described: all ranks share the work. */
int mca_coll_pvas_combine_part(struct mca_coll_pvas_module *m,
			       const struct mca_coll_pvas_reduction *r)
{
	struct mca_coll_pvas_fold fold;
	int rc = mca_coll_pvas_fold_init(m, &fold, r);

	if (!rc) {
		mca_coll_pvas_fold_as_reduce(&fold, r->root == MCA_COLL_PVAS_ALL ? 0 : r->root);
		rc = combine_steps(m, &fold, mca_coll_pvas_part(m, r->count, r->type), r->root);
	}
	mca_coll_pvas_fold_fini(&fold);
	return rc;
}

/* Contributions are in the lines or annexes: combine them all. */
int mca_coll_pvas_combine_all(struct mca_coll_pvas_module *m,
			      const struct mca_coll_pvas_reduction *r)
{
	struct mca_coll_pvas_fold fold;
	int rc = mca_coll_pvas_fold_init(m, &fold, r);

	mca_coll_pvas_fold_as_reduce(&fold, r->root == MCA_COLL_PVAS_ALL ? 0 : r->root);
	if (!rc)
		rc = mca_coll_pvas_fold_reserve(&fold, r->count, 0);
	if (!rc && r->count)
		fold.combine(&fold, r->result, 0, r->count);
	mca_coll_pvas_fold_fini(&fold);
	return rc;
}

static int reduce_long(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_buffers *ours,
		       struct ompi_op_t *op, int root)
{
	int rc;

	mca_coll_pvas_post_buffers(m, ours, MCA_COLL_PVAS_BUFFERS, MCA_COLL_PVAS_ALL);
	mca_coll_pvas_wait_posts(m);
	rc = mca_coll_pvas_combine_part(m, &(struct mca_coll_pvas_reduction) {
		.posts = mca_coll_pvas_posts(m), .type = (struct ompi_datatype_t *)ours->type,
		.op = op, .count = ours->count, .root = root,
	});
	mca_coll_pvas_finish(m);
	mca_coll_pvas_wait_readers(m);
	return rc;
}

static int reduce_posted(struct mca_coll_pvas_module *m, void *result, size_t count,
			 struct ompi_datatype_t *type, struct ompi_op_t *op, int root)
{
	mca_coll_pvas_wait_posts(m);
	return mca_coll_pvas_combine_all(m, &(struct mca_coll_pvas_reduction) {
		.posts = mca_coll_pvas_posts(m), .type = type, .op = op, .count = count,
		.root = root, .result = result,
	});
}

int mca_coll_pvas_allreduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
			    struct ompi_op_t *op, struct ompi_communicator_t *comm,
			    mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers ours = {
		.buf = sbuf == MPI_IN_PLACE ? rbuf : (char *)sbuf, .result = rbuf, .type = type,
		.count = count,
	};
	int rc;

	(void)comm;
	if (!mca_coll_pvas_begin(m, allreduce))
		return mca_coll_pvas_pass_on(m, allreduce, sbuf, rbuf, count, type, op);
	if (!mca_coll_pvas_can_copy(mca_coll_pvas_most_copied(m), count, type))
		return mca_coll_pvas_end(reduce_long(m, &ours, op, MCA_COLL_PVAS_ALL));
	mca_coll_pvas_post(m, ours.buf, count, 1, type, MCA_COLL_PVAS_ALL);
	rc = reduce_posted(m, rbuf, count, type, op, MCA_COLL_PVAS_ALL);
	/* Everybody has posted, and so finished the one before: nobody waits to hear of this. */
	if (rc)
		mca_coll_pvas_finish(m);
	return mca_coll_pvas_end(rc);
}

int mca_coll_pvas_reduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
			 struct ompi_op_t *op, int root, struct ompi_communicator_t *comm,
			 mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers ours = {
		.buf = sbuf == MPI_IN_PLACE ? rbuf : (char *)sbuf,
		.result = m->rank == root ? rbuf : NULL, .type = type, .count = count,
	};
	int rc = OMPI_SUCCESS;
	const size_t bytes = mca_coll_pvas_bytes(count, type);

	(void)comm;
	if (!mca_coll_pvas_begin_if(m, reduce, bytes >= MCA_COLL_PVAS_LEAST_REDUCE))
		return mca_coll_pvas_pass_on(m, reduce, sbuf, rbuf, count, type, op, root);
	if (!mca_coll_pvas_can_copy(mca_coll_pvas_most_copied(m), count, type))
		return mca_coll_pvas_end(reduce_long(m, &ours, op, root));
	mca_coll_pvas_post(m, ours.buf, count, 1, type, root);
	if (m->rank == root)
		rc = reduce_posted(m, rbuf, count, type, op, root);
	mca_coll_pvas_finish(m);
	return mca_coll_pvas_end(rc);
}

/* ---- reduce_scatter ---- */

/* coll/basic's limit for recursive halving */
#define BASIC_LONG (8 << 20)

/* Combine elements @first to @first + @count of the contributions into @result. */
static int combine_block(struct mca_coll_pvas_fold *f, char *result, size_t first, size_t count)
{
	size_t at, n;
	int rc = mca_coll_pvas_fold_reserve(f, count, 0);

	for (at = 0; !rc && at < count; at += n) {
		n = count - at < f->step ? count - at : f->step;
		f->combine(f, result + (ptrdiff_t)at * f->extent, first + at, n);
	}
	return rc;
}

static void choose_order(struct mca_coll_pvas_module *m, struct mca_coll_pvas_fold *f,
			 size_t total, bool halving)
{
	ptrdiff_t gap;

	if (halving && ompi_op_is_commute(f->op) &&
	    opal_datatype_span(&f->type->super, total, &gap) < BASIC_LONG)
		mca_coll_pvas_fold_as_halving(f, m->rank);
	else
		mca_coll_pvas_fold_as_reduce(f, 0);
}

/* Each rank combines its own block. */
int mca_coll_pvas_combine_own(struct mca_coll_pvas_module *m,
			      const struct mca_coll_pvas_reduction *r)
{
	struct mca_coll_pvas_fold fold;
	int rc = mca_coll_pvas_fold_init(m, &fold, r);

	choose_order(m, &fold, r->count, r->halving);
	if (!rc && r->own)
		rc = combine_block(&fold, r->result, r->first, r->own);
	mca_coll_pvas_fold_fini(&fold);
	return rc;
}

/* Contributions are copied, as in an allreduce: nobody waits for its readers. */
static int reduce_scatter_short(struct mca_coll_pvas_module *m, const void *buf,
				struct mca_coll_pvas_reduction *r)
{
	int rc;

	mca_coll_pvas_post(m, buf, r->count, 1, r->type, MCA_COLL_PVAS_ALL);
	mca_coll_pvas_wait_posts(m);
	r->posts = mca_coll_pvas_posts(m);
	rc = mca_coll_pvas_combine_own(m, r);
	if (rc)
		mca_coll_pvas_finish(m);
	return rc;
}

/*
 * With MPI_IN_PLACE the result may lie where others still read, so it is kept until they have.
 * @r->result is where the result is to be in the end.
 */
static int reduce_scatter_long(struct mca_coll_pvas_module *m, const void *sbuf,
			       struct mca_coll_pvas_reduction *r)
{
	const bool in_place = sbuf == MPI_IN_PLACE;
	char *const result = r->result, *kept = NULL;
	ptrdiff_t gap, span = opal_datatype_span(&r->type->super, r->own, &gap);
	int rc = OMPI_SUCCESS;

	mca_coll_pvas_post_buffers(m, &(struct mca_coll_pvas_buffers) {
		.buf = in_place ? result : (char *)sbuf, .type = r->type, .count = r->count,
	}, MCA_COLL_PVAS_BUFFERS, MCA_COLL_PVAS_ALL);
	mca_coll_pvas_wait_posts(m);
	r->posts = mca_coll_pvas_posts(m);
	if (in_place) {
		kept = malloc(span + 1);
		r->result = kept - gap;
		rc = kept ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
	}
	if (!rc)
		rc = mca_coll_pvas_combine_own(m, r);
	mca_coll_pvas_finish(m);
	mca_coll_pvas_wait_readers(m);
	if (in_place && !rc)
		rc = mca_coll_pvas_copy(result, r->own, r->type, r->result, r->own, r->type);
	free(kept);
	return rc;
}

static int reduce_scatter(struct mca_coll_pvas_module *m, const void *sbuf,
			  struct mca_coll_pvas_reduction *r)
{
	if (mca_coll_pvas_can_copy(mca_coll_pvas_most_copied(m), r->count, r->type))
		return reduce_scatter_short(m, sbuf == MPI_IN_PLACE ? r->result : sbuf, r);
	return reduce_scatter_long(m, sbuf, r);
}

int mca_coll_pvas_reduce_scatter(const void *sbuf, void *rbuf, const int *rcounts,
				 struct ompi_datatype_t *type, struct ompi_op_t *op,
				 struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	size_t total = 0, first = 0;
	bool faster;
	int i;

	(void)comm;
	for (i = 0; i < m->size; i++) {
		if (i == m->rank)
			first = total;
		total += rcounts[i];
	}
	faster = mca_coll_pvas_bytes(total, type) / m->size >= MCA_COLL_PVAS_LEAST_REDUCE_SCATTER;
	if (!mca_coll_pvas_begin_if(m, reduce_scatter, faster))
		return mca_coll_pvas_pass_on(m, reduce_scatter, sbuf, rbuf, rcounts, type, op);
	return mca_coll_pvas_end(reduce_scatter(m, sbuf, &(struct mca_coll_pvas_reduction) {
		.type = type, .op = op, .count = total, .result = rbuf, .first = first,
		.own = rcounts[m->rank], .halving = true,
	}));
}

int mca_coll_pvas_reduce_scatter_block(const void *sbuf, void *rbuf, int rcount,
				       struct ompi_datatype_t *type, struct ompi_op_t *op,
				       struct ompi_communicator_t *comm,
				       mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const size_t count = rcount;
	const size_t bytes = mca_coll_pvas_bytes(rcount, type);

	(void)comm;
	if (!mca_coll_pvas_begin_if(m, reduce_scatter_block,
				    bytes >= MCA_COLL_PVAS_LEAST_REDUCE_SCATTER))
		return mca_coll_pvas_pass_on(m, reduce_scatter_block, sbuf, rbuf, rcount, type, op);
	return mca_coll_pvas_end(reduce_scatter(m, sbuf, &(struct mca_coll_pvas_reduction) {
		.type = type, .op = op, .count = m->size * count, .result = rbuf,
		.first = m->rank * count, .own = count,
	}));
}
