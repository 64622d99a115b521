// SPDX-License-Identifier: LGPL-2.1-or-later
/* Operations on arrays of elements in a window: each element by itself is changed atomically. */
#include "element.h"

/* Elements that Open MPI's function combines at a time */
#define BLOCK 64

/* ---- which operation ---- */

static enum mca_osc_pvas_kind kind_of(const ompi_op_t *op, const ompi_datatype_t *type)
{
	const uint32_t data = type ? type->super.flags & OMPI_DATATYPE_FLAG_DATA_TYPE : 0;

	if (op == &ompi_mpi_op_no_op.op)
		return MCA_OSC_PVAS_NO_OP;
	switch (op->op_type) {
	case OMPI_OP_REPLACE:
		return MCA_OSC_PVAS_REPLACE;
	case OMPI_OP_SUM:
		if (data == OMPI_DATATYPE_FLAG_DATA_FLOAT)
			return MCA_OSC_PVAS_ADD_REAL;
		return data == OMPI_DATATYPE_FLAG_DATA_INT ? MCA_OSC_PVAS_ADD :
							     MCA_OSC_PVAS_FUNCTION;
	case OMPI_OP_BAND:
		return MCA_OSC_PVAS_AND;
	case OMPI_OP_BOR:
		return MCA_OSC_PVAS_OR;
	case OMPI_OP_BXOR:
		return MCA_OSC_PVAS_XOR;
	default:
		return MCA_OSC_PVAS_FUNCTION;
	}
}

void mca_osc_pvas_operation_init(struct mca_osc_pvas_operation *o, ompi_op_t *op,
				 ompi_datatype_t *type)
{
	const size_t size = type ? type->super.size : 0;

	o->op = op;
	o->type = type;
	o->kind = kind_of(op, type);
	/* A pair with a gap has an extent above its size. */
	o->bytes = (size == 1 || size == 2 || size == 4 || size == 8) &&
		   mca_coll_pvas_is_plain(type) ? size : 0;
}

static void reduce(const struct mca_osc_pvas_operation *o, const void *from, void *to, size_t n)
{
	ompi_op_reduce(o->op, (void *)from, to, n, o->type);
}

/* ---- atomic ---- */

/* The sums that programs need most often, without a call */
static inline void add_float(uint32_t *to, const char *from)
{
	float sum, value;

	memcpy(&sum, to, sizeof(sum));
	memcpy(&value, from, sizeof(value));
	sum += value;
	memcpy(to, &sum, sizeof(sum));
}

static inline void add_double(uint64_t *to, const char *from)
{
	double sum, value;

	memcpy(&sum, to, sizeof(sum));
	memcpy(&value, from, sizeof(value));
	sum += value;
	memcpy(to, &sum, sizeof(sum));
}

static inline void combine_one(const struct mca_osc_pvas_operation *o, void *to, const char *from)
{
	if (o->kind == MCA_OSC_PVAS_ADD_REAL && o->bytes == 8)
		add_double(to, from);
	else if (o->kind == MCA_OSC_PVAS_ADD_REAL && o->bytes == 4)
		add_float(to, from);
	else
		reduce(o, from, to, 1);
}

/* Of @to; buffers of the program need not be aligned. */
#define DEFINE_ELEMENTS(bits)								\
typedef uint##bits##_t element##bits __attribute__((may_alias));			\
typedef uint##bits##_t unaligned##bits __attribute__((may_alias, aligned(1)));		\
											\
static inline uint##bits##_t change##bits(enum mca_osc_pvas_kind kind, element##bits *to,\
					  uint##bits##_t value)				\
{											\
	switch (kind) {									\
	case MCA_OSC_PVAS_REPLACE:							\
		return __atomic_exchange_n(to, value, __ATOMIC_SEQ_CST);		\
	case MCA_OSC_PVAS_ADD:								\
		return __atomic_fetch_add(to, value, __ATOMIC_SEQ_CST);			\
	case MCA_OSC_PVAS_AND:								\
		return __atomic_fetch_and(to, value, __ATOMIC_SEQ_CST);			\
	case MCA_OSC_PVAS_OR:								\
		return __atomic_fetch_or(to, value, __ATOMIC_SEQ_CST);			\
	case MCA_OSC_PVAS_XOR:								\
		return __atomic_fetch_xor(to, value, __ATOMIC_SEQ_CST);			\
	default:									\
		return __atomic_load_n(to, __ATOMIC_SEQ_CST);				\
	}										\
}											\
											\
static uint##bits##_t exchange##bits(const struct mca_osc_pvas_operation *o,		\
				  element##bits *to, const char *from)			\
{											\
	uint##bits##_t seen = __atomic_load_n(to, __ATOMIC_SEQ_CST), next;		\
											\
	do {										\
		next = seen;								\
		combine_one(o, &next, from);						\
	} while (!__atomic_compare_exchange_n(to, &seen, next, false, __ATOMIC_SEQ_CST,	\
					      __ATOMIC_SEQ_CST));			\
	return seen;									\
}											\
											\
static void block##bits(const struct mca_osc_pvas_operation *o, element##bits *to,	\
			const char *from, unaligned##bits *old, size_t n)		\
{											\
	uint##bits##_t seen[BLOCK], next[BLOCK];					\
	size_t i;									\
											\
	for (i = 0; i < n; i++)								\
		next[i] = seen[i] = __atomic_load_n(&to[i], __ATOMIC_SEQ_CST);		\
	reduce(o, from, next, n);							\
	for (i = 0; i < n; i++) {							\
		if (seen[i] != next[i] &&						\
		    !__atomic_compare_exchange_n(&to[i], &seen[i], next[i], false,	\
						 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))	\
			seen[i] = exchange##bits(o, &to[i], from + i * sizeof(*to));	\
		if (old)								\
			old[i] = seen[i];						\
	}										\
}											\
											\
/* Open MPI's own function for short numbers can saturate: op/avx. */			\
__attribute__((optimize("O3"))) static void						\
add##bits(unaligned##bits *to, const unaligned##bits *from, size_t n)			\
{											\
	size_t i;									\
											\
	for (i = 0; i < n; i++)								\
		to[i] += from[i];							\
}											\
											\
static void apply##bits(const struct mca_osc_pvas_operation *o, element##bits *to,	\
			const char *from, unaligned##bits *old, size_t n)		\
{											\
	const unaligned##bits *values = (const unaligned##bits *)from;			\
	uint##bits##_t seen;								\
	size_t i, some;									\
											\
	if (o->kind >= MCA_OSC_PVAS_ADD_REAL && n == 1) {				\
		seen = exchange##bits(o, to, from);					\
		if (old)								\
			*old = seen;							\
	} else if (o->kind >= MCA_OSC_PVAS_ADD_REAL) {					\
		for (i = 0; i < n; i += some) {						\
			some = n - i < BLOCK ? n - i : BLOCK;				\
			block##bits(o, to + i, (const char *)(values + i),		\
				    old ? old + i : NULL, some);			\
		}									\
	} else if (o->kind == MCA_OSC_PVAS_REPLACE && !old) {				\
		for (i = 0; i < n; i++)							\
			__atomic_store_n(&to[i], values[i], __ATOMIC_RELEASE);		\
	} else {									\
		for (i = 0; i < n; i++) {						\
			seen = change##bits(o->kind, &to[i],				\
					    o->kind == MCA_OSC_PVAS_NO_OP ? 0 : values[i]);\
			if (old)							\
				old[i] = seen;						\
		}									\
	}										\
}

DEFINE_ELEMENTS(8)
DEFINE_ELEMENTS(16)
DEFINE_ELEMENTS(32)
DEFINE_ELEMENTS(64)

/* @old: where the elements' values before the operation go, or NULL. @from: not for NO_OP. */
void mca_osc_pvas_apply_atomic(const struct mca_osc_pvas_operation *o, char *to, const char *from,
			       char *old, size_t n)
{
	switch (o->bytes) {
	case 1:
		apply8(o, (element8 *)to, from, (unaligned8 *)old, n);
		break;
	case 2:
		apply16(o, (element16 *)to, from, (unaligned16 *)old, n);
		break;
	case 4:
		apply32(o, (element32 *)to, from, (unaligned32 *)old, n);
		break;
	case 8:
		apply64(o, (element64 *)to, from, (unaligned64 *)old, n);
		break;
	}
}

#define COMPARE_EXCHANGE(bits)								\
	do {										\
		uint##bits##_t expected = *(const unaligned##bits *)compare;		\
											\
		__atomic_compare_exchange_n((element##bits *)at, &expected,		\
					    *(const unaligned##bits *)from, false,	\
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);	\
		*(unaligned##bits *)old = expected;					\
	} while (0)

void mca_osc_pvas_compare_exchange(size_t bytes, char *at, const char *compare, const char *from,
				   char *old)
{
	switch (bytes) {
	case 1:
		COMPARE_EXCHANGE(8);
		break;
	case 2:
		COMPARE_EXCHANGE(16);
		break;
	case 4:
		COMPARE_EXCHANGE(32);
		break;
	case 8:
		COMPARE_EXCHANGE(64);
		break;
	}
}

/* ---- not atomic: the caller keeps others away ---- */

static void add(size_t bytes, char *to, const char *from, size_t n)
{
	switch (bytes) {
	case 1:
		add8((unaligned8 *)to, (const unaligned8 *)from, n);
		break;
	case 2:
		add16((unaligned16 *)to, (const unaligned16 *)from, n);
		break;
	case 4:
		add32((unaligned32 *)to, (const unaligned32 *)from, n);
		break;
	case 8:
		add64((unaligned64 *)to, (const unaligned64 *)from, n);
		break;
	}
}

void mca_osc_pvas_apply_plain(const struct mca_osc_pvas_operation *o, char *to, const char *from,
			      char *old, size_t n)
{
	const size_t bytes = n * mca_coll_pvas_extent(o->type);

	if (old)
		mca_btl_pvas_memcpy(old, to, bytes);
	if (o->kind == MCA_OSC_PVAS_REPLACE)
		mca_btl_pvas_memcpy(to, from, bytes);
	else if (o->kind == MCA_OSC_PVAS_ADD && o->bytes)
		add(o->bytes, to, from, n);
	else if (o->kind != MCA_OSC_PVAS_NO_OP)
		reduce(o, from, to, n);
}
