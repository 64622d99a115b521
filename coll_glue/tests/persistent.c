// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Persistent operations: started many times with changing data, in an order of each rank's
 * own; more of them than share a block; some that are never started; and a communicator that is
 * freed before its requests. The memory held is the same in the end.
 */
#define COUNTER_PREFIX "coll_pvas_"
#include "common.h"
#include "counter.h"


#define OPERATIONS 20
#define ROUNDS 30
#define LONGEST 2000
#define MANY 600

static double sent[OPERATIONS][LONGEST], received[OPERATIONS][LONGEST];
static int bad;

static int length(int i)
{
	return i % 3 ? 1 + i : LONGEST;
}

static double value(int from, int i, int round)
{
	return from * 1e6 + i * 1e3 + round;
}

/* An allreduce or a bcast, of which any rank is the root */
static void initialize(int i, MPI_Comm comm, MPI_Request *request)
{
	if (i % 2)
		PERSISTENT(Bcast)(received[i], length(i), MPI_DOUBLE, i % size, comm, MPI_INFO_NULL,
				request);
	else
		PERSISTENT(Allreduce)(sent[i], received[i], length(i), MPI_DOUBLE, MPI_MAX, comm,
				    MPI_INFO_NULL, request);
}

static void fill(int i, int round)
{
	const int from_root = i % 2 && rank == i % size;
	int k;

	for (k = 0; k < length(i); k++) {
		sent[i][k] = value(rank, i, round);
		received[i][k] = from_root ? value(rank, i, round) : -1;
	}
}

static void check(int i, int round)
{
	const double expected = value(i % 2 ? i % size : size - 1, i, round);
	int k, wrong = 0;

	for (k = 0; k < length(i); k++)
		wrong += received[i][k] != expected;
	if (wrong)
		printf("rank %d of %d: operation %d, round %d: %d wrong\n", rank, size, i, round,
		       wrong);
	bad += wrong;
}

/* Each rank begins with another operation, and goes through them with another step. */
static void rounds(MPI_Comm comm)
{
	static const int steps[] = { 1, 3, 7, 9 };
	const int step = steps[rank % 4];
	MPI_Request requests[OPERATIONS];
	int round, i, k;

	for (i = 0; i < OPERATIONS; i++)
		initialize(i, comm, &requests[i]);
	MPI_Comm_free(&comm);
	for (round = 0; round < ROUNDS; round++) {
		for (k = 0; k < OPERATIONS; k++) {
			i = (rank + k * step) % OPERATIONS;
			fill(i, round);
			MPI_Start(&requests[i]);
		}
		MPI_Waitall(OPERATIONS, requests, MPI_STATUSES_IGNORE);
		for (i = 0; i < OPERATIONS; i++)
			check(i, round);
	}
	for (i = 0; i < OPERATIONS; i++)
		MPI_Request_free(&requests[i]);
}

/* One after the other, of which every third is not started */
static void many(MPI_Comm comm)
{
	MPI_Request request;
	int i;

	for (i = 0; i < MANY; i++) {
		initialize(i % OPERATIONS, comm, &request);
		if (i % 3) {
			fill(i % OPERATIONS, i);
			MPI_Start(&request);
			MPI_Wait(&request, MPI_STATUS_IGNORE);
			check(i % OPERATIONS, i);
		}
		MPI_Request_free(&request);
	}
	MPI_Comm_free(&comm);
}

/* Neither is anything left of communicators whose operations were never started. */
static void never_started(void)
{
	MPI_Request request;
	MPI_Comm comm;
	int i, most = 0;

	for (i = 0; i < 60; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		if (MPI_Comm_c2f(comm) > most)
			most = MPI_Comm_c2f(comm);
		initialize(0, comm, &request);
		MPI_Request_free(&request);
		MPI_Comm_free(&comm);
	}
	if (most > 40) {
		printf("rank %d: %d communicators at a time\n", rank, most);
		bad++;
	}
}

static void both(void)
{
	MPI_Comm comms[2];

	MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
	MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
	rounds(comms[0]);
	many(comms[1]);
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	struct counter held;
	long long before;
	int all, i;

	MPI_Init(&argc, &argv);
	counters_begin();
	counter_find(&held, "bytes_held");
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	both();
	before = counter_read(&held);
	for (i = 0; i < 8; i++)
		both();
	/* Each time there are four blocks of 256 lines; some may be left, if a rank was late. */
	if (counter_read(&held) > before + 16 * 256 * 64 * size) {
		printf("rank %d: %lld bytes held, then %lld\n", rank, before, counter_read(&held));
		bad++;
	}
	never_started();
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return all != 0;
}
