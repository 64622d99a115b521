// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * MPI_THREAD_MULTIPLE: each thread does each operation, blocking, non-blocking and persistent, on a
 * communicator of its own and in an order of its own. Results are those of coll/basic.
 *
 *	together [ROUNDS]
 */
#include "operations.h"

#include <pthread.h>

#define THREADS 3
#define NR_LENGTHS 2
#define MOST 3000

static const int lengths[NR_LENGTHS] = { 3, MOST };
static MPI_Comm comms[THREADS], rings[THREADS];
static double *expected[NR_OPERATIONS][NR_LENGTHS];
static int wrong[THREADS], rounds = 3;

static int numbers(int n)
{
	return n * (size + 2);
}

static void prepare(double *s, double *r, int n)
{
	int i;

	for (i = 0; i < numbers(n); i++) {
		s[i] = rank * 1000 + i % 100;
		r[i] = -1;
	}
}

static double *allocate(int n)
{
	return malloc(numbers(n) * sizeof(double));
}

static void compute_expected(void)
{
	MPI_Comm basic = basic_comm(MPI_COMM_WORLD);
	double *s = allocate(MOST);
	int i, k, n;

	make_ring(basic);
	for (i = 0; i < NR_OPERATIONS; i++) {
		for (k = 0; k < NR_LENGTHS; k++) {
			n = lengths[k];
			expected[i][k] = allocate(n);
			prepare(s, expected[i][k], n);
			operate(operations[i], s, expected[i][k], n, i % size, basic);
		}
	}
	free(s);
	MPI_Comm_free(&ring);
	MPI_Comm_free(&basic);
}

static int check(int i, const char *way, double *s, double *r, int k, MPI_Comm comm)
{
	const int n = lengths[k];
	char name[32];

	snprintf(name, sizeof(name), "%s%s", way, operations[i]);
	prepare(s, r, n);
	operate(name, s, r, n, i % size, comm);
	if (!memcmp(r, expected[i][k], numbers(n) * sizeof(*r)))
		return 0;
	printf("rank %d: %s of %d numbers\n", rank, name, n);
	return 1;
}

static void *work(void *arg)
{
	static const char *const ways[] = { "", "i", "p" };
	const int me = (int)(intptr_t)arg;
	double *s = allocate(MOST), *r = allocate(MOST);
	int i, k, at;

	ring = rings[me];
	for (i = 0; i < rounds * NR_OPERATIONS; i++) {
		at = (i * 5 + me * 7) % NR_OPERATIONS;
		for (k = 0; k < NR_LENGTHS; k++)
			wrong[me] += check(at, ways[(i + me + k) % 3], s, r, k, comms[me]);
	}
	free(s);
	free(r);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int provided, i, bad = 0, all;

	if (argc > 1)
		rounds = atoi(argv[1]);
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	if (provided < MPI_THREAD_MULTIPLE)
		return 77;
	make_ring(MPI_COMM_WORLD);
	MPI_Comm_free(&ring);
	compute_expected();
	for (i = 0; i < THREADS; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
		make_ring(comms[i]);
		rings[i] = ring;
	}
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		bad += wrong[i];
	}
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (i = 0; i < THREADS; i++) {
		MPI_Comm_free(&rings[i]);
		MPI_Comm_free(&comms[i]);
	}
	MPI_Finalize();
	return all != 0;
}
