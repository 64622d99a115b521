// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Data whose destination is some bytes behind their source, modulo a page, which are copied in
 * another way than others: do all bytes arrive, and none beside them?
 *
 *	behind
 */
#include "common.h"

#define PAGE 4096
#define MOST (5 * PAGE)

static char *sent, *received;

static char pattern(int of, int at)
{
	return 1 + (of * 31 + at * 7) % 101;
}

/* Each rank's block for each rank has @n bytes; what is received begins @distance bytes behind. */
static int check(int n, int distance)
{
	char *to = received + distance;
	int i, r, bad = 0;

	for (i = 0; i < n * size; i++)
		sent[i] = pattern(rank, i);
	memset(received, 0, (size_t)MOST * size + 2 * PAGE);
	MPI_Alltoall(sent, n, MPI_CHAR, to, n, MPI_CHAR, MPI_COMM_WORLD);
	for (r = 0; r < size; r++)
		for (i = 0; i < n; i++)
			bad += to[r * n + i] != pattern(r, rank * n + i);
	bad += distance && to[-1];
	return bad + (to[n * size] != 0);
}

int main(int argc, char **argv)
{
	static const int lengths[] = { 2047, 2048, 2049, 4097, 8192, 3 * PAGE + 63, MOST };
	int i, distance, bad = 0, all;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	sent = aligned_alloc(PAGE, (size_t)MOST * size);
	received = aligned_alloc(PAGE, (size_t)MOST * size + 2 * PAGE);
	for (i = 0; i < (int)(sizeof(lengths) / sizeof(lengths[0])); i++)
		for (distance = 0; distance < 34; distance++)
			bad += check(lengths[i], distance);
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d wrong bytes\n", all);
	MPI_Finalize();
	return all != 0;
}
