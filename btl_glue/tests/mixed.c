// SPDX-License-Identifier: GPL-2.0-only
/*
 * usage: mixed ROUNDS [SEED]
 *
 * Every rank sends messages of random length, most of them near a limit of the protocol, to
 * random ranks, up to 96 at a time; each is checked, and so is their order.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 96
#define LONGEST 9000
#define MAX_RANKS 64

static const int limits[] = {
	0, 8, 10, 42, 64, 240, 256, 362, 384, 512, 1024, 1086, 1900, 4096, 4210,
};
#define NR_LIMITS (int)(sizeof(limits) / sizeof(limits[0]))

static int rank, size, errors;
static unsigned char out[WINDOW][LONGEST], in[LONGEST];

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static int length(uint32_t *seed)
{
	uint32_t r = next_random(seed);
	int n;

	if (r % 8 == 0)
		return r / 8 % LONGEST;
	n = limits[r / 8 % NR_LIMITS] + (int)(r / 256 % 33) - 16;
	return n < 0 ? 0 : n;
}

/* The seed of the @nr'th message between two ranks: both sides know its length and bytes. */
static uint32_t seed_of(int from, int to, int nr)
{
	return (from * 64 + to) * 2654435761u + nr * 40503u;
}

static void fill(unsigned char *p, uint32_t seed, int n)
{
	int i;

	for (i = 0; i < n; i++)
		p[i] = seed + i * 5 + (i >> 8);
}

static void receive_one(int from, int nr)
{
	uint32_t seed = seed_of(from, rank, nr);
	int n = length(&seed), got, i;
	MPI_Status status;

	MPI_Recv(in, LONGEST, MPI_BYTE, from, 0, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_BYTE, &got);
	for (i = 0; i < n && got == n && in[i] == (unsigned char)(seed + i * 5 + (i >> 8)); i++)
		;
	if ((got != n || i != n) && errors++ < 5)
		printf("rank %d: message %d from %d: %d bytes, not %d, or byte %d\n", rank, nr,
		       from, got, n, i);
}

/* Each rank knows what all will send in this round: @count[from][to] messages. */
static void plan(int round, uint32_t seed, int count[MAX_RANKS][MAX_RANKS])
{
	int from, i;

	seed += round;
	memset(count, 0, MAX_RANKS * sizeof(*count));
	for (from = 0; from < size; from++)
		for (i = next_random(&seed) % WINDOW + 1; i > 0; i--)
			count[from][next_random(&seed) % size]++;
}

static void one_round(int round, uint32_t seed)
{
	static int sent[MAX_RANKS], received[MAX_RANKS], count[MAX_RANKS][MAX_RANKS];
	MPI_Request req[WINDOW];
	int nr = 0, i, r, n;
	uint32_t s;

	plan(round, seed, count);
	for (r = 0; r < size; r++)
		for (i = 0; i < count[rank][r]; i++, nr++) {
			s = seed_of(rank, r, sent[r]++);
			n = length(&s);
			fill(out[nr], s, n);
			MPI_Isend(out[nr], n, MPI_BYTE, r, 0, MPI_COMM_WORLD, &req[nr]);
		}
	for (r = 0; r < size; r++)
		for (i = 0; i < count[r][rank]; i++)
			receive_one(r, received[r]++);
	MPI_Waitall(nr, req, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100, all, i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size > MAX_RANKS)
		MPI_Abort(MPI_COMM_WORLD, 2);
	for (i = 0; i < rounds; i++)
		one_round(i, argc > 2 ? atoi(argv[2]) : 1);
	MPI_Allreduce(&errors, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return all != 0;
}
