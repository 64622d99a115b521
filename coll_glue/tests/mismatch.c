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
	size_t i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (i = 0; i < sizeof(sent) / sizeof(sent[0]); i++)
		bad += try(sent[i], i % size);
	MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	bad += all != size;
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return all != 0;
}
