// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One rank has another count, or another datatype, than all others. Each operation returns at all
 * ranks, with success or MPI_ERR_TRUNCATE, stores nothing behind a buffer, and the communicator can
 * be used on. Which ranks are told is tested by "mismatch".
 *
 *	unequal [OPERATION]...
 */
#include "operations.h"

#define GUARD 64
#define COMMON 50

/* With room for @n numbers for each rank, as operate() wants it */
static double *buffer(int n, int value)
{
	const int nr = n * (size + 2);
	double *p = malloc((nr + GUARD) * sizeof(*p));
	int i;

	for (i = 0; i < nr + GUARD; i++)
		p[i] = i < nr ? value : -7;
	return p;
}

static int overwritten(const double *p, int n)
{
	int i;

	for (i = 0; i < GUARD; i++)
		if (p[n * (size + 2) + i] != -7)
			return 1;
	return 0;
}

static int check(const char *what, int n, int root, int odd)
{
	double *s = buffer(n, 1), *r = buffer(n, 2);
	int rc, bad, class = MPI_SUCCESS, one = 1, all = 0;

	rc = operate(what, s, r, n, root, MPI_COMM_WORLD);
	if (rc)
		MPI_Error_class(rc, &class);
	bad = overwritten(s, n) || overwritten(r, n) ||
	      (class != MPI_SUCCESS && class != MPI_ERR_TRUNCATE);
	if (bad)
		printf("rank %d: %s, %d numbers, root %d, odd %d: class %d, %s\n", rank, what, n, root,
		       odd, class, overwritten(r, n) ? "overwritten" : "not overwritten");
	elements = MPI_DOUBLE;
	MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	free(s);
	free(r);
	return bad + (all != size);
}

static int check_operation(const char *what)
{
	/* So many fit beside a line, or are read in place. */
	static const int odd_counts[] = { 3, 700, 30000 };
	int i, odd, bad = 0;

	for (odd = 0; odd < size; odd += size - 1) {
		for (i = 0; i < (int)(sizeof(odd_counts) / sizeof(odd_counts[0])); i++)
			bad += check(what, rank == odd ? odd_counts[i] : COMMON, 0, odd);
		elements = rank == odd ? MPI_CHAR : MPI_DOUBLE;
		bad += check(what, COMMON, 0, odd);
		elements = rank == odd ? MPI_DOUBLE : MPI_SHORT;
		bad += check(what, COMMON, 0, odd);
	}
	return bad;
}

int main(int argc, char **argv)
{
	char name[40];
	int i, bad = 0, all;

	MPI_Init(&argc, &argv);
	make_ring(MPI_COMM_WORLD);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
	for (i = 1; i < argc; i++)
		bad += check_operation(argv[i]);
	for (i = 0; i < NR_OPERATIONS && argc < 2; i++) {
		bad += check_operation(operations[i]);
		snprintf(name, sizeof(name), "i%s", operations[i]);
		bad += check_operation(name);
	}
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Finalize();
	return all != 0;
}
