// SPDX-License-Identifier: GPL-2.0-only
/* Kernels in which all ranks send to all others. */
#include "patterns.h"

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- transpose: equal blocks ---- */

/* @rows rows of @n: the block for each rank is collected and transposed. */
static void pack_blocks(const double *a, double *out, int n, int rows)
{
	int r, i, j;

	for (r = 0; r < patterns_size; r++)
		for (j = 0; j < rows; j++)
			for (i = 0; i < rows; i++)
				*out++ = a[(size_t)i * n + r * rows + j];
}

/* The block from each rank holds its part of our rows. Each round adds one. */
static void unpack_blocks(double *a, const double *in, int n, int rows)
{
	int r, i;
	int j;

	for (r = 0; r < patterns_size; r++)
		for (i = 0; i < rows; i++)
			for (j = 0; j < rows; j++)
				a[(size_t)i * n + r * rows + j] = *in++ + 1;
}

static double entry(long row, long column) { return 1000003.0 * row + column; }

static bool transpose(int n, int rounds, double *seconds)
{
	int rows = n / patterns_size, i, j, first = rows * patterns_rank;
	double *a, *out, *in;
	bool right = true;

	/* A whole number of rows each */
	n = rows * patterns_size;
	a = patterns_alloc((size_t)rows * n, sizeof(*a));
	out = patterns_alloc((size_t)rows * n, sizeof(*out));
	in = patterns_alloc((size_t)rows * n, sizeof(*in));
	for (i = 0; i < rows; i++)
		for (j = 0; j < n; j++)
			a[(size_t)i * n + j] = entry(first + i, j);
	MPI_Barrier(MPI_COMM_WORLD);
	*seconds = -MPI_Wtime();
	for (i = 0; i < rounds; i++) {
		pack_blocks(a, out, n, rows);
		MPI_Alltoall(out, rows * rows, MPI_DOUBLE, in, rows * rows, MPI_DOUBLE,
			     MPI_COMM_WORLD);
		unpack_blocks(a, in, n, rows);
	}
	*seconds += MPI_Wtime();
	for (i = 0; i < rows; i++)
		for (j = 0; j < n; j++) {
			double want = rounds % 2 ? entry(j, first + i) : entry(first + i, j);

			right &= a[(size_t)i * n + j] == want + rounds;
		}
	free(a);
	free(out);
	free(in);
	return right;
}

const struct pattern pattern_transpose = {
	"transpose", transpose, { 256, 512, 1024 }, { 41, 21, 11 },
};

/* ---- keys: sorted by value over all ranks, so blocks of any length ---- */

#define KEY_BITS 20

/* A full period over 32 bits; the upper ones are the good ones */
static uint32_t next_key(uint32_t *state)
{
	*state = 1664525 * *state + 1013904223;
	return *state >> (32 - KEY_BITS);
}

static int owner(uint32_t key)
{
	return (uint64_t)key * patterns_size >> KEY_BITS;
}

static void offsets(const int *counts, int *at)
{
	int r;

	at[0] = 0;
	for (r = 1; r < patterns_size; r++)
		at[r] = at[r - 1] + counts[r - 1];
}

static void by_owner(const uint32_t *keys, int n, uint32_t *out, int *counts, int *at)
{
	int *put = patterns_alloc(patterns_size, sizeof(*put)), i;

	memset(counts, 0, patterns_size * sizeof(*counts));
	for (i = 0; i < n; i++)
		counts[owner(keys[i])]++;
	offsets(counts, at);
	memcpy(put, at, patterns_size * sizeof(*put));
	for (i = 0; i < n; i++)
		out[put[owner(keys[i])]++] = keys[i];
	free(put);
}

/* How many of each key: in that order they are sorted. */
static void count_keys(const uint32_t *keys, int n, int *of)
{
	int i;

	memset(of, 0, sizeof(*of) << KEY_BITS);
	for (i = 0; i < n; i++)
		of[keys[i]]++;
}

/* Each rank has only its own keys, none was lost, and the sum is unchanged. */
static bool keys_are_right(const int *of, uint64_t sent_sum, uint64_t sent)
{
	uint64_t mine[4] = { sent_sum, sent, 0, 0 }, all[4];
	uint32_t k;

	for (k = 0; k < 1u << KEY_BITS; k++) {
		if (of[k] && owner(k) != patterns_rank)
			return false;
		mine[2] += (uint64_t)k * of[k];
		mine[3] += of[k];
	}
	MPI_Allreduce(mine, all, 4, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	return all[0] == all[2] && all[1] == all[3];
}

static bool keys(int n, int rounds, double *seconds)
{
	uint32_t state = 12345 + patterns_rank, *mine, *out, *in = NULL;
	int *tables = patterns_alloc(4 * patterns_size, sizeof(int)), *of, i, j, got;
	int *send = tables, *recv = send + patterns_size;
	int *send_at = recv + patterns_size, *recv_at = send_at + patterns_size;
	bool right = true;
	double t;

	n /= patterns_size;
	mine = patterns_alloc(n, sizeof(*mine));
	out = patterns_alloc(n, sizeof(*out));
	of = patterns_alloc((size_t)1 << KEY_BITS, sizeof(*of));
	*seconds = 0;
	for (i = 0; i < rounds; i++) {
		uint64_t sum = 0;

		for (j = 0; j < n; j++)
			sum += mine[j] = next_key(&state);
		MPI_Barrier(MPI_COMM_WORLD);
		t = MPI_Wtime();
		by_owner(mine, n, out, send, send_at);
		MPI_Alltoall(send, 1, MPI_INT, recv, 1, MPI_INT, MPI_COMM_WORLD);
		offsets(recv, recv_at);
		got = recv_at[patterns_size - 1] + recv[patterns_size - 1];
		free(in);
		in = patterns_alloc(got, sizeof(*in));
		MPI_Alltoallv(out, send, send_at, MPI_UINT32_T, in, recv, recv_at, MPI_UINT32_T,
			      MPI_COMM_WORLD);
		count_keys(in, got, of);
		*seconds += MPI_Wtime() - t;
		right &= keys_are_right(of, sum, n);
	}
	free(in);
	free(mine);
	free(out);
	free(of);
	free(tables);
	return right;
}

const struct pattern pattern_keys = { "keys", keys, { 1 << 16, 1 << 20, 1 << 23 }, { 20, 10, 5 } };
