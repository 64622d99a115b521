// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Do the counters say which operations were called, and how data were handed over? Two ranks,
 * as many as processors.
 */
#define COUNTER_PREFIX "coll_pvas_"
#include "operations.h"
#include "counter.h"

#define MOST (1 << 17)

static const char *const names[] = { "posts_copied", "posts_in_place", "posts_shared" };
static struct counter counters[3];

/* Which of the counters rises, on both ranks together, in an operation? Bit by bit */
static int rising(const char *what, double *s, double *r, int n)
{
	long long before[3], now[3], sum[3];
	int i, bits = 0;

	for (i = 0; i < 3; i++)
		before[i] = counter_read(&counters[i]);
	operate(what, s, r, n, 0, MPI_COMM_WORLD);
	for (i = 0; i < 3; i++)
		now[i] = counter_read(&counters[i]) - before[i];
	MPI_Allreduce(now, sum, 3, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
	for (i = 0; i < 3; i++)
		bits |= (sum[i] > 0) << i;
	return bits;
}

static int check(const char *what, double *s, double *r, int n, int expected)
{
	const int found = rising(what, s, r, n);
	int i;

	for (i = 0; i < 3 && found != expected && rank == 0; i++)
		printf("%s, %d numbers: %s %s\n", what, n, names[i],
		       found >> i & 1 ? "rises" : "stays");
	return found != expected;
}

/* Is one call of this operation counted, and none of another? */
static int check_calls(const char *way, int which, const struct counter *calls, double *s,
		       double *r)
{
	long long before[NR_OPERATIONS];
	char name[32];
	int i, bad = 0;

	for (i = 0; i < NR_OPERATIONS; i++)
		before[i] = counter_read(&calls[i]);
	snprintf(name, sizeof(name), "%s%s", way, operations[which]);
	operate(name, s, r, 1, 0, MPI_COMM_WORLD);
	for (i = 0; i < NR_OPERATIONS; i++)
		bad += before[i] < 0 || counter_read(&calls[i]) != before[i] + (i == which);
	if (bad)
		printf("%s is not counted as one call of %s\n", name, operations[which]);
	return bad;
}

static int check_all_calls(double *s, double *r)
{
	static struct counter calls[NR_OPERATIONS];
	char name[40];
	int i, bad = 0;

	make_ring(MPI_COMM_WORLD);
	for (i = 0; i < NR_OPERATIONS; i++) {
		snprintf(name, sizeof(name), "calls_%s", operations[i]);
		counter_find(&calls[i], name);
	}
	for (i = 0; i < NR_OPERATIONS; i++) {
		bad += check_calls("", i, calls, s, r);
		bad += check_calls("i", i, calls, s, r);
		bad += check_calls("p", i, calls, s, r);
	}
	MPI_Comm_free(&ring);
	return bad;
}

/* MPI_IN_PLACE: blocks of two ranks change places, and each byte of both is copied once. */
static int check_swap(double *r, int n)
{
	const int peer = 1 - rank;
	struct counter copied;
	long long before, now, sum;
	int i, bad = 0;

	for (i = 0; i < 2 * n; i++)
		r[i] = rank * 1e6 + i;
	counter_find(&copied, "bytes_copied");
	before = counter_read(&copied);
	MPI_Alltoall(MPI_IN_PLACE, n, MPI_DOUBLE, r, n, MPI_DOUBLE, MPI_COMM_WORLD);
	now = counter_read(&copied) - before;
	for (i = 0; i < 2 * n; i++)
		bad += r[i] != (i / n == rank ? rank * 1e6 + i : peer * 1e6 + rank * n + i % n);
	MPI_Allreduce(&now, &sum, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (bad || sum != 2LL * n * (long long)sizeof(*r))
		printf("%d numbers in place: %d wrong, %lld bytes copied\n", n, bad, sum);
	return bad || sum != 2LL * n * (long long)sizeof(*r);
}

int main(int argc, char **argv)
{
	double *s = calloc(MOST * 4, sizeof(*s)), *r = calloc(MOST * 4, sizeof(*r));
	int i, bad = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	counters_begin();
	for (i = 0; i < 3; i++)
		counter_find(&counters[i], names[i]);
	bad += check("bcast", s, r, 1, 1);
	bad += check("bcast", s, r, MOST, 2 | 4);
	bad += check("allgather", s, r, 1, 1);
	bad += check("alltoallv", s, r, 2, 1);
	bad += check("allgather", s, r, MOST, 2);
	bad += check("ialltoall", s, r, MOST, 2);
	bad += check_swap(r, 3) + check_swap(r, 1001) + check_swap(r, MOST);
	bad += check_all_calls(s, r);
	MPI_Finalize();
	free(s);
	free(r);
	return bad != 0;
}
