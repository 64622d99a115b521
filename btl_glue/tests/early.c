// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A rank ends too early: "early exit", "early kill", "early middle" (killed
 * while others copy from it). The others must end soon, and by no crash.
 */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LONG (4 << 20)

static void end(const char *how)
{
	if (!strcmp(how, "exit"))
		_exit(0);
	raise(SIGKILL);
}

/* For ever, until the other end goes */
static void stream(int rank, int victim, const char *how)
{
	char *p = malloc(LONG);
	int i;

	memset(p, 1, LONG);
	for (i = 0;; i++) {
		if (rank == victim && i == 5)
			end(how);
		if (rank == victim)
			MPI_Send(p, LONG, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
		else if (rank == 0)
			MPI_Recv(p, LONG, MPI_CHAR, victim, 0, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		else
			MPI_Recv(p, 1, MPI_CHAR, victim, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "exit";
	int rank, size, token = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!strcmp(how, "middle"))
		stream(rank, size - 1, "kill");
	if (rank == size - 1)
		end(how);
	MPI_Recv(&token, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Finalize();
	return 0;
}
