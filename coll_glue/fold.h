/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Combining the contributions to a reduction, in coll/basic's order. */
#ifndef COLL_PVAS_FOLD_H
#define COLL_PVAS_FOLD_H

#include "post.h"

/* Ranks for which no memory must be allocated */
#define MCA_COLL_PVAS_FEW 16

/**
 * struct mca_coll_pvas_reduction - a reduction, when all ranks have posted
 * @posts:	their contributions
 * @count:	elements of each
 * @root:	the rank that has the result, or MCA_COLL_PVAS_ALL
 * @result:	where this rank's is to be stored
 * @first:	reduce_scatter: the first of our elements, which are @own
 * @halving:	reduce_scatter: coll/basic's order for it can apply
 * @exclusive:	exscan
 * @ranks:	the first so many ranks contribute; 0: all
 */
struct mca_coll_pvas_reduction {
	struct mca_coll_pvas_posts posts;
	struct ompi_datatype_t *type;
	struct ompi_op_t *op;
	size_t count;
	int root;
	char *result;
	size_t first;
	size_t own;
	bool halving;
	bool exclusive;
	int ranks;
};

static inline int mca_coll_pvas_contributors(const struct mca_coll_pvas_module *m,
					     const struct mca_coll_pvas_reduction *r)
{
	return r->ranks ? r->ranks : m->size;
}

typedef int mca_coll_pvas_combine_fn(struct mca_coll_pvas_module *m,
				     const struct mca_coll_pvas_reduction *r);

/* reduce.c */
mca_coll_pvas_combine_fn mca_coll_pvas_combine_part;
mca_coll_pvas_combine_fn mca_coll_pvas_combine_all;
mca_coll_pvas_combine_fn mca_coll_pvas_combine_own;

/* scan.c */
mca_coll_pvas_combine_fn mca_coll_pvas_scan_part;
mca_coll_pvas_combine_fn mca_coll_pvas_scan_own;

/**
 * struct mca_coll_pvas_fold - combining the contributions of all ranks
 * @posts:	not a copy: to load both of its members at once would wait for all earlier
 *		stores, also to lines that other processors hold
 * @leaf:	their contributions; all have @type's layout
 * @copies:	those of another layout, copied
 * @few:	@leaf, for few ranks
 * @scratch:	intermediate results of @step elements, @stride bytes apart
 * @base:	binomial order: the rank that is the tree's root; otherwise unused
 * @position:	recursive halving: the position in the hypercube
 */
struct mca_coll_pvas_fold {
	const struct mca_coll_pvas_posts *posts;
	struct ompi_op_t *op;
	struct ompi_datatype_t *type;
	ptrdiff_t extent;
	int size;
	const char **leaf;
	const char *few[MCA_COLL_PVAS_FEW];
	char *copies;
	char *scratch_free;
	char *scratch;
	size_t stride;
	size_t step;
	int base;
	int position;
	void (*combine)(struct mca_coll_pvas_fold *fold, char *out, size_t first, size_t n);
};

int mca_coll_pvas_fold_reserve(struct mca_coll_pvas_fold *fold, size_t count, int own);
int mca_coll_pvas_fold_init(struct mca_coll_pvas_module *m, struct mca_coll_pvas_fold *fold,
			    const struct mca_coll_pvas_reduction *r);
void mca_coll_pvas_fold_fini(struct mca_coll_pvas_fold *fold);
void mca_coll_pvas_fold_as_reduce(struct mca_coll_pvas_fold *fold, int root);
void mca_coll_pvas_fold_as_halving(struct mca_coll_pvas_fold *fold, int rank);
void mca_coll_pvas_fold_load(struct mca_coll_pvas_fold *fold, char *out, int rank, size_t first,
			     size_t n);

static inline char *mca_coll_pvas_scratch(const struct mca_coll_pvas_fold *fold, int i)
{
	return fold->scratch + i * fold->stride;
}

int mca_coll_pvas_fold_store(struct mca_coll_pvas_fold *fold, int rank, const char *from,
			     size_t first, size_t n);
bool mca_coll_pvas_can_copy(size_t most, size_t count, const struct ompi_datatype_t *type);

/* The part of a reduction that a rank combines for all: elements @first to @end */
struct mca_coll_pvas_part {
	size_t first;
	size_t end;
};
struct mca_coll_pvas_part mca_coll_pvas_part(const struct mca_coll_pvas_module *m, size_t count,
					     const struct ompi_datatype_t *type);

#endif /* COLL_PVAS_FOLD_H */
