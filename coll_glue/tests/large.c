// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * More than 2 GiB of data, and displacements of more than that. Senders have zero pages, in
 * which only some numbers are stored, so that little more than one rank's result takes memory.
 */
#include "common.h"

#include <sys/mman.h>

#define GIB ((size_t)1 << 30)
#define NUMBERS (((size_t)1 << 28) + 4096)	/* of 8 bytes: 2 GiB and 32 KiB */

static int bad;

static void expect(int good, const char *what)
{
	if (good)
		return;
	printf("rank %d of %d: %s\n", rank, size, what);
	bad++;
}

static double *map(size_t bytes)
{
	double *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return p;
}

/* The @k-th of the numbers that are checked, up to the last one */
static size_t place(int k)
{
	static const size_t places[] = {
		0, 1000, NUMBERS / 2, ((size_t)1 << 28) - 1, (size_t)1 << 28, NUMBERS - 1,
	};

	return places[k];
}

static void store(double *p)
{
	int k;

	for (k = 0; k < 6; k++)
		p[place(k)] = rank + 10 * k + 1;
}

static void check(const double *p, int from, double factor, const char *what)
{
	int k;

	for (k = 0; k < 6; k++)
		expect(p[place(k)] == factor * (from + 10 * k + 1), what);
	expect(p[place(3) - 1] == 0, what);
}

static void bcast(int nonblocking)
{
	double *p = map(NUMBERS * sizeof(*p));
	MPI_Request request;

	if (rank == 0)
		store(p);
	if (nonblocking) {
		MPI_Ibcast(p, NUMBERS, MPI_DOUBLE, 0, MPI_COMM_WORLD, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else {
		MPI_Bcast(p, NUMBERS, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	}
	check(p, 0, 1, nonblocking ? "ibcast" : "bcast");
	munmap(p, NUMBERS * sizeof(*p));
}

/* The sum of what all have at the same places, of which only the rank's number differs */
static void reduce(void)
{
	const double ranks = size * (size - 1) / 2;
	double *s = map(NUMBERS * sizeof(*s)), *r = map(NUMBERS * sizeof(*r));
	int k;

	store(s);
	MPI_Reduce(s, r, NUMBERS, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	for (k = 0; k < 6 && rank == 0; k++)
		expect(r[place(k)] == size * (10 * k + 1) + ranks, "reduce");
	munmap(s, NUMBERS * sizeof(*s));
	munmap(r, NUMBERS * sizeof(*r));
}

/* The last rank sends one block of 4 KiB again and again; the root stores all of them. */
static void gather(void)
{
	static double block[512];
	double *r = rank ? NULL : map(NUMBERS * sizeof(*r));
	int counts[64] = { 0 }, displs[64] = { 0 };
	MPI_Datatype repeated;

	MPI_Type_create_hvector(NUMBERS / 512, 512, 0, MPI_DOUBLE, &repeated);
	MPI_Type_commit(&repeated);
	block[0] = 7;
	block[511] = 8;
	counts[size - 1] = NUMBERS;
	MPI_Gatherv(block, rank == size - 1, repeated, r, counts, displs, MPI_DOUBLE, 0,
		    MPI_COMM_WORLD);
	MPI_Type_free(&repeated);
	if (rank)
		return;
	expect(r[0] == 7 && r[511] == 8 && r[NUMBERS - 512] == 7 && r[NUMBERS - 1] == 8 &&
	       r[NUMBERS - 2] == 0 && r[(size_t)1 << 28] == 7, "gatherv");
	munmap(r, NUMBERS * sizeof(*r));
}

/* Few numbers, 1 GiB from each other: blocks begin behind 2^31 bytes. */
static void far(void)
{
	const size_t bytes = (3 * size + 1) * GIB;
	double *s = map(bytes), *r = map(bytes);
	int counts[64], displs[64], i, k, wrong = 0;
	MPI_Datatype far;

	MPI_Type_create_resized(MPI_DOUBLE, 0, GIB, &far);
	MPI_Type_commit(&far);
	for (i = 0; i < size; i++) {
		counts[i] = 3;
		displs[i] = 3 * (size - 1 - i);
		for (k = 0; k < 3; k++)
			s[(3 * i + k) * (GIB / 8)] = 100 * rank + 10 * i + k;
	}
	MPI_Alltoall(s, 3, far, r, 3, far, MPI_COMM_WORLD);
	for (i = 0; i < size; i++)
		for (k = 0; k < 3; k++)
			wrong += r[(3 * i + k) * (GIB / 8)] != 100 * i + 10 * rank + k;
	expect(!wrong, "alltoall with a large extent");
	MPI_Allgatherv(s, 3, far, r, counts, displs, far, MPI_COMM_WORLD);
	for (wrong = i = 0; i < size; i++)
		for (k = 0; k < 3; k++)
			wrong += r[(displs[i] + k) * (GIB / 8)] != 100 * i + k;
	expect(!wrong, "allgatherv with a large extent");
	MPI_Type_free(&far);
	munmap(s, bytes);
	munmap(r, bytes);
}

/* Displacements of MPI_Aint */
static void neighbors(void)
{
	const int counts[2] = { 1, 1 }, periodic = 1;
	const MPI_Aint displs[2] = { 0, 3 * GIB };
	const MPI_Datatype types[2] = { MPI_DOUBLE, MPI_DOUBLE };
	double *s = map(4 * GIB), *r = map(4 * GIB);
	MPI_Comm ring;

	MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
	s[0] = 10 + rank;
	s[3 * GIB / 8] = 20 + rank;
	MPI_Neighbor_alltoallw(s, counts, displs, types, r, counts, displs, types, ring);
	expect(r[0] == 20 + (rank + size - 1) % size && r[3 * GIB / 8] == 10 + (rank + 1) % size,
	       "neighbor_alltoallw");
	MPI_Comm_free(&ring);
	munmap(s, 4 * GIB);
	munmap(r, 4 * GIB);
}

int main(int argc, char **argv)
{
	int all;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	far();
	neighbors();
	bcast(0);
	bcast(1);
	reduce();
	gather();
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return all != 0;
}
