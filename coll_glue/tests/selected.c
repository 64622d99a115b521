// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which operations does the component do? With "none" it must do none of them; with "some",
 * only those of the communicator that excludes the last rank.
 */
#define COUNTER_PREFIX "coll_pvas_"
#include "operations.h"

#include "counter.h"

static struct counter done;

static int check_one(const char *what, MPI_Comm comm, int expected)
{
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

/* Is each operation counted, blocking and non-blocking, or none? */
static int check(MPI_Comm comm, int expected)
{
	char name[32];
	int i, bad = 0;

	make_ring(comm);
	for (i = 0; i < NR_OPERATIONS; i++) {
		bad += check_one(operations[i], comm, expected);
		snprintf(name, sizeof(name), "i%s", operations[i]);
		bad += check_one(name, comm, expected);
	}
	MPI_Comm_free(&ring);
	return bad;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "all";
	int world_rank, world_size, bad;
	MPI_Comm others;

	MPI_Init(&argc, &argv);
	counters_begin();
	counter_find(&done, "operations");
	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &world_size);
	bad = check(MPI_COMM_WORLD, strcmp(how, "all") == 0);
	MPI_Comm_split(MPI_COMM_WORLD, world_rank == world_size - 1, 0, &others);
	bad += check(others, strcmp(how, "none") && world_rank < world_size - 1 && world_size > 2);
	MPI_Comm_free(&others);
	bad += check(MPI_COMM_SELF, 0);
	MPI_Finalize();
	return bad != 0;
}
