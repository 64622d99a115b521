// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Messages that are longer than their receives: each is an error, MPI_ERR_TRUNCATE, whether
 * the receive is posted before the message comes or after it. No byte is written behind the
 * buffer. Those that fit arrive whole.
 *
 *	truncate [LONGEST]	the component's eager_limit allows this length in one piece
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counter.h"

#define DEFAULT	4096
#define LONGEST	16384
#define STEP	61
#define GUARD	64

enum order { POSTED_BEFORE, POSTED_AFTER, ORDERS };

static int failures, rank;
static char data[LONGEST], room[LONGEST + GUARD];

static void fail(const char *what, int len, int posted, enum order order)
{
	if (failures++ < 10)
		printf("%d bytes for a receive of %d, posted %s: %s\n", len, posted,
		       order == POSTED_BEFORE ? "before" : "after", what);
}

static void check(int len, int posted, enum order order, int rc, MPI_Status *status)
{
	int error = MPI_SUCCESS, count, i;

	if (rc)
		MPI_Error_class(rc, &error);
	if (error != (len > posted ? MPI_ERR_TRUNCATE : MPI_SUCCESS))
		fail(len > posted ? "not truncated" : "an error", len, posted, order);
	MPI_Get_count(status, MPI_CHAR, &count);
	if (len <= posted && (count != len || memcmp(room, data, len)))
		fail("other data", len, posted, order);
	for (i = posted; i < posted + GUARD; i++)
		if (room[i] != '#')
			break;
	if (i < posted + GUARD)
		fail("written behind the buffer", len, posted, order);
}

/* The message comes before the one that says so. */
static void receive(int len, int posted, enum order order)
{
	MPI_Request req;
	MPI_Status status;
	int rc;

	memset(room, '#', sizeof(room));
	if (order == POSTED_AFTER)
		MPI_Recv(NULL, 0, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Irecv(room, posted, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &req);
	if (order == POSTED_BEFORE)
		MPI_Send(NULL, 0, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
	rc = MPI_Wait(&req, &status);
	check(len, posted, order, rc, &status);
}

static void send(int len, enum order order)
{
	MPI_Request req;

	memset(data, len, len);
	if (order == POSTED_BEFORE)
		MPI_Recv(NULL, 0, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Isend(data, len, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &req);
	if (order == POSTED_AFTER)
		MPI_Send(NULL, 0, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
}

static void exchange(int len, int posted)
{
	enum order order;

	if (posted < 0 || posted > LONGEST)
		return;
	for (order = 0; order < ORDERS; order++) {
		if (rank == 0) {
			send(len, order);
		} else {
			memset(data, len, len);
			receive(len, posted, order);
		}
	}
}

int main(int argc, char **argv)
{
	static struct counter references;
	int longest = argc > 1 ? atoi(argv[1]) : DEFAULT, len, all;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	counters_begin();
	counter_find(&references, "references");
	for (len = STEP; len <= longest && len < LONGEST; len += STEP) {
		exchange(len, 0);
		exchange(len, len / 2);
		exchange(len, len - 1);
		exchange(len, len);
		exchange(len, len + 1);
	}
	if (rank == 0 && counter_read(&references) < 100) {
		printf("no messages were passed by reference\n");
		failures++;
	}
	MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return all != 0;
}
