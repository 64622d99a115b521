// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A rank, the last one by default, ends while all are in an operation with rank 0 as root. The
 * others must end soon, without a crash.
 *
 *	die OPERATION [ELEMENTS [RANK]]
 */
#include "operations.h"

#include <signal.h>
#include <sys/time.h>

int main(int argc, char **argv)
{
	const struct itimerval soon = { .it_value = { .tv_usec = 30000 } };
	const char *what = argc > 1 ? argv[1] : "barrier";
	const int n = argc > 2 ? atoi(argv[2]) : 1;
	const int victim = argc > 3 ? atoi(argv[3]) : -1;
	double *s, *r;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	s = calloc(n * (size + 2), sizeof(*s));
	r = calloc(n * (size + 2), sizeof(*r));
	make_ring(MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	/* With the default action it ends the process as SIGKILL does: no handler, no clean-up. */
	signal(SIGALRM, SIG_DFL);
	if (rank == (victim < 0 ? size - 1 : victim))
		setitimer(ITIMER_REAL, &soon, NULL);
	for (;;)
		operate(what, s, r, n, 0, MPI_COMM_WORLD);
}
