// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Counts that do not match: the receiver is told of truncation, nothing is written behind its
 * buffer, and the communicator can be used on.
 */
#include "common.h"

#define GUARD 77
#define ROOM 4

static int *buffer(int n, int value)
{
	int *p = malloc((n + 64) * sizeof(*p)), i;

	for (i = 0; i < n + 64; i++)
		p[i] = i < n ? value : GUARD;
	return p;
}

/* Is the receiver told, and the memory behind its @room numbers as before? */
static int check(const char *what, int sent, int rc, int expected, const int *p, int room)
{
	int class = MPI_SUCCESS, i;

	if (rc)
		MPI_Error_class(rc, &class);
	for (i = room; i < room + 64 && p[i] == GUARD; i++)
		;
	if (class == expected && i == room + 64)
		return 0;
	printf("rank %d: %s of %d: error class %d, not %d; %s\n", rank, what, sent, class, expected,
	       i == room + 64 ? "nothing overwritten" : "memory overwritten");
	return 1;
}

/* The same of a non-blocking operation, which is told when it starts or when it is complete */
static int wait_for(int rc, MPI_Request *request)
{
	return rc ? rc : MPI_Wait(request, MPI_STATUS_IGNORE);
}

static int try_nonblocking(int n, int root)
{
	int *s = buffer(n * size, 1), *r = buffer(ROOM, 2), *all = buffer(ROOM * size, 3);
	const int other = rank == root ? MPI_SUCCESS : MPI_ERR_TRUNCATE;
	MPI_Request q;
	int rc, bad = 0;

	rc = wait_for(MPI_Ibcast(rank == root ? s : r, rank == root ? n : ROOM, MPI_INT, root,
				 MPI_COMM_WORLD, &q), &q);
	bad += check("ibcast", n, rc, other, r, ROOM);
	rc = wait_for(MPI_Iscatter(s, n, MPI_INT, rank == root ? MPI_IN_PLACE : r, ROOM, MPI_INT,
				   root, MPI_COMM_WORLD, &q), &q);
	bad += check("iscatter", n, rc, other, r, ROOM);
	rc = wait_for(MPI_Igather(s, rank == root ? ROOM : n, MPI_INT, all, ROOM, MPI_INT, root,
				  MPI_COMM_WORLD, &q), &q);
	bad += check("igather", n, rc, rank == root ? MPI_ERR_TRUNCATE : MPI_SUCCESS, all,
		     ROOM * size);
	rc = wait_for(MPI_Iallreduce(MPI_IN_PLACE, rank == root ? s : r, rank == root ? n : ROOM,
				     MPI_INT, MPI_SUM, MPI_COMM_WORLD, &q), &q);
	bad += check("iallreduce", n, rc, MPI_ERR_TRUNCATE, r, ROOM);
	rc = wait_for(MPI_Ibarrier(MPI_COMM_WORLD, &q), &q);
	bad += check("ibarrier", n, rc, MPI_SUCCESS, r, ROOM);
	free(s);
	free(r);
	free(all);
	return bad;
}

/* In a ring, the root sends more than there is room for, to both sides. */
static int try_neighbors(MPI_Comm ring, int n, int root)
{
	/* Open MPI requires that a rank receives as much as it sends. */
	const int each = rank == root ? n : ROOM;
	const int near = rank != root &&
			 ((rank + 1) % size == root || (root + 1) % size == rank);
	const int expected = near ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
	int *s = buffer(2 * each, 1), *r = buffer(2 * each, 2);
	MPI_Request q;
	int rc, bad = 0;

	rc = MPI_Neighbor_alltoall(s, each, MPI_INT, r, each, MPI_INT, ring);
	bad += check("neighbor_alltoall", n, rc, expected, r, 2 * each);
	rc = wait_for(MPI_Ineighbor_allgather(s, each, MPI_INT, r, each, MPI_INT, ring, &q), &q);
	bad += check("ineighbor_allgather", n, rc, expected, r, 2 * each);
	free(s);
	free(r);
	return bad;
}

/* An edge of a graph that only one of its ends has */
static int try_missing_edge(void)
{
	int *s = buffer(1, 1), *r = buffer(1, 2), rc, bad, i;
	int index[64], edge = 1;
	MPI_Comm graph;

	for (i = 0; i < size; i++)
		index[i] = 1;
	MPI_Graph_create(MPI_COMM_WORLD, size, index, &edge, 0, &graph);
	MPI_Comm_set_errhandler(graph, MPI_ERRORS_RETURN);
	rc = MPI_Neighbor_alltoall(s, 1, MPI_INT, r, 1, MPI_INT, graph);
	bad = check("missing edge", 1, rc, rank ? MPI_SUCCESS : MPI_ERR_TOPOLOGY, r, 1);
	MPI_Comm_free(&graph);
	free(s);
	free(r);
	return bad;
}

/* The sender has @n numbers for each, the receivers have room for few. */
static int try(int n, int root)
{
	int *s = buffer(n * size, 1), *r = buffer(ROOM, 2), *all = buffer(ROOM * size, 3);
	const int other = rank == root ? MPI_SUCCESS : MPI_ERR_TRUNCATE;
	int rc, bad = 0;

	rc = MPI_Bcast(rank == root ? s : r, rank == root ? n : ROOM, MPI_INT, root,
		       MPI_COMM_WORLD);
	bad += check("bcast", n, rc, other, r, ROOM);
	rc = MPI_Scatter(s, n, MPI_INT, rank == root ? MPI_IN_PLACE : r, ROOM, MPI_INT, root,
			 MPI_COMM_WORLD);
	bad += check("scatter", n, rc, other, r, ROOM);
	rc = MPI_Gather(s, rank == root ? ROOM : n, MPI_INT, all, ROOM, MPI_INT, root,
			MPI_COMM_WORLD);
	bad += check("gather", n, rc, rank == root ? MPI_ERR_TRUNCATE : MPI_SUCCESS, all,
		     ROOM * size);
	rc = MPI_Allreduce(MPI_IN_PLACE, rank == root ? s : r, rank == root ? n : ROOM, MPI_INT,
			   MPI_SUM, MPI_COMM_WORLD);
	bad += check("allreduce", n, rc, MPI_ERR_TRUNCATE, r, ROOM);
	rc = MPI_Barrier(MPI_COMM_WORLD);
	bad += check("barrier", n, rc, MPI_SUCCESS, r, ROOM);
	free(s);
	free(r);
	free(all);
	return bad;
}

int main(int argc, char **argv)
{
	static const int sent[] = { ROOM + 1, 11, 100, 2000, 100000 };
	int bad = 0, all, one = 1;
	MPI_Comm ring;
	size_t i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &one, 0, &ring);
	MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
	for (i = 0; i < sizeof(sent) / sizeof(sent[0]); i++) {
		bad += try(sent[i], i % size);
		bad += try_nonblocking(sent[i], i % size);
		bad += try_neighbors(ring, sent[i], i % size);
	}
	bad += try_missing_edge();
	MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	bad += all != size;
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return all != 0;
}
