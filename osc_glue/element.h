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

/* @type: of the elements, or NULL */
static inline enum mca_osc_pvas_kind mca_osc_pvas_kind_of(const ompi_op_t *op,
							  const ompi_datatype_t *type)
{
	static const uint8_t kinds[OMPI_OP_NUM_OF_TYPES] = {
		[OMPI_OP_NULL ... OMPI_OP_LAND] = MCA_OSC_PVAS_FUNCTION,
		[OMPI_OP_BAND] = MCA_OSC_PVAS_AND,
		[OMPI_OP_LOR] = MCA_OSC_PVAS_FUNCTION,
		[OMPI_OP_BOR] = MCA_OSC_PVAS_OR,
		[OMPI_OP_LXOR] = MCA_OSC_PVAS_FUNCTION,
		[OMPI_OP_BXOR] = MCA_OSC_PVAS_XOR,
		[OMPI_OP_MAXLOC ... OMPI_OP_MINLOC] = MCA_OSC_PVAS_FUNCTION,
		[OMPI_OP_REPLACE] = MCA_OSC_PVAS_REPLACE,
	};
	const uint32_t data = type ? type->super.flags & OMPI_DATATYPE_FLAG_DATA_TYPE : 0;

	if (op->op_type == OMPI_OP_SUM && data == OMPI_DATATYPE_FLAG_DATA_INT)
		return MCA_OSC_PVAS_ADD;
	if (op->op_type == OMPI_OP_SUM && data == OMPI_DATATYPE_FLAG_DATA_FLOAT)
		return MCA_OSC_PVAS_ADD_REAL;
	if (op == &ompi_mpi_op_no_op.op)
		return MCA_OSC_PVAS_NO_OP;
	return (unsigned int)op->op_type < OMPI_OP_NUM_OF_TYPES ? kinds[op->op_type] :
								  MCA_OSC_PVAS_FUNCTION;
}

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
