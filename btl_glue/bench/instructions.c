// SPDX-License-Identifier: GPL-2.0-only
/*
 * usage: instructions SIZE...
 *
 * Instructions for each message, which no other load on the machine changes: the sender's of
 * MPI_Isend, and the receiver's of MPI_Irecv and MPI_Waitall for messages that have come
 * already; the median of five times 16 messages. Each is counted by a SIGTRAP.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT 16
#define TIMES 5
#define WARM 60
#define TRAP_FLAG 0x100

static volatile long instructions;
static MPI_Request req[COUNT];
static char *buf;
static int rank;

static void count_one(int sig)
{
	(void)sig;
	instructions++;
}

static void set_trap(int on)
{
	unsigned long flags = __builtin_ia32_readeflags_u64();

	__builtin_ia32_writeeflags_u64(on ? flags | TRAP_FLAG : flags & ~(unsigned long)TRAP_FLAG);
}

static void send_some(int n)
{
	int i;

	for (i = 0; i < COUNT; i++)
		MPI_Isend(buf, n, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &req[i]);
}

static void receive_some(int n)
{
	int i;

	for (i = 0; i < COUNT; i++)
		MPI_Irecv(buf, n, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &req[i]);
	MPI_Waitall(COUNT, req, MPI_STATUSES_IGNORE);
}

static long counted(void (*some)(int n), int n)
{
	instructions = 0;
	set_trap(1);
	some(n);
	set_trap(0);
	return instructions;
}

/* The other rank does nothing while one is counted. */
static long one_time(int n, int count)
{
	long result = 0;
	int token = 0;

	if (rank == 0) {
		if (count)
			result = counted(send_some, n);
		else
			send_some(n);
		MPI_Waitall(COUNT, req, MPI_STATUSES_IGNORE);
	}
	if (rank == 1) {
		/* Long enough for the messages to come, short for a person */
		if (count)
			usleep(20000);
		result = count ? counted(receive_some, n) : 0;
		if (!count)
			receive_some(n);
		MPI_Send(&token, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
	} else {
		MPI_Recv(&token, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	return result;
}

static int by_value(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

static void measure(int n)
{
	long v[TIMES], received;
	int i;

	for (i = 0; i < WARM; i++)
		one_time(n, 0);
	for (i = 0; i < TIMES; i++)
		v[i] = one_time(n, 1);
	qsort(v, TIMES, sizeof(v[0]), by_value);
	if (rank == 1)
		MPI_Send(&v[TIMES / 2], 1, MPI_LONG, 0, 2, MPI_COMM_WORLD);
	if (rank == 1)
		return;
	MPI_Recv(&received, 1, MPI_LONG, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	printf("%d sender %.1f receiver %.1f\n", n, (double)v[TIMES / 2] / COUNT,
	       (double)received / COUNT);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct sigaction act = { .sa_handler = count_one };
	int i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	sigaction(SIGTRAP, &act, NULL);
	buf = calloc(1, 1 << 20);
	for (i = 1; i < argc; i++)
		if (atoi(argv[i]) <= 1 << 20)
			measure(atoi(argv[i]));
	MPI_Finalize();
	return 0;
}
