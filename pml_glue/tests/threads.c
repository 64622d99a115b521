// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * usage: threads ROUNDS
 *
 * MPI_THREAD_MULTIPLE: four threads of each rank exchange messages at once, in one
 * communicator, with tags of their own, by all kinds of calls; two of them take each other's.
 */
#include "common.h"

#include <pthread.h>

#define THREADS 4

static int rounds = 200;

struct thread {
	pthread_t id;
	int nr;
	unsigned char out[40000], in[40000];
};

static void blocking(struct thread *t, int n, int to, int from)
{
	MPI_Status status;

	if (t->nr == 1)
		MPI_Sendrecv(t->out, n, MPI_CHAR, to, t->nr, t->in, n, MPI_CHAR, MPI_ANY_SOURCE,
			     t->nr, MPI_COMM_WORLD, &status);
	else
		MPI_Sendrecv(t->out, n, MPI_CHAR, to, t->nr, t->in, n, MPI_CHAR, from, t->nr,
			     MPI_COMM_WORLD, &status);
}

static void probed(struct thread *t, int n, int to, int from)
{
	MPI_Message message;
	MPI_Request req;
	MPI_Status status;
	int count;

	MPI_Issend(t->out, n, MPI_CHAR, to, t->nr, MPI_COMM_WORLD, &req);
	MPI_Mprobe(from, t->nr, MPI_COMM_WORLD, &message, &status);
	MPI_Get_count(&status, MPI_CHAR, &count);
	check(count == n, "mprobe finds another length");
	MPI_Mrecv(t->in, n, MPI_CHAR, &message, &status);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
}

/* To the other one of two threads of the same rank, too */
static void local(struct thread *t, int n)
{
	MPI_Request req[2];
	const int other = 10 + (t->nr ^ 1);

	MPI_Irecv(t->in, n, MPI_CHAR, rank, 10 + t->nr, MPI_COMM_WORLD, &req[0]);
	MPI_Isend(t->out, n, MPI_CHAR, rank, other, MPI_COMM_WORLD, &req[1]);
	MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
}

static void *run(void *arg)
{
	const int to = (rank + 1) % size, from = (rank + size - 1) % size;
	struct thread *t = arg;
	uint64_t seed = t->nr / 2;
	int i, n;

	for (i = 0; i < rounds; i++) {
		/* The same for both threads of a pair, and in all ranks */
		n = limits[below(&seed, 19)];
		fill(t->out, n, i);
		memset(t->in, 0, n);
		if (i % 3 == 0)
			blocking(t, n, to, from);
		else if (i % 3 == 1)
			probed(t, n, to, from);
		else
			local(t, n);
		check(is_filled(t->in, n, i), "wrong data");
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct thread threads[THREADS];
	int i, provided;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	check(provided == MPI_THREAD_MULTIPLE, "no MPI_THREAD_MULTIPLE");
	if (argc > 1)
		rounds = atoi(argv[1]);
	for (i = 0; i < THREADS; i++) {
		threads[i].nr = i;
		pthread_create(&threads[i].id, NULL, run, &threads[i]);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i].id, NULL);
	return finish();
}
