// SPDX-License-Identifier: LGPL-2.1-or-later
/* Copies between layouts of equal blocks; see strided.h. */
#include "ring.h"

#include <stdlib.h>

#include "opal/datatype/opal_datatype_internal.h"

#define LEVELS MCA_PML_PVAS_LEVELS

#define LINE 64
#define TINY 16


/* ---- the layout of a message ---- */

/* A loop around all others. One level stays free for match_blocks(). */
static bool add_level(struct mca_pml_pvas_strides *s, unsigned int *levels, size_t n,
		      ptrdiff_t step)
{
	const unsigned int last = *levels - 1;

	if (n == 1)
		return true;
	if (!*levels && step == (ptrdiff_t)s->block) {
		s->block *= n;
		return true;
	}
	if (*levels && step == (ptrdiff_t)s->n[last] * s->step[last]) {
		s->n[last] *= n;
		return true;
	}
	if (*levels == LEVELS - 1)
		return false;
	s->n[*levels] = n;
	s->step[*levels] = step;
	++*levels;
	return true;
}

/* Nested loops with one kind of block in them */
static bool is_nest(const dt_elem_desc_t *desc, size_t used, size_t *loops)
{
	size_t i;

	for (i = 0; i < used && desc[i].elem.common.type == OPAL_DATATYPE_LOOP; i++)
		if (!desc[i].loop.loops)
			return false;
	*loops = i;
	return used == 2 * i + 1 && desc[i].elem.common.flags & OPAL_DATATYPE_FLAG_DATA &&
	       desc[i].elem.count && desc[i].elem.blocklen;
}

/* The datatype can be a peer's: its descriptions are arrays of numbers. */
bool mca_pml_pvas_find_strides(const struct ompi_datatype_t *type, size_t count,
			       struct mca_pml_pvas_strides *s)
{
	const dt_type_desc_t *opt = &type->super.opt_desc;
	const dt_type_desc_t *all = opt->desc && opt->used ? opt : &type->super.desc;
	const dt_elem_desc_t *desc = all->desc;
	unsigned int levels = 0, i;
	size_t loops;
	bool fits;

	if (!desc || !is_nest(desc, all->used, &loops))
		return false;
	*s = (struct mca_pml_pvas_strides) {
		.begin = desc[loops].elem.disp,
		.block = desc[loops].elem.blocklen *
			 opal_datatype_basicDatatypes[desc[loops].elem.common.type]->size,
	};
	/* That of MPI_LB and MPI_UB has no bytes. */
	if (!s->block)
		return false;
	fits = add_level(s, &levels, desc[loops].elem.count, desc[loops].elem.extent);
	for (i = loops; i && fits; i--)
		fits = add_level(s, &levels, desc[i - 1].loop.loops, desc[i - 1].loop.extent);
	fits = fits && add_level(s, &levels, count, type->super.ub - type->super.lb);
	for (i = levels; i < LEVELS; i++)
		s->n[i] = 1;
	return fits;
}

/* Its blocks become several ones each. The last level is unused. */
static bool split_blocks(struct mca_pml_pvas_strides *s, size_t block)
{
	int i;

	if (s->block % block)
		return false;
	for (i = LEVELS - 1; i; i--) {
		s->n[i] = s->n[i - 1];
		s->step[i] = s->step[i - 1];
	}
	s->n[0] = s->block / block;
	s->step[0] = block;
	s->block = block;
	return true;
}

bool mca_pml_pvas_match_blocks(struct mca_pml_pvas_strides *a, struct mca_pml_pvas_strides *b)
{
	if (a->block == b->block)
		return true;
	return a->block > b->block ? split_blocks(a, b->block) : split_blocks(b, a->block);
}

/* ---- copying ---- */

/* Where a block is; @left: from it on, in a row of the innermost loop */
static ptrdiff_t find_block(const struct mca_pml_pvas_strides *s, size_t nr, size_t *left)
{
	ptrdiff_t at = s->begin + (ptrdiff_t)(nr % s->n[0]) * s->step[0];
	int i;

	*left = s->n[0] - nr % s->n[0];
	nr /= s->n[0];
	for (i = 1; i < LEVELS && nr; i++) {
		at += (ptrdiff_t)(nr % s->n[i]) * s->step[i];
		nr /= s->n[i];
	}
	return at;
}

/*
 * Processors find out by themselves which lines come next if the steps are small. With long
 * ones, ask for those of a block so far ahead, if there are more than a cache holds.
 */
#define LONG_STEP 512
#define MANY 1024
#define AHEAD 32

static inline __attribute__((always_inline)) void
copy_row_so(char *to, ptrdiff_t to_step, const char *from, ptrdiff_t from_step, size_t nr,
	    size_t block, bool far_to, bool far_from)
{
	for (; nr > AHEAD && (far_to || far_from); nr--, to += to_step, from += from_step) {
		if (far_from)
			__builtin_prefetch(from + AHEAD * from_step);
		if (far_to)
			mca_pml_pvas_prefetch_for_store(to + AHEAD * to_step);
		memcpy(to, from, block);
	}
	for (; nr; nr--, to += to_step, from += from_step)
		memcpy(to, from, block);
}

static inline __attribute__((always_inline)) void copy_row(char *to, ptrdiff_t to_step,
							   const char *from, ptrdiff_t from_step,
							   size_t nr, size_t block)
{
	const bool many = nr >= MANY;
	const bool far_to = many && labs(to_step) >= LONG_STEP;
	const bool far_from = many && labs(from_step) >= LONG_STEP;

	if (far_to && far_from)
		copy_row_so(to, to_step, from, from_step, nr, block, true, true);
	else if (far_to)
		copy_row_so(to, to_step, from, from_step, nr, block, true, false);
	else if (far_from)
		copy_row_so(to, to_step, from, from_step, nr, block, false, true);
	else
		copy_row_so(to, to_step, from, from_step, nr, block, false, false);
}

/* Of the usual lengths without a call for each block */
static void copy_any_row(char *to, ptrdiff_t to_step, const char *from, ptrdiff_t from_step,
			 size_t nr, size_t block)
{
	switch (block) {
	case 4:
		copy_row(to, to_step, from, from_step, nr, 4);
		break;
	case 8:
		copy_row(to, to_step, from, from_step, nr, 8);
		break;
	case 16:
		copy_row(to, to_step, from, from_step, nr, 16);
		break;
	case 32:
		copy_row(to, to_step, from, from_step, nr, 32);
		break;
	case 64:
		copy_row(to, to_step, from, from_step, nr, 64);
		break;
	default:
		for (; nr; nr--, to += to_step, from += from_step)
			mca_btl_pvas_memcpy(to, from, block);
	}
}

void mca_pml_pvas_copy_blocks(char *to, const struct mca_pml_pvas_strides *to_strides,
			      const char *from, const struct mca_pml_pvas_strides *from_strides,
			      size_t first, size_t nr)
{
	size_t row, from_row;

	while (nr) {
		char *t = to + find_block(to_strides, first, &row);
		const char *f = from + find_block(from_strides, first, &from_row);

		if (row > from_row)
			row = from_row;
		if (row > nr)
			row = nr;
		copy_any_row(t, to_strides->step[0], f, from_strides->step[0], row,
			     to_strides->block);
		first += row;
		nr -= row;
	}
}

/* ---- packing ---- */

/* The layout, and that of the packed data in the same blocks. False: of another kind */
static bool find_packed(const struct ompi_datatype_t *type, size_t count, size_t bytes,
			struct mca_pml_pvas_strides *layout, struct mca_pml_pvas_strides *packed)
{
	if (!bytes || !mca_pml_pvas_find_strides(type, count, layout) || bytes % layout->block)
		return false;
	*packed = (struct mca_pml_pvas_strides) { .block = bytes, .n = { 1, 1, 1, 1 } };
	return mca_pml_pvas_match_blocks(layout, packed);
}

void mca_pml_pvas_pack(void *to, size_t bytes, const void *buf, size_t count,
		       const struct ompi_datatype_t *type)
{
	struct mca_pml_pvas_strides layout, packed;

	if (find_packed(type, count, bytes, &layout, &packed))
		mca_pml_pvas_copy_blocks(to, &packed, buf, &layout, 0, bytes / layout.block);
	else
		mca_coll_pvas_copy_data(to, bytes, &ompi_mpi_byte.dt, buf, count, type);
}

void mca_pml_pvas_unpack(const void *from, size_t bytes, void *buf, size_t count,
			 const struct ompi_datatype_t *type)
{
	struct mca_pml_pvas_strides layout, packed;

	if (find_packed(type, count, bytes, &layout, &packed))
		mca_pml_pvas_copy_blocks(buf, &layout, from, &packed, 0, bytes / layout.block);
	else
		mca_coll_pvas_copy_data(buf, count, type, from, bytes, &ompi_mpi_byte.dt);
}

/* ---- leaving in place ---- */

/* Tiny blocks far apart: two ranks that copy at a time are faster than one that packs. */
bool mca_pml_pvas_is_scattered(const struct ompi_datatype_t *type, size_t count)
{
	struct mca_pml_pvas_strides s;

	return mca_pml_pvas_find_strides(type, count, &s) && s.block <= TINY &&
	       labs(s.step[0]) >= LINE;
}
