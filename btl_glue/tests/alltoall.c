// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * All ranks to all others, with checked data: collective, pairwise in both directions
 * at once, and with a non-contiguous datatype; sizes around all limits of the protocol.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static long errors;

static uint8_t value(int from, int to, size_t i)
{
	return (uint8_t)(from * 131 + to * 31 + i * 7 + (i >> 8) + (i >> 16));
}

static void fill(uint8_t *p, int from, int to, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		p[i] = value(from, to, i);
}

static void check(const uint8_t *p, int from, int to, size_t n, const char *what)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (p[i] == value(from, to, i))
			continue;
		if (errors++ < 5)
			printf("%s of %zu from %d to %d: byte %zu is %u, not %u\n", what, n, from,
			       to, i, p[i], value(from, to, i));
		return;
	}
}

static void collective(size_t n)
{
	uint8_t *out = malloc(n * size + 1), *in = malloc(n * size + 1);
	int i;

	for (i = 0; i < size; i++)
		fill(out + i * n, rank, i, n);
	memset(in, 0xee, n * size + 1);
	MPI_Alltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, MPI_COMM_WORLD);
	for (i = 0; i < size; i++)
		check(in + i * n, i, rank, n, "alltoall");
	free(out);
	free(in);
}

/* Many messages at once, so that queues and fast boxes fill up */
static void burst(size_t n, int count)
{
	MPI_Request *req = malloc(2 * count * sizeof(*req));
	int to = (rank + 1) % size, from = (rank + size - 1) % size;
	uint8_t *out = malloc(n + 1), *in = malloc(n * count + 1);
	int i;

	fill(out, rank, to, n);
	memset(in, 0xee, n * count + 1);
	for (i = 0; i < count; i++)
		MPI_Isend(out, n, MPI_BYTE, to, i, MPI_COMM_WORLD, &req[i]);
	for (i = 0; i < count; i++)
		MPI_Irecv(in + i * n, n, MPI_BYTE, from, i, MPI_COMM_WORLD, &req[count + i]);
	MPI_Waitall(2 * count, req, MPI_STATUSES_IGNORE);
	for (i = 0; i < count; i++)
		check(in + i * n, from, rank, n, "burst");
	free(out);
	free(in);
	free(req);
}

/* Every second block of 16 bytes */
static void pieces(size_t n)
{
	size_t blocks = n / 16, i;
	int to = (rank + 1) % size, from = (rank + size - 1) % size;
	uint8_t *out = malloc(blocks * 32 + 1), *in = malloc(blocks * 32 + 1);
	uint8_t *flat = malloc(blocks * 16 + 1);
	MPI_Datatype type;

	fill(flat, rank, to, blocks * 16);
	for (i = 0; i < blocks; i++)
		memcpy(out + 32 * i, flat + 16 * i, 16);
	MPI_Type_vector(blocks, 16, 32, MPI_BYTE, &type);
	MPI_Type_commit(&type);
	MPI_Sendrecv(out, 1, type, to, 9, in, 1, type, from, 9, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	for (i = 0; i < blocks; i++)
		memcpy(flat + 16 * i, in + 32 * i, 16);
	check(flat, from, rank, blocks * 16, "vector");
	MPI_Type_free(&type);
	free(out);
	free(in);
	free(flat);
}

static void synchronous(size_t n)
{
	int to = (rank + 1) % size, from = (rank + size - 1) % size;
	uint8_t *out = malloc(n + 1), *in = malloc(n + 1);
	MPI_Request req;

	fill(out, rank, to, n);
	MPI_Issend(out, n, MPI_BYTE, to, 3, MPI_COMM_WORLD, &req);
	MPI_Recv(in, n, MPI_BYTE, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	check(in, from, rank, n, "ssend");
	free(out);
	free(in);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {
		0, 1, 8, 40, 41, 56, 57, 63, 64, 65, 200, 256, 257, 1000, 4000, 4095, 4096, 4097,
		4160, 4223, 4224, 4225, 8192, 10000, 32768, 65536, 100000, 1 << 20, 8 << 20,
	};
	size_t most = argc > 1 ? strtoul(argv[1], NULL, 0) : 8 << 20;
	long all;
	unsigned int i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && sizes[i] <= most; i++) {
		collective(sizes[i]);
		burst(sizes[i], sizes[i] > 100000 ? 3 : 100);
		pieces(sizes[i]);
		synchronous(sizes[i]);
	}
	MPI_Allreduce(&errors, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	if (rank == 0)
		printf("alltoall: %d ranks, %ld errors\n", size, all);
	return all != 0;
}
