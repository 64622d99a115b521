// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A rank that is outside of MPI has many messages to receive. Messages to others must not
 * wait for it: here, it receives its own only after another rank has got all of its.
 *
 *	starve packed | contiguous | header
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MANY 200
#define LENGTH 400	/* doubles, less than the eager limit */
#define PATIENCE 60.0

static double buf[MANY][2 * LENGTH];
static char file[] = "/tmp/pvas-starve-XXXXXX";
static MPI_Datatype type;

static void send_all(void)
{
	MPI_Request req[2 * MANY];
	int i;

	for (i = 0; i < MANY; i++)
		MPI_Isend(buf[i], 1, type, 1, i, MPI_COMM_WORLD, &req[i]);
	for (i = 0; i < MANY; i++)
		MPI_Isend(buf[i], 1, type, 2, i, MPI_COMM_WORLD, &req[MANY + i]);
	MPI_Waitall(MANY, req + MANY, MPI_STATUSES_IGNORE);
	MPI_Waitall(MANY, req, MPI_STATUSES_IGNORE);
}

static int receive_all(void)
{
	double begin = MPI_Wtime();
	int i;

	for (i = 0; i < MANY; i++) {
		memset(buf[i], 0, sizeof(buf[i]));
		MPI_Recv(buf[i], 1, type, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (buf[i][0] != i + 1) {
			printf("message %d has %g\n", i, buf[i][0]);
			return 1;
		}
	}
	return MPI_Wtime() - begin > PATIENCE;
}

/* Without a call of MPI */
static int wait_for_file(void)
{
	int i;

	for (i = 0; i < 2 * PATIENCE * 1000 && !access(file, F_OK); i++)
		usleep(1000);
	if (access(file, F_OK))
		return 0;
	printf("rank 2 has not got its messages\n");
	return 1;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int rank, i, bad = 0, all;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!strcmp(what, "packed"))
		MPI_Type_vector(LENGTH, 1, 2, MPI_DOUBLE, &type);
	else
		MPI_Type_contiguous(!strcmp(what, "header") ? 2 * LENGTH : LENGTH, MPI_DOUBLE,
				    &type);
	MPI_Type_commit(&type);
	for (i = 0; i < MANY; i++)
		buf[i][0] = i + 1;
	if (!rank)
		close(mkstemp(file));
	MPI_Bcast(file, sizeof(file), MPI_CHAR, 0, MPI_COMM_WORLD);
	if (rank == 0)
		send_all();
	if (rank == 1)
		bad = wait_for_file();
	if (rank == 1 || rank == 2)
		bad |= receive_all();
	if (rank == 2)
		unlink(file);
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Type_free(&type);
	MPI_Finalize();
	return all != 0;
}
