// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Ranks with different copy_limit: a sender that copies more than its receiver's queue has
 * room for. Buffered sends have no other way than a copy if the component promises one.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES	3

static int failures;

static void send_all(char *data, int len)
{
	static char room[1 << 20];
	void *back;
	int size, i;

	MPI_Buffer_attach(room, sizeof(room));
	for (i = 0; i < MESSAGES; i++) {
		memset(data, len + i, (size_t)len);
		MPI_Bsend(data, len, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
	}
	MPI_Buffer_detach(&back, &size);
}

static void receive_all(char *data, int len)
{
	int i, at;

	for (i = 0; i < MESSAGES; i++) {
		MPI_Recv(data, len, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (at = 0; at < len; at++)
			failures += data[at] != (char)(len + i);
	}
}

int main(int argc, char **argv)
{
	const char *number = getenv("OMPI_COMM_WORLD_RANK");
	static char data[8192];
	int rank, len;

	if (!number)
		number = getenv("PMIX_RANK");
	setenv("OMPI_MCA_btl_pvas_copy_limit", number && !atoi(number) ? "4096" : "256", 1);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (len = 100; len <= 4200; len += 100) {
		if (rank == 0)
			send_all(data, len);
		else if (rank == 1)
			receive_all(data, len);
	}
	MPI_Finalize();
	if (failures)
		fprintf(stderr, "rank %d: %d bytes are wrong\n", rank, failures);
	return failures != 0;
}
