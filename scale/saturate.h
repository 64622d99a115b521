/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whole numbers that do not wrap: a sum or product that does not fit into 64 bits is
 * SCALE_TOO_LARGE, and so is all that is computed from it. An equation reads as in the
 * paper, and is checked once, at its end.
 */
#ifndef SCALE_SATURATE_H
#define SCALE_SATURATE_H

#include <stddef.h>
#include <stdint.h>

#include "scale.h"

static inline uint64_t scale_sum(const uint64_t *value, size_t nr)
{
	uint64_t sum = 0;

	while (nr--)
		if (__builtin_add_overflow(sum, value[nr], &sum))
			return SCALE_TOO_LARGE;
	return sum;
}

/* Nothing times anything, however large, is nothing. */
static inline uint64_t scale_product(const uint64_t *value, size_t nr)
{
	uint64_t product = 1;
	size_t i;

	for (i = 0; i < nr; i++)
		if (!value[i])
			return 0;
	for (i = 0; i < nr; i++)
		if (__builtin_mul_overflow(product, value[i], &product))
			return SCALE_TOO_LARGE;
	return product;
}

#define SUM(...) ({ \
	const uint64_t terms_[] = { __VA_ARGS__ }; \
	scale_sum(terms_, sizeof(terms_) / sizeof(terms_[0])); \
})

#define PRODUCT(...) ({ \
	const uint64_t factors_[] = { __VA_ARGS__ }; \
	scale_product(factors_, sizeof(factors_) / sizeof(factors_[0])); \
})

/* @value times @over / @under, rounded to the nearest */
static inline uint64_t scale_share(uint64_t value, uint64_t over, uint64_t under)
{
	unsigned __int128 product = (unsigned __int128)value * over + under / 2;

	if (value == SCALE_TOO_LARGE || product / under > SCALE_TOO_LARGE)
		return SCALE_TOO_LARGE;
	return product / under;
}

#endif
