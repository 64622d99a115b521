// SPDX-License-Identifier: GPL-2.0-only
/*
 * usage: memory space|processes TIMES
 *
 * Memory used for messages, after TIMES all-to-alls of 4 KiB. One line: ranks; page
 * tables of all ranks and files in /dev/shm, in KiB; and the bytes held by the component
 * pvas: all ranks now, the sum of their maxima, and the largest maximum. In a space there
 * is one set of page tables, which each rank reports.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../tests/counter.h"

#define BYTES 4096

/* A line of /proc/self/status, in KiB */
static long status(const char *name)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			kib = atol(line + strlen(name) + 1);
	if (f)
		fclose(f);
	return kib;
}

/* The files in /dev/shm that this rank maps: those of all on this node */
static long segments(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4096], last[4096] = "", *path;
	struct stat st;
	long kib = 0;

	while (f && fgets(line, sizeof(line), f)) {
		path = strstr(line, "/dev/shm/");
		if (!path)
			continue;
		path[strcspn(path, "\n")] = 0;
		if (!strcmp(path, last) || stat(path, &st))
			continue;
		strcpy(last, path);
		kib += st.st_blocks / 2;
	}
	if (f)
		fclose(f);
	return kib;
}

static void talk(int size)
{
	char *out = calloc(size, BYTES), *in = calloc(size, BYTES);

	MPI_Alltoall(out, BYTES, MPI_CHAR, in, BYTES, MPI_CHAR, MPI_COMM_WORLD);
	free(out);
	free(in);
}

int main(int argc, char **argv)
{
	long mine[3], sum[3], most;
	struct counter held, high;
	int rank, size, space, i;

	MPI_Init(&argc, &argv);
	counters_begin();
	counter_find(&held, "bytes_held");
	counter_find(&high, "bytes_most");
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	space = argc > 1 && !strcmp(argv[1], "space");
	for (i = 0; argc > 2 && i < atoi(argv[2]); i++)
		talk(size);
	MPI_Barrier(MPI_COMM_WORLD);
	mine[0] = status("VmPTE");
	mine[1] = space ? counter_read(&held) : 0;
	mine[2] = space ? counter_read(&high) : 0;
	MPI_Reduce(mine, sum, 3, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine[2], &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d %ld %ld %ld %ld %ld\n", size, space ? mine[0] : sum[0], segments(),
		       sum[1], sum[2], most);
	MPI_Finalize();
	return 0;
}
