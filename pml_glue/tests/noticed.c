// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * usage: noticed receive|ibarrier
 *
 * The last rank becomes another program, which nobody tells the others. They look for it only
 * now and then, and have to end after few looks, however many ranks there are.
 */
#include "common.h"

#include <unistd.h>

#define LOOKS 40

/* The program that a process runs, by name */
static int runs(long pid, const char *name)
{
	char path[40], text[40] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (!fgets(text, sizeof(text), f))
		text[0] = 0;
	fclose(f);
	return !strncmp(text, name, strlen(name));
}

/* All that a first message needs of the last rank's memory */
static void meet_last(void)
{
	int token = 0, i;

	for (i = 0; i < size - 1; i++) {
		if (rank != i && rank != size - 1)
			continue;
		MPI_Sendrecv_replace(&token, 1, MPI_INT, rank == i ? size - 1 : i, 0,
				     rank == i ? size - 1 : i, 0, MPI_COMM_WORLD,
				     MPI_STATUS_IGNORE);
	}
}

static void look(MPI_Request *req)
{
	int i, done;

	for (i = 0; i < LOOKS; i++) {
		/* A while for each: that much time has passed on any machine. */
		usleep(20000);
		MPI_Test(req, &done, MPI_STATUS_IGNORE);
	}
	printf("rank %d has not noticed it\n", rank);
	fflush(stdout);
	/* MPI_Abort() would look again. */
	_exit(1);
}

int main(int argc, char **argv)
{
	long pid = getpid();
	MPI_Request req;
	int token;

	begin(&argc, &argv);
	MPI_Bcast(&pid, 1, MPI_LONG, size - 1, MPI_COMM_WORLD);
	meet_last();
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == size - 1)
		execl("/bin/sleep", "sleep", "300", NULL);
	while (!runs(pid, "sleep"))
		usleep(1000);
	if (argc > 1 && *argv[1] == 'i')
		MPI_Ibarrier(MPI_COMM_WORLD, &req);
	else
		MPI_Irecv(&token, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, &req);
	look(&req);
	return 1;
}
