/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Small kernels that talk as the NAS Parallel Benchmarks do, for machines that don't
 * have those. Each checks its own result.
 *
 *  main.c	chooses, times, prints
 *  grid.c	halo (as MG) and wave (as LU): neighbours in a grid of ranks
 *  all.c	transpose (as FT) and keys (as IS): all to all
 *  cg.c	cg (as CG): sums over rows, gathers over columns
 */
#ifndef PATTERNS_H
#define PATTERNS_H

#include <stdbool.h>
#include <stddef.h>

/**
 * struct pattern - one kernel
 * @run:	@n is how large, @rounds how often. Returns whether this rank's result is
 *		right; *@seconds is what is timed
 * @n, @rounds:	for classes S, W, A
 */
struct pattern {
	const char *name;
	bool (*run)(int n, int rounds, double *seconds);
	int n[3], rounds[3];
};

extern const struct pattern pattern_halo, pattern_wave, pattern_transpose, pattern_keys,
	pattern_cg;

/** patterns_rank, patterns_size - of this rank, of the job */
extern int patterns_rank, patterns_size;

/** patterns_alloc - zeroed; ends the job if there is no memory */
void *patterns_alloc(size_t n, size_t each);

#endif /* PATTERNS_H */
