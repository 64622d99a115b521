// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which operations does the component do? With "none" it must do none of them; with "chosen",
 * only those that are faster than others' when ranks outnumber processors.
 */
#define COUNTER_PREFIX "coll_pvas_"
#include "operations.h"

#include "counter.h"

static struct counter done;

enum { NONE, ALL, CHOSEN };

/* Chosen for data of 8 bytes */
static const char *const chosen[] = {
	"bcast", "scatter", "allgather", "allgatherv", "alltoallw", "allreduce",
	"neighbor_alltoallw", "ibarrier", "iallreduce", "iallgather", "iallgatherv",
};

/* A barrier of fewer ranks is not chosen. */
#define BARRIER_RANKS 10

static int is_expected(const char *what, int how)
{
	size_t i;

	if (how == CHOSEN && !strcmp(what, "barrier"))
		return size >= BARRIER_RANKS;
	for (i = 0; i < sizeof(chosen) / sizeof(chosen[0]) && how == CHOSEN; i++)
		if (!strcmp(what, chosen[i]))
			return 1;
	return how == ALL;
}

static int check_one(const char *what, MPI_Comm comm, int how)
{
	const int expected = is_expected(what, how);
	double s[MOST_RANKS] = { 0 }, r[MOST_RANKS];
	const long long before = counter_read(&done);
	long long counted;

	operate(what, s, r, 1, 0, comm);
	counted = counter_read(&done) - before;
	if (counted == expected)
		return 0;
	printf("%s: %lld, not %d\n", what, counted, expected);
	return 1;
}

/* Is each operation counted, blocking, non-blocking and persistent, as expected? */
static int check(MPI_Comm comm, int how)
{
	char name[32];
	int i, bad = 0;

	make_ring(comm);
	for (i = 0; i < NR_OPERATIONS; i++) {
		bad += check_one(operations[i], comm, how);
		snprintf(name, sizeof(name), "i%s", operations[i]);
		bad += check_one(name, comm, how);
		snprintf(name, sizeof(name), "p%s", operations[i]);
		bad += check_one(name, comm, how);
	}
	MPI_Comm_free(&ring);
	return bad;
}

int main(int argc, char **argv)
{
	const char *arg = argc > 1 ? argv[1] : "all";
	const int how = !strcmp(arg, "none") ? NONE : !strcmp(arg, "chosen") ? CHOSEN : ALL;
	int world_rank, world_size, bad;
	MPI_Comm others;

	MPI_Init(&argc, &argv);
	counters_begin();
	counter_find(&done, "operations");
	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &world_size);
	bad = check(MPI_COMM_WORLD, how);
	MPI_Comm_split(MPI_COMM_WORLD, world_rank == world_size - 1, 0, &others);
	bad += check(others, world_rank < world_size - 1 && world_size > 2 ? how : NONE);
	MPI_Comm_free(&others);
	bad += check(MPI_COMM_SELF, NONE);
	MPI_Finalize();
	return bad != 0;
}
