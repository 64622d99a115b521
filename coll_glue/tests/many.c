// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Communicators made, used and freed many times, some of them at a time, in changing order:
 * the memory held stays the same, and one that is never used takes none.
 *
 *	many [COMMUNICATORS]
 */
#define COUNTER_PREFIX "coll_pvas_"
#include "common.h"

#include "counter.h"

#define AT_A_TIME 8

static struct counter held;

static long long resident(void)
{
	long long all = 0, kib = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%lld %lld", &all, &kib) != 2)
		kib = 0;
	if (f)
		fclose(f);
	return 4 * kib;
}

/* False: a result is wrong. */
static int use(MPI_Comm comm, int i)
{
	int mine = rank + i, sum, n = i;

	MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
	MPI_Bcast(&n, 1, MPI_INT, i % size, comm);
	return sum == size * (size - 1) / 2 + i * size && n == i;
}

static int round_of(int i)
{
	MPI_Comm comms[AT_A_TIME], unused;
	int k, good = 1;

	for (k = 0; k < AT_A_TIME; k++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[k]);
	MPI_Comm_dup(MPI_COMM_WORLD, &unused);
	for (k = 0; k < AT_A_TIME; k++)
		good &= use(comms[(k + i) % AT_A_TIME], i + k);
	for (k = 0; k < AT_A_TIME; k++)
		MPI_Comm_free(&comms[(k * 3) % AT_A_TIME]);
	MPI_Comm_free(&unused);
	return good;
}

int main(int argc, char **argv)
{
	const int rounds = (argc > 1 ? atoi(argv[1]) : 1000) / (AT_A_TIME + 1);
	long long before, after, kib;
	int i, good = 1, all;

	MPI_Init(&argc, &argv);
	counters_begin();
	counter_find(&held, "bytes_held");
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (i = 0; i < 20; i++)
		good &= round_of(i);
	MPI_Barrier(MPI_COMM_WORLD);
	before = counter_read(&held);
	kib = resident();
	for (i = 0; i < rounds; i++)
		good &= round_of(i);
	MPI_Barrier(MPI_COMM_WORLD);
	after = counter_read(&held);
	kib = resident() - kib;
	/* At most one round's, if a rank was late in freeing them */
	if (!good || after > before + AT_A_TIME * (size * 128 + (64 << 10)) ||
	    (rank == 0 && before <= 0) || kib > 4096) {
		printf("rank %d: results %s; bytes held: %lld, then %lld; %lld KiB more resident\n",
		       rank, good ? "right" : "wrong", before, after, kib);
		good = 0;
	}
	MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	MPI_Finalize();
	return !all;
}
