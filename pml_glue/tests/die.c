// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * usage: die SEED
 *
 * The last rank is killed at a random moment while all exchange messages of random lengths.
 * The others must end soon, with an error.
 */
#include "common.h"

#include <signal.h>
#include <sys/time.h>

static unsigned char out[LONGEST], in[LONGEST];

static void end(int sig)
{
	(void)sig;
	raise(SIGKILL);
}

static void end_soon(uint64_t *seed)
{
	struct itimerval after = { .it_value.tv_usec = 1000 + below(seed, 60000) };

	signal(SIGALRM, end);
	setitimer(ITIMER_REAL, &after, NULL);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? atoi(argv[1]) : 1, common = seed;
	int n, shift, tag;

	begin(&argc, &argv);
	if (rank == size - 1)
		end_soon(&seed);
	/* The tag keeps apart the messages of a rank that is ahead. */
	for (tag = 0;; tag = (tag + 1) % 30000) {
		n = limits[below(&common, NR_LIMITS)];
		shift = 1 + below(&common, size - 1);
		MPI_Sendrecv(out, n, MPI_CHAR, (rank + shift) % size, tag, in, n, MPI_CHAR,
			     below(&common, 2) ? (rank + size - shift) % size : MPI_ANY_SOURCE,
			     tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}
