// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which way do messages take? Long and short ones go round all ranks, with checked data;
 * then the component's performance variables are compared with what was expected:
 *
 *	used copy	long messages are copied once, short ones at once
 *	used map	likewise, but short ones are left in place
 *	used none	the component copied nothing
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNTER_PREFIX "smsc_pvas_"
#include "counter.h"

#define LONG 200000
#define SHORT 3000
#define ROUNDS 20

static const char *const names[] = { "copies", "bytes_copied", "mapped" };
enum { COPIES, BYTES, MAPPED, NR };

static long errors;

static void round_of(int rank, int size, int n, int round)
{
	const int to = (rank + 1) % size, from = (rank + size - 1) % size;
	unsigned char *out = malloc(n), *in = malloc(n);
	int i;

	for (i = 0; i < n; i++)
		out[i] = (unsigned char)(rank * 7 + round + i);
	memset(in, 0, n);
	MPI_Sendrecv(out, n, MPI_BYTE, to, round, in, n, MPI_BYTE, from, round, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	for (i = 0; i < n; i++)
		errors += in[i] != (unsigned char)(from * 7 + round + i);
	free(out);
	free(in);
}

static int as_expected(const char *what, const long long *v)
{
	if (!strcmp(what, "none"))
		return v[COPIES] <= 0 && v[MAPPED] <= 0;
	if (v[COPIES] < ROUNDS || v[BYTES] < (long long)ROUNDS * LONG)
		return 0;
	return !strcmp(what, "map") ? v[MAPPED] >= ROUNDS : v[MAPPED] == 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "copy";
	struct counter counters[NR];
	int rank, size, ok, all, i;
	long long v[NR];

	MPI_Init(&argc, &argv);
	counters_begin();
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (i = 0; i < NR; i++)
		counter_find(&counters[i], names[i]);
	for (i = 0; i < ROUNDS; i++) {
		round_of(rank, size, LONG, i);
		round_of(rank, size, SHORT, i);
	}
	for (i = 0; i < NR; i++)
		v[i] = counter_read(&counters[i]);
	ok = !errors && as_expected(what, v);
	if (rank == 0 || !ok)
		printf("rank %d of %d: %ld errors, %lld copies of %lld bytes, %lld mapped\n", rank,
		       size, errors, v[COPIES], v[BYTES], v[MAPPED]);
	MPI_Allreduce(&ok, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	MPI_Finalize();
	return !all;
}
