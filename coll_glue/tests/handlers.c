// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Signal handlers: the program's own is called for a fault of its own, also from within an
 * operation and if it was installed before MPI_Init; and after MPI_Finalize, when with "first"
 * it is back in its place, too. Run it with OMPI_MCA_opal_signal=6: otherwise Open MPI's own
 * handler is in between.
 */
#include <mpi.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

static sigjmp_buf back;
static volatile int *volatile nowhere = (int *)16;
static int bad;

static void caught(int sig)
{
	siglongjmp(back, sig);
}

static void (*current(void))(int)
{
	struct sigaction now;

	sigaction(SIGSEGV, NULL, &now);
	return now.sa_handler;
}

/* An operator with a bug */
static void fault(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)in;
	(void)inout;
	(void)n;
	(void)type;
	*nowhere = 1;
}

int main(int argc, char **argv)
{
	const struct sigaction act = { .sa_handler = caught };
	const int first = argc > 1;
	int one = 1, sum;
	MPI_Op op;

	sigaction(SIGSEGV, &act, NULL);
	MPI_Init(&argc, &argv);
	MPI_Op_create(fault, 1, &op);
	if (sigsetjmp(back, 1) != SIGSEGV) {
		MPI_Allreduce(&one, &sum, 1, MPI_INT, op, MPI_COMM_WORLD);
		bad++;
	}
	MPI_Finalize();
	if (first && current() != caught) {
		puts("the program's handler is not back");
		bad++;
	}
	if (sigsetjmp(back, 1) != SIGSEGV) {
		*nowhere = 1;
		puts("the program's handler is not called after MPI_Finalize");
		bad++;
	}
	return bad;
}
