/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Accumulates: the general way, and that for one element. */
#ifndef OSC_PVAS_ACCUMULATE_H
#define OSC_PVAS_ACCUMULATE_H

#include "element.h"

/* An origin's buffer, or what is named at the target */
struct mca_osc_pvas_buffer {
	void *at;
	size_t count;
	ompi_datatype_t *type;
};

/* No other rank or thread may accumulate there meanwhile. */
static inline bool mca_osc_pvas_is_alone(const struct mca_osc_pvas_target *target)
{
	return target->access == MCA_OSC_PVAS_EXCLUSIVE && !opal_using_threads();
}

int mca_osc_pvas_accumulate_any(struct mca_osc_pvas_module *m, int rank, ptrdiff_t disp,
				const struct mca_osc_pvas_buffer *origin,
				const struct mca_osc_pvas_buffer *result,
				const struct mca_osc_pvas_buffer *where, ompi_op_t *op);
int mca_osc_pvas_accumulate_one(struct mca_osc_pvas_module *m, int rank, ptrdiff_t disp,
				const void *from, void *old, ompi_datatype_t *type, ompi_op_t *op);

#endif /* OSC_PVAS_ACCUMULATE_H */
