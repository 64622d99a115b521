/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Data in equal blocks at equal distances, in up to three nested loops and for each element of
 * the datatype: vectors, columns, parts of arrays. Two ranks can copy parts of them at the same
 * time, and from one layout into another in one pass.
 */
#ifndef PML_PVAS_STRIDED_H
#define PML_PVAS_STRIDED_H

#include <stdbool.h>
#include <stddef.h>

#define MCA_PML_PVAS_LEVELS 4

struct ompi_datatype_t;

/**
 * struct mca_pml_pvas_strides - where the blocks of a message are, relative to its buffer
 * @begin:	the first one
 * @block:	bytes of each
 * @n, @step:	of each loop, from the innermost on: how often, and how far apart
 */
struct mca_pml_pvas_strides {
	ptrdiff_t begin;
	size_t block;
	size_t n[MCA_PML_PVAS_LEVELS];
	ptrdiff_t step[MCA_PML_PVAS_LEVELS];
};

/* False: a layout of another kind */
bool mca_pml_pvas_find_strides(const struct ompi_datatype_t *type, size_t count,
			       struct mca_pml_pvas_strides *strides);
bool mca_pml_pvas_is_scattered(const struct ompi_datatype_t *type, size_t count);
/* Split the larger blocks of the two, so that both have blocks of one length. */
bool mca_pml_pvas_match_blocks(struct mca_pml_pvas_strides *a, struct mca_pml_pvas_strides *b);
/* @nr blocks from block @first on */
void mca_pml_pvas_copy_blocks(char *to, const struct mca_pml_pvas_strides *to_strides,
			      const char *from, const struct mca_pml_pvas_strides *from_strides,
			      size_t first, size_t nr);

#endif /* PML_PVAS_STRIDED_H */
