// SPDX-License-Identifier: LGPL-2.1-or-later
/* Operations on arrays of elements in a window: each element by itself is changed atomically. */
#include "change.h"

/* Elements that Open MPI's function combines at a time */
#define BLOCK 64

/* ---- which operation ---- */

void mca_osc_pvas_operation_init(struct mca_osc_pvas_operation *o, ompi_op_t *op,
				 ompi_datatype_t *type)
{
	const size_t size = type ? type->super.size : 0;

	o->op = op;
	o->type = type;
	o->kind = mca_osc_pvas_kind_of(op, type);
	/* A pair with a gap has an extent above its size. */
	o->bytes = (size == 1 || size == 2 || size == 4 || size == 8) &&
		   mca_coll_pvas_is_plain(type) ? size : 0;
}

static void reduce(const struct mca_osc_pvas_operation *o, const void *from, void *to, size_t n)
{
	ompi_op_reduce(o->op, (void *)from, to, n, o->type);
}

/* ---- atomic ---- */

static inline void combine_one(const struct mca_osc_pvas_operation *o, void *to, const char *from)
{
	if (o->kind == MCA_OSC_PVAS_ADD_REAL && o->bytes == 8)
		*(element64 *)to = sum_of_reals64(*(element64 *)to, *(const unaligned64 *)from);
	else if (o->kind == MCA_OSC_PVAS_ADD_REAL && o->bytes == 4)
		*(element32 *)to = sum_of_reals32(*(element32 *)to, *(const unaligned32 *)from);
	else
		reduce(o, from, to, 1);
}

#define DEFINE_ELEMENTS(bits)								\
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

void mca_osc_pvas_compare_exchange(size_t bytes, char *at, const char *compare, const char *from,
				   char *old)
{
	switch (bytes) {
	case 1:
		compare_exchange8(at, compare, from, old);
		break;
	case 2:
		compare_exchange16(at, compare, from, old);
		break;
	case 4:
		compare_exchange32(at, compare, from, old);
		break;
	case 8:
		compare_exchange64(at, compare, from, old);
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
