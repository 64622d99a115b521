// SPDX-License-Identifier: GPL-2.0-only
/*
 * usage: patterns KERNEL CLASS, in any number of ranks; CLASS is S, W or A
 *
 * Prints "patterns KERNEL.CLASS.RANKS ms MILLISECONDS". Exit status 1: a wrong result.
 */
#include "patterns.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int patterns_rank, patterns_size;

static const struct pattern *const kernels[] = {
	&pattern_halo, &pattern_wave, &pattern_transpose, &pattern_keys, &pattern_cg,
};

static void fail(const char *why)
{
	fprintf(stderr, "patterns: %s\n", why);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

void *patterns_alloc(size_t n, size_t each)
{
	void *p = calloc(n ? n : 1, each);

	if (!p)
		fail("no memory");
	return p;
}

static const struct pattern *find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(kernels) / sizeof(*kernels); i++)
		if (!strcmp(kernels[i]->name, name))
			return kernels[i];
	return NULL;
}

int main(int argc, char **argv)
{
	static const char classes[] = "SWA";
	const struct pattern *kernel;
	const char *class;
	double mine = 0, most;
	int right, all;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &patterns_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &patterns_size);
	kernel = argc == 3 ? find(argv[1]) : NULL;
	class = kernel && argv[2][0] && !argv[2][1] ? strchr(classes, argv[2][0]) : NULL;
	if (!class) {
		fail("usage: patterns halo|wave|transpose|keys|cg S|W|A");
		return 2;
	}
	right = kernel->run(kernel->n[class - classes], kernel->rounds[class - classes], &mine);
	MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (!all)
		fail("the result is wrong");
	if (patterns_rank == 0)
		printf("patterns %s.%c.%d ms %.4f\n", kernel->name, *class, patterns_size,
		       1e3 * most);
	MPI_Finalize();
	return 0;
}
