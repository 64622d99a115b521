/* SPDX-License-Identifier: GPL-2.0-only */
/* Sorting samples: also for programs that are started without libpvas. */
#ifndef SAMPLES_H
#define SAMPLES_H

#include <stdlib.h>

static inline int samples_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline void samples_sort(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), samples_compare);
}

#endif /* SAMPLES_H */
