// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The order in which the contributions to a reduction are combined: exactly coll/basic's, to
 * which operand is which, so that floating-point results are equal to the last bit, and the
 * order of ranks is kept for operators that do not commute. Contributions are read where they
 * are; intermediate results are some KiB, and stay in the cache.
 */
#include "fold.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of an intermediate result */
#define STEP_BYTES (8 << 10)

/* Elements that are not divided: more than a vector register has */
#define UNIT 64

/* Up to this number of ranks coll/basic combines linearly. */
#define BASIC_CROSSOVER 4

static void apply(struct mca_coll_pvas_fold *f, const char *source, char *target, size_t n)
{
	ompi_op_reduce(f->op, (char *)source, target, n, f->type);
}

static const char *leaf(const struct mca_coll_pvas_fold *f, int rank, size_t first)
{
	return f->leaf[rank] + (ptrdiff_t)first * f->extent;
}

void mca_coll_pvas_fold_load(struct mca_coll_pvas_fold *f, char *out, int rank, size_t first,
			     size_t n)
{
	mca_coll_pvas_copy(out, n, f->type, leaf(f, rank, first), n, f->type);
}

/* ---- orders ---- */

/* ompi_coll_base_reduce_intra_basic_linear(): x0 op (x1 op (... op xn)) */
static void linear(struct mca_coll_pvas_fold *f, char *out, size_t first, size_t n)
{
	int rank = f->size - 1;

	mca_coll_pvas_fold_load(f, out, rank, first, n);
	while (rank--)
		apply(f, leaf(f, rank, first), out, n);
}

static int rank_at(const struct mca_coll_pvas_fold *f, int v)
{
	return (v + f->base) % f->size;
}

/* The subtree of @v, with intermediate results from @depth on */
static void binomial_at(struct mca_coll_pvas_fold *f, int v, int depth, char *out, size_t first,
			size_t n)
{
	bool any = false;
	int mask, child;

	for (mask = 1; mask < f->size && !(v & mask); mask <<= 1) {
		child = v | mask;
		if (child >= f->size)
			continue;
		if (!any) {
			binomial_at(f, child, depth, out, first, n);
			apply(f, leaf(f, rank_at(f, v), first), out, n);
			any = true;
		} else if (child & 1 || child == f->size - 1) {
			/* It has no children. */
			apply(f, leaf(f, rank_at(f, child), first), out, n);
		} else {
			char *scratch = mca_coll_pvas_scratch(f, depth);

			binomial_at(f, child, depth + 1, scratch, first, n);
			apply(f, scratch, out, n);
		}
	}
	if (!any)
		mca_coll_pvas_fold_load(f, out, rank_at(f, v), first, n);
}

/* mca_coll_basic_reduce_log_intra() */
static void binomial(struct mca_coll_pvas_fold *f, char *out, size_t first, size_t n)
{
	binomial_at(f, 0, 1, out, first, n);
}

static int cube(int size)
{
	int corners = 1;

	while (2 * corners <= size)
		corners *= 2;
	return corners;
}

/*
 * The value at @corner of a hypercube after the step with @mask. The ranks that are too many
 * for a cube have given theirs to their neighbours.
 */
static void halving_at(struct mca_coll_pvas_fold *f, int corner, int mask, int depth, char *out,
		       size_t first, size_t n)
{
	const int corners = cube(f->size), extra = f->size - corners;

	if (mask < corners) {
		char *scratch = mca_coll_pvas_scratch(f, depth);

		halving_at(f, corner, 2 * mask, depth + 1, out, first, n);
		halving_at(f, corner ^ mask, 2 * mask, depth + 1, scratch, first, n);
		apply(f, scratch, out, n);
	} else if (corner < extra) {
		mca_coll_pvas_fold_load(f, out, 2 * corner + 1, first, n);
		apply(f, leaf(f, 2 * corner, first), out, n);
	} else {
		mca_coll_pvas_fold_load(f, out, corner + extra, first, n);
	}
}

/* mca_coll_basic_reduce_scatter_intra(), recursive halving */
static void halving(struct mca_coll_pvas_fold *f, char *out, size_t first, size_t n)
{
	halving_at(f, f->position, 1, 1, out, first, n);
}

void mca_coll_pvas_fold_as_reduce(struct mca_coll_pvas_fold *f, int root)
{
	f->base = root;
	f->combine = ompi_op_is_commute(f->op) && f->size > BASIC_CROSSOVER ? binomial : linear;
}

void mca_coll_pvas_fold_as_halving(struct mca_coll_pvas_fold *f, int rank)
{
	const int extra = f->size - cube(f->size);

	f->position = rank < 2 * extra ? rank / 2 : rank - extra;
	f->combine = halving;
}

/* ---- contributions ---- */

/* A peer's contribution, copied if its datatype has another layout than ours */
static int contribution(struct mca_coll_pvas_fold *f, const struct mca_coll_pvas_line *line,
			int rank, size_t count)
{
	const unsigned int kind = mca_coll_pvas_kind(line);
	const struct mca_coll_pvas_buffers *b = &line->buffers;
	ptrdiff_t gap, span;
	char *copy;

	if (mca_coll_pvas_was_copied(kind)) {
		f->leaf[rank] = kind == MCA_COLL_PVAS_COPY ? line->record.at : line->data;
		return OMPI_SUCCESS;
	}
	f->leaf[rank] = b->buf;
	if (mca_coll_pvas_same_layout(b->type, f->type))
		return OMPI_SUCCESS;
	span = opal_datatype_span(&f->type->super, count, &gap);
	if (!f->copies)
		f->copies = malloc(f->size * span + 1);
	if (!f->copies)
		return OMPI_ERR_OUT_OF_RESOURCE;
	copy = f->copies + rank * span - gap;
	f->leaf[rank] = copy;
	return mca_coll_pvas_copy(copy, count, f->type, b->buf, b->count, b->type);
}

/* Has the rank posted as much, and in the same way? */
static bool agrees(const struct mca_coll_pvas_line *line, unsigned int kind, size_t bytes)
{
	const struct mca_coll_pvas_buffers *b = &line->buffers;

	if (mca_coll_pvas_kind(line) != kind)
		return false;
	if (kind == MCA_COLL_PVAS_COPY)
		return line->record.length == bytes;
	return kind <= MCA_COLL_PVAS_INLINE ||
	       b->count * ((const struct ompi_datatype_t *)b->type)->super.size == bytes;
}

static int collect(struct mca_coll_pvas_fold *f, int own_rank, size_t count)
{
	const unsigned int kind = mca_coll_pvas_kind(mca_coll_pvas_post_of(*f->posts, own_rank));
	struct mca_coll_pvas_line *line;
	int r, rc = OMPI_SUCCESS;

	for (r = 0; r < f->size && !rc; r++) {
		line = mca_coll_pvas_post_of(*f->posts, r);
		rc = agrees(line, kind, count * f->type->super.size) ?
			     contribution(f, line, r, count) : MPI_ERR_TRUNCATE;
	}
	return rc;
}

/* Collect what all ranks have posted. */
int mca_coll_pvas_fold_init(struct mca_coll_pvas_module *m, struct mca_coll_pvas_fold *f,
			    const struct mca_coll_pvas_reduction *r)
{
	/* Without clearing @few, which would take longer than a short reduction does */
	f->posts = &r->posts;
	f->op = r->op;
	f->type = r->type;
	f->extent = mca_coll_pvas_extent(r->type);
	f->size = mca_coll_pvas_contributors(m, r);
	f->leaf = f->few;
	f->copies = NULL;
	f->scratch_free = NULL;
	f->combine = NULL;
	if (f->size > MCA_COLL_PVAS_FEW)
		f->leaf = malloc(f->size * sizeof(*f->leaf));
	if (!f->leaf)
		return OMPI_ERR_OUT_OF_RESOURCE;
	return collect(f, m->rank, r->count);
}

/* A tree has its root's result in the first one or in the caller's, and one for each level. */
static int nr_scratch(const struct mca_coll_pvas_fold *f, int own)
{
	int nr = 1, corners;

	if (!f->combine || f->combine == linear)
		return own;
	for (corners = 1; corners < f->size; corners *= 2)
		nr++;
	return nr;
}

/* Room for intermediate results of a step, of which the caller uses the first @own */
int mca_coll_pvas_fold_reserve(struct mca_coll_pvas_fold *f, size_t count, int own)
{
	const int nr = nr_scratch(f, own);
	ptrdiff_t gap;

	f->step = count;
	if (f->extent > 0 && (size_t)f->extent * count > STEP_BYTES) {
		f->step = STEP_BYTES / f->extent;
		f->step = f->step > UNIT ? f->step / UNIT * UNIT : f->step ? f->step : 1;
	}
	if (!nr)
		return OMPI_SUCCESS;
	f->stride = opal_datatype_span(&f->type->super, f->step, &gap);
	f->stride = (f->stride + MCA_COLL_PVAS_CACHE_LINE - 1) / MCA_COLL_PVAS_CACHE_LINE *
		    MCA_COLL_PVAS_CACHE_LINE;
	f->scratch_free = malloc(nr * f->stride + 1);
	if (!f->scratch_free)
		return OMPI_ERR_OUT_OF_RESOURCE;
	f->scratch = f->scratch_free - gap;
	return OMPI_SUCCESS;
}

void mca_coll_pvas_fold_fini(struct mca_coll_pvas_fold *f)
{
	if (f->leaf != f->few)
		free(f->leaf);
	free(f->copies);
	free(f->scratch_free);
}

/* Store a part of the result where rank @r, which has described its buffers, wants it. */
int mca_coll_pvas_fold_store(struct mca_coll_pvas_fold *f, int r, const char *from, size_t first,
			     size_t n)
{
	const struct mca_coll_pvas_buffers *b = &mca_coll_pvas_post_of(*f->posts, r)->buffers;
	char *to = b->result + (ptrdiff_t)first * mca_coll_pvas_extent(b->type);

	if (to == from)
		return OMPI_SUCCESS;
	return mca_coll_pvas_copy(to, n, b->type, from, n, f->type);
}

/* ---- sharing the work ---- */

/* Can contributions of at most @most bytes be posted, and combined where they are posted? */
bool mca_coll_pvas_can_copy(size_t most, size_t count, const struct ompi_datatype_t *type)
{
	return count * type->super.size <= most && mca_coll_pvas_is_plain(type);
}

struct mca_coll_pvas_part mca_coll_pvas_part(const struct mca_coll_pvas_module *m, size_t count,
					     const struct ompi_datatype_t *type)
{
	const size_t units = (count + UNIT - 1) / UNIT;
	const size_t bytes = count * type->super.size;
	size_t ranks = bytes / mca_coll_pvas_component.share;
	struct mca_coll_pvas_part part;
	size_t each;

	ranks = ranks < 1 ? 1 : ranks < (size_t)m->size ? ranks : (size_t)m->size;
	each = (units + ranks - 1) / ranks * UNIT;
	part.first = m->rank * each < count ? m->rank * each : count;
	part.end = part.first + each < count ? part.first + each : count;
	return part;
}
