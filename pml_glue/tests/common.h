/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ranks, random numbers, contents of messages, and what all tests end with. */
#ifndef PVAS_TEST_PML_COMMON_H
#define PVAS_TEST_PML_COMMON_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNTER_PREFIX "pml_pvas_"
#include "../../btl_glue/tests/counter.h"

static int rank, size, errors;

static inline uint64_t mix(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static inline int below(uint64_t *state, int n)
{
	return n > 0 ? (int)(mix(state) % (unsigned int)n) : 0;
}

/* Lengths on either side of each limit of the protocol */
static const int limits[] = {
	0, 1, 8, 15, 16, 17, 31, 32, 48, 64, 256, 257, 1000, 1023, 1024, 1025, 2048, 2049, 4096,
	4097, 10000, 32767, 32768, 100000,
};
#define NR_LIMITS (int)(sizeof(limits) / sizeof(limits[0]))
#define LONGEST 100000

static inline void check(int good, const char *what)
{
	if (good)
		return;
	errors++;
	if (errors < 10)
		fprintf(stderr, "rank %d: %s\n", rank, what);
}

static inline void fill(unsigned char *buf, int n, unsigned int key)
{
	int i;

	for (i = 0; i < n; i++)
		buf[i] = key + 31 * i + (i >> 8);
}

static inline int is_filled(const unsigned char *buf, int n, unsigned int key)
{
	int i;

	for (i = 0; i < n; i++)
		if (buf[i] != (unsigned char)(key + 31 * i + (i >> 8)))
			return 0;
	return 1;
}

static inline void begin(int *argc, char ***argv)
{
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static inline int finish(void)
{
	int sum;

	MPI_Allreduce(&errors, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return sum != 0;
}

#endif /* PVAS_TEST_PML_COMMON_H */
