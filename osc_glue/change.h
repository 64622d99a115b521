/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Atomic instructions on a number in a window. */
#ifndef OSC_PVAS_CHANGE_H
#define OSC_PVAS_CHANGE_H

#include <stdint.h>
#include <string.h>

#include "element.h"

/* elementN: in a window; buffers of the program need not be aligned. */
#define DEFINE_CHANGE(bits)								\
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
static inline void compare_exchange##bits(char *at, const void *compare, const void *from,\
					  void *old)					\
{											\
	uint##bits##_t expected = *(const unaligned##bits *)compare;			\
											\
	__atomic_compare_exchange_n((element##bits *)at, &expected,			\
				    *(const unaligned##bits *)from, false,		\
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);		\
	*(unaligned##bits *)old = expected;						\
}

DEFINE_CHANGE(8)
DEFINE_CHANGE(16)
DEFINE_CHANGE(32)
DEFINE_CHANGE(64)

/* The sums that programs need most often, without a call of Open MPI's functions */
#define DEFINE_ADD_REAL(bits, real)							\
static inline uint##bits##_t sum_of_reals##bits(uint##bits##_t a, uint##bits##_t b)	\
{											\
	real x, y;									\
											\
	memcpy(&x, &a, sizeof(x));							\
	memcpy(&y, &b, sizeof(y));							\
	x += y;										\
	memcpy(&a, &x, sizeof(x));							\
	return a;									\
}											\
											\
static inline uint##bits##_t add_real##bits(element##bits *to, uint##bits##_t value)	\
{											\
	uint##bits##_t seen = __atomic_load_n(to, __ATOMIC_SEQ_CST);			\
											\
	while (!__atomic_compare_exchange_n(to, &seen, sum_of_reals##bits(seen, value),	\
					    false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))	\
		;									\
	return seen;									\
}

DEFINE_ADD_REAL(32, float)
DEFINE_ADD_REAL(64, double)

#endif /* OSC_PVAS_CHANGE_H */
