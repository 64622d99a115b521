// SPDX-License-Identifier: GPL-2.0-only
/*
 * Roots that are no rank: each operation returns MPI_ERR_ROOT, stores nothing, and the next
 * one with a good root works.
 */
#include "common.h"

#define NR_OPERATIONS 12

static int call(int what, int *s, int *r, int root, MPI_Comm comm, MPI_Request *request)
{
	static int ones[64], at[64];
	int i;

	for (i = 0; i < size; i++) {
		ones[i] = 1;
		at[i] = i;
	}
	switch (what) {
	case 0: return MPI_Bcast(r, 1, MPI_INT, root, comm);
	case 1: return MPI_Reduce(s, r, 1, MPI_INT, MPI_SUM, root, comm);
	case 2: return MPI_Gather(s, 1, MPI_INT, r, 1, MPI_INT, root, comm);
	case 3: return MPI_Gatherv(s, 1, MPI_INT, r, ones, at, MPI_INT, root, comm);
	case 4: return MPI_Scatter(s, 1, MPI_INT, r, 1, MPI_INT, root, comm);
	case 5: return MPI_Scatterv(s, ones, at, MPI_INT, r, 1, MPI_INT, root, comm);
	case 6: return MPI_Ibcast(r, 1, MPI_INT, root, comm, request);
	case 7: return MPI_Ireduce(s, r, 1, MPI_INT, MPI_SUM, root, comm, request);
	case 8: return MPI_Igather(s, 1, MPI_INT, r, 1, MPI_INT, root, comm, request);
	case 9: return MPI_Igatherv(s, 1, MPI_INT, r, ones, at, MPI_INT, root, comm, request);
	case 10: return MPI_Iscatter(s, 1, MPI_INT, r, 1, MPI_INT, root, comm, request);
	default: return MPI_Iscatterv(s, ones, at, MPI_INT, r, 1, MPI_INT, root, comm, request);
	}
}

static int check(int what, int root, MPI_Comm comm)
{
	const int good = root >= 0 && root < size;
	int s[64], r[64], i, rc, class = MPI_SUCCESS, changed = 0;
	MPI_Request request = MPI_REQUEST_NULL;

	for (i = 0; i < 64; i++) {
		s[i] = 1;
		r[i] = -7;
	}
	rc = call(what, s, r, root, comm, &request);
	if (rc)
		MPI_Error_class(rc, &class);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	for (i = 0; i < 64; i++)
		changed |= r[i] != -7;
	if (class == (good ? MPI_SUCCESS : MPI_ERR_ROOT) && (good || !changed))
		return 0;
	printf("rank %d: operation %d, root %d: class %d, %s\n", rank, what, root, class,
	       changed ? "stored" : "not stored");
	return 1;
}

int main(int argc, char **argv)
{
	int what, bad = 0, all;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (what = 0; what < NR_OPERATIONS; what++) {
		bad += check(what, size, MPI_COMM_WORLD);
		bad += check(what, -1, MPI_COMM_WORLD);
		bad += check(what, 1 << 30, MPI_COMM_WORLD);
		bad += check(what, size - 1, MPI_COMM_WORLD);
	}
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return all != 0;
}
