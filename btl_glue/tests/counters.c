// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which path do messages take? Sends short and long ones to all ranks, and compares the
 * component's performance variables; with "none", the component must not be there. Also
 * that the memory held does not grow with the number of ranks that get no message.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counter.h"

#define LONG 100000

static const char *const names[] = {
	"bytes_held", "fast_boxes", "eager", "references", "rendezvous", "bytes_copied",
	"waits",
};
enum { HELD, BOXES, EAGER, REFERENCES, RENDEZVOUS, COPIED, WAITS, NR };

static struct counter counters[NR];

static void talk(int rank, int size)
{
	char *p = malloc(LONG), *q = malloc(LONG);
	int i, n;

	memset(p, 0, LONG);
	for (i = 0; i < 100; i++) {
		n = i % 10 ? 100 : LONG;
		MPI_Sendrecv(p, n, MPI_CHAR, (rank + 1) % size, 0, q, n, MPI_CHAR,
			     (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	free(p);
	free(q);
}

static void print(int rank, long long at_start, const long long *v)
{
	char line[512];
	int i, len = snprintf(line, sizeof(line), "rank %d: at start %lld bytes;", rank, at_start);

	for (i = 0; i < NR; i++)
		len += snprintf(line + len, sizeof(line) - len, " %s %lld", names[i], v[i]);
	puts(line);
}

int main(int argc, char **argv)
{
	int none = argc > 1 && !strcmp(argv[1], "none");
	int rank, size, ok, all, i;
	long long v[NR], at_start;

	MPI_Init(&argc, &argv);
	counters_begin();
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (i = 0; i < NR; i++)
		counter_find(&counters[i], names[i]);
	at_start = counter_read(&counters[HELD]);
	talk(rank, size);
	for (i = 0; i < NR; i++)
		v[i] = counter_read(&counters[i]);
	if (none)
		ok = v[EAGER] <= 0;
	else
		ok = at_start > 0 && at_start < 16 << 10 && v[HELD] < 32 << 10 &&
		     v[BOXES] >= 1 && v[EAGER] >= 90 && v[RENDEZVOUS] == 10 &&
		     v[COPIED] == 10 * LONG;
	if (rank == 0 || !ok)
		print(rank, at_start, v);
	MPI_Allreduce(&ok, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	MPI_Finalize();
	return !all;
}
