/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Operations on the elements of a window, each of which is atomic. */
#ifndef OSC_PVAS_ELEMENT_H
#define OSC_PVAS_ELEMENT_H

#include "reach.h"

#include "ompi/op/op.h"

enum mca_osc_pvas_kind {
	MCA_OSC_PVAS_REPLACE,
	MCA_OSC_PVAS_NO_OP,
	/* Those with an instruction, the same one for signed and unsigned numbers */
	MCA_OSC_PVAS_ADD,
	MCA_OSC_PVAS_AND,
	MCA_OSC_PVAS_OR,
	MCA_OSC_PVAS_XOR,
	MCA_OSC_PVAS_ADD_REAL,
	MCA_OSC_PVAS_FUNCTION,
};

/**
 * struct mca_osc_pvas_operation - an operator on elements of a type
 * @type:	predefined; NULL: elements of several types
 * @bytes:	of an element for which there are atomic instructions; 0: there are none
 */
struct mca_osc_pvas_operation {
	enum mca_osc_pvas_kind kind;
	ompi_op_t *op;
	ompi_datatype_t *type;
	size_t bytes;
};

void mca_osc_pvas_operation_init(struct mca_osc_pvas_operation *operation, ompi_op_t *op,
				 ompi_datatype_t *type);

/* Type and address alone decide: all ranks use the same mechanism for an element. */
static inline bool mca_osc_pvas_is_atomic(const struct mca_osc_pvas_operation *o, const void *at)
{
	return o->bytes && !((uintptr_t)at & (o->bytes - 1));
}

void mca_osc_pvas_apply_atomic(const struct mca_osc_pvas_operation *operation, char *to,
			       const char *from, char *old, size_t n);
void mca_osc_pvas_apply_plain(const struct mca_osc_pvas_operation *operation, char *to,
			      const char *from, char *old, size_t n);
void mca_osc_pvas_compare_exchange(size_t bytes, char *at, const char *compare, const char *from,
				   char *old);

#endif /* OSC_PVAS_ELEMENT_H */
