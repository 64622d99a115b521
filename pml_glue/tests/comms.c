// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * usage: comms ROUNDS
 *
 * Communicators that are made and freed while messages are on their way, and
 * intercommunicators; a message must not come in another communicator than its own.
 */
#include "common.h"

static unsigned char out[20000], in[20000];

/* Both requests outlive the handle of their communicator. */
static void freed_in_flight(int n)
{
	const int to = (rank + 1) % size, from = (rank + size - 1) % size;
	MPI_Request req[2];
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	fill(out, n, n);
	memset(in, 0, sizeof(in));
	MPI_Irecv(in, n, MPI_CHAR, from, 1, comm, &req[0]);
	MPI_Isend(out, n, MPI_CHAR, to, 1, comm, &req[1]);
	MPI_Comm_free(&comm);
	MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
	check(is_filled(in, n, n), "wrong data in a freed communicator");
}

/* A message found by mprobe outlives it, too. */
static void freed_with_message(int n)
{
	const int to = (rank + 1) % size, from = (rank + size - 1) % size;
	MPI_Message message;
	MPI_Request req;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	fill(out, n, n + 1);
	MPI_Isend(out, n, MPI_CHAR, to, 1, comm, &req);
	MPI_Mprobe(from, 1, comm, &message, MPI_STATUS_IGNORE);
	MPI_Comm_free(&comm);
	MPI_Mrecv(in, n, MPI_CHAR, &message, MPI_STATUS_IGNORE);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	check(is_filled(in, n, n + 1), "wrong data of a message found before");
}

/* The same tag and ranks in two communicators, received in the opposite order */
static void apart(void)
{
	const int to = (rank + 1) % size, from = (rank + size - 1) % size;
	int i, value, values[2] = { 10, 11 };
	MPI_Request req[2];
	MPI_Comm comms[2];

	for (i = 0; i < 2; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
	for (i = 0; i < 2; i++)
		MPI_Isend(&values[i], 1, MPI_INT, to, 3, comms[i], &req[i]);
	for (i = 1; i >= 0; i--) {
		MPI_Recv(&value, 1, MPI_INT, from, 3, comms[i], MPI_STATUS_IGNORE);
		check(value == values[i], "a message came in another communicator");
	}
	MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
	for (i = 0; i < 2; i++)
		MPI_Comm_free(&comms[i]);
}

/* Even ranks on one side, odd ranks on the other */
static void inter(int n)
{
	int here = rank % 2, remote, local, i, from;
	MPI_Comm half, both, merged;
	MPI_Request req[64];
	MPI_Status status;

	MPI_Comm_split(MPI_COMM_WORLD, here, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !here, 5, &both);
	MPI_Comm_remote_size(both, &remote);
	MPI_Comm_rank(both, &local);
	fill(out, n, rank);
	for (i = 0; i < remote; i++)
		MPI_Isend(out, n, MPI_CHAR, i, local, both, &req[i]);
	for (i = 0; i < remote; i++) {
		/* Each by its source, or as they come */
		MPI_Recv(in, n, MPI_CHAR, n % 16 ? i : MPI_ANY_SOURCE, MPI_ANY_TAG, both, &status);
		from = status.MPI_SOURCE;
		check(status.MPI_TAG == from, "a source is another one");
		check(is_filled(in, n, 2 * from + !here), "wrong data between groups");
	}
	MPI_Waitall(remote, req, MPI_STATUSES_IGNORE);
	MPI_Intercomm_merge(both, here, &merged);
	MPI_Barrier(merged);
	MPI_Comm_free(&merged);
	MPI_Comm_free(&both);
	MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
	static const int lengths[] = { 0, 8, 1024, 4096, 20000 };
	int i, rounds = argc > 1 ? atoi(argv[1]) : 20;
	struct counter owned;

	begin(&argc, &argv);
	counters_begin();
	counter_find(&owned, "communicators");
	for (i = 0; i < rounds; i++) {
		freed_in_flight(lengths[i % 5]);
		freed_with_message(lengths[i % 5]);
		apart();
		if (size > 1)
			inter(lengths[i % 5]);
	}
	check(counter_read(&owned) == 2, "communicators are left");
	return finish();
}
