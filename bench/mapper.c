// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of a pair of mmap and munmap: bench/hooks starts this as a plain process
 * and as a task.
 *
 * usage: mapper BATCHES PAIRS
 *
 * Prints the lower quartile of the batches, in nanoseconds a pair: whatever
 * else the machine does can only add to a batch, so the low ones are the true ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "clock.h"
#include "samples.h"

/* No page is touched: a fault costs more than the pair and would hide it. */
#define LENGTH (64 * 1024)
/* The kernel can't merge it with a neighbour: merging or not makes a difference of 4 %. */
#define PROT (PROT_READ | PROT_WRITE | PROT_EXEC)

static double batch(unsigned int pairs)
{
	int64_t begin = now_ns();
	unsigned int i;

	for (i = 0; i < pairs; i++) {
		void *p = mmap(NULL, LENGTH, PROT, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED || munmap(p, LENGTH)) {
			perror("mapper");
			exit(1);
		}
	}
	return (double)(now_ns() - begin) / pairs;
}

int main(int argc, char **argv)
{
	unsigned int batches = argc > 1 ? atoi(argv[1]) : 0, pairs = argc > 2 ? atoi(argv[2]) : 0;
	double *v = calloc(batches, sizeof(*v));
	unsigned int i;

	if (!batches || !pairs || !v)
		return 2;
	/* Warm up: the emulator translates the code, and the slabs fill. */
	batch(pairs);
	for (i = 0; i < batches; i++)
		v[i] = batch(pairs);
	samples_sort(v, batches);
	printf("%.1f\n", v[batches / 4]);
	return 0;
}
