// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Unused fast boxes and fragments are released after a while, even if no other rank
 * requests one, and return when they are needed. "idle keep": with fbox_idle 0, never.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "counter.h"

#define TIMES 100
#define LONGEST_WAIT 30

static int rank, size, errors;
static struct counter held, boxes;

static void complain(const char *what, long long value)
{
	printf("rank %d: %s: %lld\n", rank, what, value);
	errors++;
}

/* Short messages, through a fast box, and non-contiguous ones, which need fragments */
static void talk(int seed)
{
	int to = (rank + 1) % size, from = (rank + size - 1) % size, in[64], out[64], i, j;
	MPI_Datatype type;

	MPI_Type_vector(32, 1, 2, MPI_INT, &type);
	MPI_Type_commit(&type);
	for (i = 0; i < TIMES; i++) {
		for (j = 0; j < 64; j++)
			out[j] = seed + i + j;
		memset(in, 0, sizeof(in));
		MPI_Sendrecv(out, 1, type, to, 0, in, 1, type, from, 0, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		for (j = 0; j < 64; j += 2)
			if (in[j] != seed + i + j)
				complain("wrong value received", in[j]);
	}
	MPI_Type_free(&type);
}

/* Only polls for messages. */
static void look(void)
{
	int found;

	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

static void wait_until_free(long long at_start)
{
	time_t end = time(NULL) + LONGEST_WAIT;

	while ((counter_read(&boxes) > 0 || counter_read(&held) > at_start) && time(NULL) < end)
		look();
	if (counter_read(&boxes) > 0)
		complain("fast boxes that nobody uses", counter_read(&boxes));
	if (counter_read(&held) > at_start)
		complain("bytes held more than at the start", counter_read(&held) - at_start);
}

static void look_for(double seconds)
{
	double end = MPI_Wtime() + seconds;

	while (MPI_Wtime() < end)
		look();
	if (counter_read(&boxes) < 1)
		complain("the fast box did not stay", counter_read(&boxes));
}

int main(int argc, char **argv)
{
	int keep = argc > 1 && !strcmp(argv[1], "keep"), all, i;
	long long at_start;

	MPI_Init(&argc, &argv);
	counters_begin();
	counter_find(&held, "bytes_held");
	counter_find(&boxes, "fast_boxes");
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	at_start = counter_read(&held);
	for (i = 0; i < 3; i++) {
		talk(1000 * i);
		if (counter_read(&boxes) < 1)
			complain("no fast box given", counter_read(&boxes));
		if (keep)
			look_for(0.3);
		else
			wait_until_free(at_start);
		/* The writer releases a fast box, so a rank that is done must go on polling. */
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Allreduce(&errors, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return all != 0;
}
