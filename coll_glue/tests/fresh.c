// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many broadcasts, each in a buffer of its own: they leave nothing behind, no mapping and no
 * memory, and MPI_Finalize has nothing to undo.
 *
 *	fresh [BROADCASTS]
 */
#include "common.h"

#include <sys/mman.h>
#include <time.h>

#define BYTES (32 << 10)
#define STEP 4096

/* Mappings of this task's partition, or of the process: a line each, with some of all tasks */
static int nr_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	int c, nr = 0;

	while (f && (c = getc(f)) != EOF)
		nr += c == '\n';
	if (f)
		fclose(f);
	return nr;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

int main(int argc, char **argv)
{
	const int times = argc > 1 ? atoi(argv[1]) : 20000;
	const size_t bytes = (size_t)times * STEP + BYTES;
	int i, before, after, bad = 0, all;
	double begin;
	char *p;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(p, rank, bytes);
	MPI_Bcast(p, BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	before = nr_mappings();
	MPI_Barrier(MPI_COMM_WORLD);
	begin = now();
	for (i = 0; i < times; i++) {
		p[(size_t)i * STEP] = rank ? 0 : i;
		MPI_Bcast(p + (size_t)i * STEP, BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
		bad += p[(size_t)i * STEP] != (char)i;
	}
	begin = now() - begin;
	MPI_Barrier(MPI_COMM_WORLD);
	after = nr_mappings();
	/* Others' stacks and heaps can have grown meanwhile. */
	bad += after > before + 4;
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d broadcasts, %.2f us each; %d mappings, then %d; %d wrong\n", times,
		       1e6 * begin / times, before, after, all);
	begin = now();
	MPI_Finalize();
	if (rank == 0)
		printf("MPI_Finalize: %.1f ms\n", 1e3 * (now() - begin));
	return all != 0;
}
