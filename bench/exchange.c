// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory for an all-to-all among many ranks: each has a buffer of BYTES bytes to
 * send from, a slice of it for each rank, and one to receive into.
 *
 * usage: exchange BYTES
 *
 * Rank 0 prints one line when all is done and nothing is given back yet: the number of
 * ranks and, of /proc/meminfo in KiB, MemAvailable, PageTables and Shmem.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* Does slice i of the received data have the bytes that rank i sent to this rank? */
static int wrong(const char *in, size_t slice, int rank, int size)
{
	int i;

	for (i = 0; i < size; i++)
		if (in[i * slice] != (char)(i + rank) ||
		    in[(i + 1) * slice - 1] != (char)(i + rank))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 0) : 0, slice;
	int rank, size, i, bad, all;
	char *out, *in;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	slice = bytes / size;
	out = malloc(bytes);
	in = malloc(bytes);
	if (!slice || !out || !in)
		MPI_Abort(MPI_COMM_WORLD, 2);
	memset(in, 0, bytes);
	for (i = 0; i < size; i++)
		memset(out + i * slice, rank + i, slice);
	MPI_Alltoall(out, slice, MPI_CHAR, in, slice, MPI_CHAR, MPI_COMM_WORLD);
	bad = wrong(in, slice, rank, size);
	/* Wait until all ranks have the result. */
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0 && !all)
		printf("%d %ld %ld %ld\n", size, bench_meminfo("MemAvailable"),
		       bench_meminfo("PageTables"), bench_meminfo("Shmem"));
	MPI_Barrier(MPI_COMM_WORLD);
	free(out);
	free(in);
	MPI_Finalize();
	return all != 0;
}
