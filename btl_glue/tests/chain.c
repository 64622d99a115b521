// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program's own handler of SIGSEGV, installed after MPI_Init, calls the one that it
 * found, also after MPI_Finalize. That one calls the one from before MPI_Init.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct sigaction found;

static void first(int sig)
{
	static const char text[] = "the first handler was called\n";

	(void)sig;
	_exit(write(STDOUT_FILENO, text, sizeof(text) - 1) < 0);
}

static void second(int sig, siginfo_t *info, void *context)
{
	if (found.sa_flags & SA_SIGINFO)
		found.sa_sigaction(sig, info, context);
	else
		found.sa_handler(sig);
	_exit(2);
}

static void install(struct sigaction *act, struct sigaction *old)
{
	sigemptyset(&act->sa_mask);
	sigaction(SIGSEGV, act, old);
}

int main(int argc, char **argv)
{
	struct sigaction before = { .sa_handler = first };
	struct sigaction after = { .sa_sigaction = second, .sa_flags = SA_SIGINFO };

	/* Open MPI's own handler, if any, would be the one that is found. */
	setenv("OMPI_MCA_opal_signal", "6", 1);
	install(&before, NULL);
	MPI_Init(&argc, &argv);
	install(&after, &found);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	*(volatile int *)NULL = 1;
	return 3;
}
