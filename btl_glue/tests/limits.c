// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * By which way messages go, at the limits. Rank 0 sends, the others only receive.
 *
 *	limits window	messages to a peer that does not poll: 24 of 2000 bytes are handed over
 *	limits long	a message too long for the fast box does not go through the queue
 *	limits boxes	all peers but one get a fast box, if there are six
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counter.h"

#define WINDOW 24
#define LONG 1960
#define ROUNDS 200

static int rank, size;
static char buf[WINDOW][2000];
static struct counter eager, references, boxes;

static int expect(long long got, long long least, const char *what)
{
	if (got < least)
		printf("%s: %lld, not %lld\n", what, got, least);
	return got < least;
}

/* Until a fast box has been requested and given */
static void warm_up(int from, int to)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		if (rank == from) {
			MPI_Send(&i, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
			MPI_Recv(&i, 1, MPI_INT, to, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else if (rank == to) {
			MPI_Recv(&i, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(&i, 1, MPI_INT, from, 0, MPI_COMM_WORLD);
		}
	}
}

static int window(void)
{
	MPI_Request req[WINDOW];
	long long before;
	int i, bad = 0;

	warm_up(0, 1);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 1)
		sleep(1);
	before = counter_read(&references);
	for (i = 0; i < WINDOW; i++) {
		if (rank == 0)
			MPI_Isend(buf[i], 2000, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &req[i]);
		else
			MPI_Irecv(buf[i], 2000, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &req[i]);
	}
	if (rank == 0)
		bad = expect(counter_read(&references) - before, WINDOW, "messages handed over");
	MPI_Waitall(WINDOW, req, MPI_STATUSES_IGNORE);
	return bad;
}

static int too_long(void)
{
	long long before, copied;
	int i;

	warm_up(0, 1);
	MPI_Barrier(MPI_COMM_WORLD);
	before = counter_read(&references);
	copied = counter_read(&eager);
	for (i = 0; i < ROUNDS; i++) {
		if (rank == 0)
			MPI_Send(buf, LONG, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
		else
			MPI_Recv(buf, LONG, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (rank)
		return 0;
	return expect(counter_read(&references) - before, ROUNDS, "messages by reference") +
	       expect(copied - counter_read(&eager), 0, "minus messages that were copied");
}

/* The last one's request may take some away from peers that have been silent since. */
static int many(void)
{
	long long now, most = 0;
	int i;

	for (i = 1; i < size; i++) {
		warm_up(i, 0);
		now = counter_read(&boxes);
		most = now > most ? now : most;
	}
	return rank ? 0 : expect(most, size - 2, "fast boxes");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int bad, all;

	MPI_Init(&argc, &argv);
	counters_begin();
	counter_find(&eager, "eager");
	counter_find(&references, "references");
	counter_find(&boxes, "fast_boxes");
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	bad = !strcmp(what, "window") ? window() : !strcmp(what, "long") ? too_long() : many();
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return all != 0;
}
