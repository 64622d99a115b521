// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * usage: becomes send|early|bcast|receive
 *
 * Rank 1 offers data and becomes another program before rank 0 takes them: this one again, so
 * that it has other data of its own at the same address (run it without randomized addresses),
 * and with a mapping where the old one's allocations were. Rank 0 must end, without those data.
 * Or it is rank 0 that sends, which must store nothing in that mapping.
 */
#include "common.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LONG = 1 << 20, SHORT = 2000, BEFORE = 7, AFTER = 0x99 };

static const size_t mapping = 1UL << 30;
static unsigned char buf[LONG];

/* The program that follows tells rank 0 when it has its data, and outlives that. */
static int follow(pid_t peer)
{
	const uint64_t *words = mmap(NULL, mapping, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t i;

	memset(buf, AFTER, sizeof(buf));
	kill(peer, SIGUSR1);
	sleep(2);
	for (i = 0; i < mapping / sizeof(*words); i++)
		check(!words[i], "data of the program that followed are changed");
	sleep(3);
	return 0;
}

static void offer(const char *program, const char *how, pid_t peer)
{
	const int bytes = *how == 'e' ? SHORT : LONG;
	MPI_Request request;
	char pid[20];

	memset(buf, BEFORE, sizeof(buf));
	if (*how == 'r')
		MPI_Recv(buf, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else if (*how == 'b')
		MPI_Ibcast(buf, bytes, MPI_CHAR, 1, MPI_COMM_WORLD, &request);
	else
		MPI_Isend(buf, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
	sprintf(pid, "%d", peer);
	execl(program, program, "follow", pid, NULL);
}

/* The first one, before rank 1 becomes another program, makes that a peer. */
static void give(const sigset_t *signals)
{
	int sig, i;

	MPI_Send(buf, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
	sigwait(signals, &sig);
	memset(buf, BEFORE, SHORT);
	for (i = 0; i < 8; i++)
		MPI_Send(buf, SHORT / 2, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
	/* Without a call that finds out: rank 1 looks. */
	sleep(5);
}

static void take(const char *how, const sigset_t *signals)
{
	MPI_Request request = MPI_REQUEST_NULL;
	int sig, i, flag;

	sigwait(signals, &sig);
	/* Unexpected at first */
	if (*how == 'e')
		MPI_Iprobe(1, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	if (*how == 'b')
		MPI_Ibcast(buf, LONG, MPI_CHAR, 1, MPI_COMM_WORLD, &request);
	else
		MPI_Irecv(buf, LONG, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	for (i = 0; i < LONG; i++)
		check(buf[i] != AFTER, "data of the program that followed");
}

int main(int argc, char **argv)
{
	pid_t peer = getpid();
	sigset_t signals;

	if (argc > 2)
		return follow(atoi(argv[2]));
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	begin(&argc, &argv);
	MPI_Bcast(&peer, 1, MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 1)
		offer(argv[0], argv[1], peer);
	else if (*argv[1] == 'r')
		give(&signals);
	else
		take(argv[1], &signals);
	return finish();
}
