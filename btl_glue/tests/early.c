// SPDX-License-Identifier: GPL-2.0-only
/*
 * The last rank ends too early. The others must end soon, without a crash.
 *
 *	early exit	it exits while others wait for a message from it
 *	early kill	it is killed, likewise
 *	early segv	it sends itself SIGSEGV
 *	early wild	it stores to where no task has ever been
 *	early send	it is killed while it sends long messages
 *	early receive	it is killed while it receives them
 *	early medium	it is killed while it sends messages by reference
 *	early get	it is killed while its window is read
 *	early atomic	it is killed while others add to its window
 *	early finalize	it is killed in MPI_Finalize
 *	early MS	it is killed so many milliseconds after it started
 */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define LONG (4 << 20)
#define MEDIUM 3000

static void end_after(int ms)
{
	struct itimerval timer = {
		.it_value = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 },
	};

	/* With the default action it ends the process as SIGKILL does: no handler, no clean-up. */
	signal(SIGALRM, SIG_DFL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

/* Endlessly, between rank 0 and the rank that will end */
static void stream(int rank, int sender, int receiver, int n)
{
	char *p = malloc(n);

	memset(p, 1, n);
	for (;;) {
		if (rank == sender)
			MPI_Send(p, n, MPI_CHAR, receiver, 0, MPI_COMM_WORLD);
		else
			MPI_Recv(p, n, MPI_CHAR, sender, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

/* Endlessly, in the window of the rank that will end */
static void read_window(int rank, int last, int atomic)
{
	char *mine = calloc(1, LONG), *got = malloc(LONG);
	long one = 1, old;
	MPI_Win win;

	MPI_Win_create(mine, LONG, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_lock_all(0, win);
	if (rank == last)
		end_after(50);
	while (rank == 0) {
		if (atomic)
			MPI_Fetch_and_op(&one, &old, MPI_LONG, last, 0, MPI_SUM, win);
		else
			MPI_Get(got, LONG, MPI_CHAR, last, 0, LONG, MPI_CHAR, win);
		MPI_Win_flush(last, win);
	}
	MPI_Recv(mine, 1, MPI_CHAR, rank == last ? 0 : last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int end_now(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)comm;
	(void)key;
	(void)value;
	(void)extra;
	return raise(SIGKILL);
}

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF first. */
static void end_in_finalize(void)
{
	int key;

	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_now, &key, NULL);
	MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
	MPI_Finalize();
}

static void end(const char *how)
{
	if (!strcmp(how, "exit"))
		_exit(0);
	if (!strcmp(how, "finalize"))
		end_in_finalize();
	if (!strcmp(how, "segv"))
		raise(SIGSEGV);
	if (!strcmp(how, "wild"))
		*(volatile char *)0x414141414141 = 1;
	raise(SIGKILL);
}

/* Set by the launcher, so it is known before MPI_Init */
static int is_last(void)
{
	const char *rank = getenv("PMIX_RANK");

	return rank && atoi(rank) == 2;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "exit";
	int rank, size, last, token = 0;

	if (atoi(how) && is_last())
		end_after(atoi(how));
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	last = size - 1;
	MPI_Barrier(MPI_COMM_WORLD);
	if (!strcmp(how, "send") || !strcmp(how, "receive") || !strcmp(how, "medium")) {
		if (rank == last)
			end_after(50);
		if (rank == 0 || rank == last)
			stream(rank, strcmp(how, "receive") ? last : 0,
			       strcmp(how, "receive") ? 0 : last,
			       strcmp(how, "medium") ? LONG : MEDIUM);
	}
	if (!strcmp(how, "get") || !strcmp(how, "atomic"))
		read_window(rank, last, !strcmp(how, "atomic"));
	if (rank == last && !atoi(how))
		end(how);
	if (strcmp(how, "finalize"))
		MPI_Recv(&token, 1, MPI_INT, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Finalize();
	return 0;
}
