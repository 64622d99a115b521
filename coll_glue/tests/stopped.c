// SPDX-License-Identifier: GPL-2.0-only
/*
 * A peer paused by SIGSTOP in the middle of operations: the others wait for it, as long as it
 * takes, and all results are right.
 *
 *	stopped [MILLISECONDS]
 */
#include "common.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#define ROUNDS 2000
#define NUMBERS 5000

static int pid, pause_ms = 400;
static volatile int paused;

/* The pause outlasts the intervals in which waiting ranks look after their peers. */
static void *stop_and_continue(void *arg)
{
	(void)arg;
	usleep(20000);
	paused = !kill(pid, SIGSTOP);
	usleep(1000 * pause_ms);
	return kill(pid, SIGCONT) ? arg : NULL;
}

static int check_round(int i)
{
	static double s[NUMBERS], r[NUMBERS], all[64 * NUMBERS];
	const int n = i % 5 ? 3 : NUMBERS;
	int k, bad = 0;

	for (k = 0; k < n; k++)
		s[k] = rank + i + k;
	MPI_Allreduce(s, r, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	for (k = 0; k < n; k++)
		bad += r[k] != size * (i + k) + size * (size - 1) / 2;
	MPI_Bcast(r, n, MPI_DOUBLE, i % size, MPI_COMM_WORLD);
	MPI_Allgather(s, n, MPI_DOUBLE, all, n, MPI_DOUBLE, MPI_COMM_WORLD);
	for (k = 0; k < size * n; k++)
		bad += all[k] != k / n + i + k % n;
	return bad;
}

int main(int argc, char **argv)
{
	int pids[64], me = getpid(), i, bad = 0, all, more = 1;
	pthread_t thread;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc > 1)
		pause_ms = atoi(argv[1]);
	MPI_Allgather(&me, 1, MPI_INT, pids, 1, MPI_INT, MPI_COMM_WORLD);
	pid = pids[size - 1];
	if (rank == 0)
		pthread_create(&thread, NULL, stop_and_continue, NULL);
	for (i = 0; more; i++) {
		bad += check_round(i);
		/* Some more after the pause has begun */
		more = i < ROUNDS && (!paused || i % 100);
		MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	if (rank == 0) {
		pthread_join(thread, NULL);
		bad += !paused;
	}
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return all != 0;
}
