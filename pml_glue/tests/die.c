// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * usage: die kill|exec|replace|stop SEED
 *
 * All exchange messages of random lengths, and at a random moment the last rank is killed, or
 * becomes another program: the others must end soon, with an error. So must they if the new
 * program goes on, in memory where the old one's was. Or the rank is stopped and continued
 * again and again, and all goes on.
 */
#include "common.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#define ROUNDS 3000

static unsigned char out[LONGEST], in[LONGEST];
static int victim;
static const char *how;

static void end(int sig)
{
	(void)sig;
	if (*how == 'e')
		execl("/bin/true", "true", NULL);
	raise(*how == 's' ? SIGSTOP : SIGKILL);
}

static void go_on(int sig)
{
	(void)sig;
	kill(victim, SIGCONT);
}

/* @which: in real time, or in this process's: one that gets no processor is not stopped again. */
static void every(int which, int us, int interval, void (*handler)(int sig))
{
	struct itimerval timer = { .it_value.tv_usec = us, .it_interval.tv_usec = interval };
	struct sigaction act = { .sa_handler = handler, .sa_flags = SA_RESTART };

	sigaction(which == ITIMER_REAL ? SIGALRM : SIGPROF, &act, NULL);
	setitimer(which, &timer, NULL);
}

/* The others send when the new program runs, before they can have noticed. */
static void replace(void)
{
	if (rank == size - 1)
		execl("/bin/sleep", "sleep", "3", NULL);
	sleep(1);
	MPI_Send(out, 8, MPI_CHAR, size - 1, 0, MPI_COMM_WORLD);
}

static void prepare(uint64_t *seed)
{
	victim = getpid();
	MPI_Bcast(&victim, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
	if (*how == 'r')
		return;
	if (rank == size - 1 && *how == 's')
		every(ITIMER_PROF, 1000, 3000, end);
	else if (rank == size - 1)
		every(ITIMER_REAL, 1000 + below(seed, 60000), 0, end);
	else if (rank == 0 && *how == 's')
		every(ITIMER_REAL, 5000, 5000, go_on);
}

/* The tag keeps apart the messages of a rank that is ahead. */
static void exchange(uint64_t *seed, int tag)
{
	const int n = limits[below(seed, NR_LIMITS)], shift = 1 + below(seed, size - 1);
	const int from = (rank + size - shift) % size;

	fill(out, n, tag + rank);
	MPI_Sendrecv(out, n, MPI_CHAR, (rank + shift) % size, tag, in, n, MPI_CHAR,
		     below(seed, 2) ? from : MPI_ANY_SOURCE, tag, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	check(is_filled(in, n, tag + from), "wrong data");
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 2 ? atoi(argv[2]) : 1, common = seed;
	int i;

	how = argc > 1 ? argv[1] : "kill";
	begin(&argc, &argv);
	prepare(&seed);
	for (i = 0; *how != 's' || i < ROUNDS; i++) {
		exchange(&common, i % 30000);
		if (*how == 'r' && i == 100)
			replace();
	}
	if (rank == size - 1)
		every(ITIMER_PROF, 0, 0, end);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		every(ITIMER_REAL, 0, 0, go_on);
	kill(victim, SIGCONT);
	return finish();
}
