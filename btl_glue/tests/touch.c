// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sender, which helps to copy a long message, touches no page of the receiver's buffer
 * first. Two ranks; rank 0 sends, rank 1 receives into new pages.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "counter.h"

#define LONG (4 << 20)
#define PAGES (LONG / 4096)
#define MOST_ROUNDS 200

static int rank;
static char *out;

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

static void receive(void)
{
	char *p = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		MPI_Abort(MPI_COMM_WORLD, 2);
	madvise(p, LONG, MADV_NOHUGEPAGE);
	MPI_Recv(p, LONG, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (memcmp(p, out, LONG))
		MPI_Abort(MPI_COMM_WORLD, 3);
	munmap(p, LONG);
}

int main(int argc, char **argv)
{
	struct counter helped;
	long before, ours = 0;
	int rounds, enough = 0, bad = 0;

	MPI_Init(&argc, &argv);
	counters_begin();
	counter_find(&helped, "pieces_helped");
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	out = malloc(LONG);
	memset(out, 7, LONG);
	for (rounds = 0; rounds < MOST_ROUNDS && !enough; rounds++) {
		before = faults();
		if (rank == 0)
			MPI_Send(out, LONG, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
		else
			receive();
		ours += faults() - before;
		enough = rank == 0 && counter_read(&helped) >= 64;
		MPI_Bcast(&enough, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	/* A piece that was helped with has at least 4 pages. */
	if (rank == 0) {
		bad = !enough || ours > 64;
		printf("%d rounds: helped with %lld pieces, %ld page faults\n", rounds,
		       counter_read(&helped), ours);
	}
	MPI_Bcast(&bad, 1, MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Finalize();
	return bad;
}
