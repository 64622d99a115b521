/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* May this rank access a target now, and is what it names inside the window? And copies. */
#ifndef OSC_PVAS_REACH_H
#define OSC_PVAS_REACH_H

#include "osc_pvas.h"

#include <string.h>

#include "../coll_glue/post.h"

/* No data to move; not an error */
#define MCA_OSC_PVAS_NOTHING 1

/*
 * From where to where @count elements at @offset extend; false: farther than numbers go, which
 * must not wrap around into the window.
 */
static inline bool mca_osc_pvas_span(const struct ompi_datatype_t *type, size_t count,
				     ptrdiff_t offset, ptrdiff_t *first, ptrdiff_t *last)
{
	ptrdiff_t step;

	if (__builtin_mul_overflow(count - 1, mca_coll_pvas_extent(type), &step) ||
	    __builtin_add_overflow(offset, type->super.true_lb, first) ||
	    __builtin_add_overflow(offset, type->super.true_ub, last))
		return false;
	return step < 0 ? !__builtin_add_overflow(*first, step, first) :
			  !__builtin_add_overflow(*last, step, last);
}

/*
 * Begin an access to @count elements of rank @rank's window. *@at is where their buffer begins.
 * Nonzero: an error, or MCA_OSC_PVAS_NOTHING.
 */
static inline int mca_osc_pvas_reach(struct mca_osc_pvas_module *m, int rank, ptrdiff_t disp,
				     size_t count, const struct ompi_datatype_t *type, char **at)
{
	struct mca_osc_pvas_target *target = &m->targets[rank];
	ptrdiff_t first, last, offset;
	int rc;

	if (__builtin_expect(target->access < MCA_OSC_PVAS_STARTED, 0)) {
		rc = mca_osc_pvas_begin_access(m, target);
		if (rc)
			return rc;
	}
	if (__builtin_expect(!mca_osc_pvas_alive(target), 0))
		mca_osc_pvas_end_job(m, rank);
	if (!count || !type->super.size)
		return MCA_OSC_PVAS_NOTHING;
	if (__builtin_mul_overflow(disp, target->disp_unit, &offset) ||
	    !mca_osc_pvas_span(type, count, offset, &first, &last))
		return OMPI_ERR_RMA_RANGE;
	*at = target->base + offset;
	if (m->flavor == MPI_WIN_FLAVOR_DYNAMIC)
		return mca_osc_pvas_is_attached(target, (char *)first, (char *)last) ?
			       OMPI_SUCCESS : OMPI_ERR_RMA_RANGE;
	return first < 0 || last > (ptrdiff_t)target->bytes ? OMPI_ERR_RMA_RANGE : OMPI_SUCCESS;
}

/*
 * The usual access in few instructions: @bytes at @disp of a rank's window. NULL: one that begins
 * an epoch, or is not in the window, or in a dynamic one; mca_osc_pvas_reach() decides.
 */
static inline char *mca_osc_pvas_reach_quickly(const struct mca_osc_pvas_module *m,
					       const struct mca_osc_pvas_target *target,
					       ptrdiff_t disp, size_t bytes)
{
	ptrdiff_t offset;

	if (__builtin_expect((target->access < MCA_OSC_PVAS_STARTED &&
			      m->fence != MCA_OSC_PVAS_USED) || !mca_osc_pvas_alive(target), 0))
		return NULL;
	if (__builtin_expect(__builtin_mul_overflow(disp, target->disp_unit, &offset) ||
			     (size_t)offset >= target->bytes ||
			     target->bytes - offset < bytes, 0))
		return NULL;
	return target->base + offset;
}

/* Arrays of such elements have no gaps, and begin where their buffer does. */
static inline bool mca_osc_pvas_is_dense(const struct ompi_datatype_t *type)
{
	const unsigned int flags = OPAL_DATATYPE_FLAG_CONTIGUOUS | OPAL_DATATYPE_FLAG_NO_GAPS;

	return (type->super.flags & flags) == flags && !type->super.true_lb;
}

static inline bool mca_osc_pvas_is_contiguous(const struct ompi_datatype_t *type, size_t count)
{
	return type->super.flags & OPAL_DATATYPE_FLAG_CONTIGUOUS &&
	       (count == 1 || type->super.flags & OPAL_DATATYPE_FLAG_NO_GAPS);
}

static inline void mca_osc_pvas_move(void *to, const void *from, size_t bytes)
{
	/* Single instructions: nobody sees half of a number. */
	if (bytes == 8)
		memcpy(to, from, 8);
	else if (bytes == 4)
		memcpy(to, from, 4);
	else
		mca_btl_pvas_memcpy(to, from, bytes);
}

/* Copy between any two buffers; what there is no room for is MPI_ERR_TRUNCATE. */
static inline int mca_osc_pvas_copy(void *to, size_t to_count,
				    const struct ompi_datatype_t *to_type, const void *from,
				    size_t from_count, const struct ompi_datatype_t *from_type)
{
	const size_t bytes = from_count * from_type->super.size;

	mca_osc_pvas_count(bytes_copied, bytes);
	if (bytes != to_count * to_type->super.size || !bytes ||
	    !mca_osc_pvas_is_contiguous(to_type, to_count) ||
	    !mca_osc_pvas_is_contiguous(from_type, from_count))
		return mca_coll_pvas_copy_data(to, to_count, to_type, from, from_count, from_type);
	mca_osc_pvas_move((char *)to + to_type->super.true_lb,
			  (const char *)from + from_type->super.true_lb, bytes);
	return OMPI_SUCCESS;
}

#endif /* OSC_PVAS_REACH_H */
