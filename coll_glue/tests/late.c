// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A root that is interrupted while it helps with a long copy, and peers that do not wait for
 * it: they must not use the line again that describes the copy.
 *
 *	late ROUNDS
 */
#include "common.h"

#include <signal.h>
#include <sys/time.h>
#include <time.h>

#define LONG (64 << 10)
#define AHEAD 40	/* more than there are lines */
#define SHORT 6		/* fits into a line */
#define DELAY_NS 300000
#define EVERY_US 1009

static char data[LONG];

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void delay(int signal)
{
	long long end = now_ns() + DELAY_NS;

	(void)signal;
	while (now_ns() < end)
		;
}

static void be_interrupted(void)
{
	const struct sigaction action = { .sa_handler = delay, .sa_flags = SA_RESTART };
	const struct itimerval often = { { 0, EVERY_US }, { 0, EVERY_US } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

/* Numbers that would be a claim, a length and an address if they were taken for a copy */
static int reduce_all(int root)
{
	static const long ours[SHORT] = { 1, 500, 7, 20, 5, 6 };
	long sum[SHORT] = { 0 };
	int i, k, bad = 0;

	for (i = 0; i < AHEAD; i++) {
		MPI_Reduce(ours, sum, SHORT, MPI_LONG, MPI_SUM, root, MPI_COMM_WORLD);
		for (k = 0; rank == root && k < SHORT; k++)
			bad += sum[k] != size * ours[k];
	}
	return bad;
}

static int scatter_from(int root, char first)
{
	static char blocks[LONG * 8];
	int r;

	for (r = 0; r < size; r++)
		blocks[r * LONG] = first;
	MPI_Scatter(blocks, LONG, MPI_CHAR, data, LONG, MPI_CHAR, root, MPI_COMM_WORLD);
	return data[0] != first;
}

static int bcast_from(int root, char first)
{
	data[0] = rank == root ? first : 0;
	MPI_Bcast(data, LONG, MPI_CHAR, root, MPI_COMM_WORLD);
	return data[0] != first;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1, i, bad = 0, all;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (!rank)
		be_interrupted();
	for (i = 0; i < rounds; i++) {
		bad += i % 2 ? bcast_from(0, i % 100 + 1) : scatter_from(0, i % 100 + 1);
		bad += reduce_all(0);
	}
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	if (!rank && all)
		printf("%d wrong results\n", all);
	return all != 0;
}
