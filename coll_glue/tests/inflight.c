// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Many non-blocking operations at once: on several communicators, in an order of each rank's
 * own among these; freed communicators; a start that waits for nobody; and completion while
 * the rank is in another operation.
 */
#include "common.h"

#define COMMS 4
#define EACH 40			/* more than there are lines for */
#define LONGEST 3000

struct operation {
	MPI_Request request;
	int n, root;
	double *s, *r;
};

static int bad;

static void expect(int good, const char *what)
{
	if (good)
		return;
	printf("rank %d of %d: %s\n", rank, size, what);
	bad++;
}

static double value(int from, int i, int k)
{
	return from * 1e6 + i * 1e3 + k % 7;
}

/* The @i-th operation of a communicator */
static void start(struct operation *op, int i, MPI_Comm comm)
{
	int k;

	op->n = i % 3 ? 1 + i : LONGEST;
	op->root = i % size;
	op->s = malloc(op->n * sizeof(double));
	op->r = malloc(op->n * sizeof(double));
	for (k = 0; k < op->n; k++)
		op->s[k] = value(rank, i, k);
	if (i % 2) {
		MPI_Ibcast(op->s, op->n, MPI_DOUBLE, op->root, comm, &op->request);
		return;
	}
	MPI_Iallreduce(op->s, op->r, op->n, MPI_DOUBLE, MPI_MAX, comm, &op->request);
}

static void complete(struct operation *op, int i)
{
	const double *result = i % 2 ? op->s : op->r;
	int k, wrong = 0;

	MPI_Wait(&op->request, MPI_STATUS_IGNORE);
	for (k = 0; k < op->n; k++)
		wrong += result[k] != value(i % 2 ? op->root : size - 1, i, k);
	expect(!wrong, i % 2 ? "ibcast" : "iallreduce");
	free(op->s);
	free(op->r);
}

/* The communicators are freed when their operations have just been started. */
static void many(void)
{
	static struct operation ops[COMMS][EACH];
	MPI_Comm comms[COMMS];
	int c, i, first;

	for (c = 0; c < COMMS; c++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[c]);
	for (i = 0; i < EACH; i++)
		for (c = 0; c < COMMS; c++)
			start(&ops[(c + rank) % COMMS][i], i, comms[(c + rank) % COMMS]);
	for (c = 0; c < COMMS; c++)
		MPI_Comm_free(&comms[c]);
	first = rank * 7;
	for (c = 0; c < COMMS; c++)
		for (i = 0; i < EACH; i++)
			complete(&ops[c][(i * 3 + first) % EACH], (i * 3 + first) % EACH);
}

/* On a new communicator, @late starts its operation only after a message from the others. */
static void start_is_local(int late)
{
	MPI_Request request;
	int i, token = 0;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	if (rank == late)
		for (i = 1; i < size; i++)
			MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
	MPI_Ibarrier(comm, &request);
	if (rank != late)
		MPI_Send(&token, 1, MPI_INT, late, 0, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Comm_free(&comm);
}

/* A barrier is not over before all have come, and goes on while its ranks are elsewhere. */
static void barrier(void)
{
	MPI_Request request;
	int flag = 0, token = rank;

	MPI_Ibarrier(MPI_COMM_WORLD, &request);
	MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
	if (rank == 1) {
		MPI_Recv(&token, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (rank == 0) {
		while (!flag)
			MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
		MPI_Send(&token, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
	}
	if (rank)
		MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* The last rank starts only when told that no other one has seen the barrier's end. */
static void nobody_passes(void)
{
	const int last = size - 1;
	MPI_Request request;
	int i, flag = 0, seen = 0, token = 0;

	if (rank == last) {
		for (i = 0; i < last; i++)
			MPI_Recv(&token, 1, MPI_INT, i, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Ibarrier(MPI_COMM_WORLD, &request);
	} else {
		MPI_Ibarrier(MPI_COMM_WORLD, &request);
		for (i = 0; i < 1000 && !flag; i++)
			MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
		seen = flag;
		MPI_Send(&token, 1, MPI_INT, last, 2, MPI_COMM_WORLD);
	}
	expect(!seen, "a barrier was over before all had come");
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	int all, i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (i = 0; i < size; i++)
		start_is_local(i);
	barrier();
	nobody_passes();
	for (i = 0; i < 5; i++)
		many();
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return all != 0;
}
