// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which way do messages go? Each pair of ranks exchanges some; the component
 * pvas must have carried those between ranks of one node, and no others.
 *
 *	nodes NODES	fails if there are not so many nodes
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counter.h"

#define MESSAGES	50
#define LONG		100000

static int exchange(int peer, int rank)
{
	static unsigned char out[LONG], in[LONG];
	int bad = 0, i, len;

	for (i = 0; i < MESSAGES; i++) {
		len = i % 10 ? 100 : LONG;
		memset(out, rank + i, len);
		MPI_Sendrecv(out, len, MPI_BYTE, peer, i, in, len, MPI_BYTE, peer, i,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		bad += in[0] != (unsigned char)(peer + i) || in[len - 1] != in[0];
	}
	return bad;
}

/* The ranks on this node, by the library's own view. */
static void find_node(int rank, int size, char *here, int *nodes)
{
	int first, n = 0, i, *firsts = malloc(size * sizeof(*firsts));
	MPI_Comm node;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
	first = rank;
	MPI_Bcast(&first, 1, MPI_INT, 0, node);
	MPI_Allgather(&first, 1, MPI_INT, firsts, 1, MPI_INT, MPI_COMM_WORLD);
	for (i = 0; i < size; i++) {
		here[i] = firsts[i] == first;
		n += firsts[i] == i;
	}
	*nodes = n;
	free(firsts);
	MPI_Comm_free(&node);
}

int main(int argc, char **argv)
{
	int wanted = argc > 1 ? atoi(argv[1]) : 1;
	int rank, size, nodes, shift, bad = 0, all;
	struct counter eager, rendezvous;
	long long inside = 0, outside = 0, before;
	char name[MPI_MAX_PROCESSOR_NAME];
	int len, local = 0;
	char *here;

	MPI_Init(&argc, &argv);
	counters_begin();
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Get_processor_name(name, &len);
	here = malloc(size);
	find_node(rank, size, here, &nodes);
	counter_find(&eager, "eager");
	counter_find(&rendezvous, "rendezvous");

	/* Pairs: peer = shift - rank; nobody else talks meanwhile, so counts are this pair's. */
	for (shift = 0; shift < size; shift++) {
		int peer = (shift - rank + size) % size;

		if (peer == rank)
			continue;
		before = counter_read(&eager) + counter_read(&rendezvous);
		bad += exchange(peer, rank);
		if (here[peer])
			inside += counter_read(&eager) + counter_read(&rendezvous) - before;
		else
			outside += counter_read(&eager) + counter_read(&rendezvous) - before;
		local += here[peer];
	}
	printf("rank %d on %s: %d nodes, %d local peers, by pvas %lld inside, %lld outside\n", rank,
	       name, nodes, local, inside, outside);
	bad += nodes != wanted || outside != 0 || inside < (long long)local * MESSAGES;
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return all != 0;
}
