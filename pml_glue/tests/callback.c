// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The deletion of a datatype's attribute, when the last send that uses the type completes,
 * waits for another send: its completion must not be hidden behind that of the first.
 */
#include "common.h"

#include <stdbool.h>
#include <unistd.h>

#define FULL 3000	/* more than the ring has room for */
#define BYTES 64

static unsigned char messages[FULL + 2][BYTES];
static MPI_Request others[FULL], last;
static bool deleted;

static int delete_attribute(MPI_Datatype type, int key, void *value, void *extra)
{
	(void)type;
	(void)key;
	(void)value;
	(void)extra;
	deleted = true;
	return MPI_Wait(&last, MPI_STATUS_IGNORE);
}

static void send_all(void)
{
	MPI_Request freed;
	MPI_Datatype type;
	int i, key, flag;

	for (i = 0; i < FULL; i++)
		MPI_Isend(messages[i], BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &others[i]);
	MPI_Type_contiguous(BYTES, MPI_BYTE, &type);
	MPI_Type_commit(&type);
	MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, delete_attribute, &key, NULL);
	MPI_Type_set_attr(type, key, NULL);
	MPI_Isend(messages[FULL], 1, type, 1, 0, MPI_COMM_WORLD, &freed);
	MPI_Isend(messages[FULL + 1], BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &last);
	MPI_Request_free(&freed);
	MPI_Type_free(&type);
	check(!deleted, "the ring had room for all");
	MPI_Waitall(FULL, others, MPI_STATUSES_IGNORE);
	while (!deleted)
		MPI_Iprobe(1, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	unsigned char in[BYTES];
	int i;

	begin(&argc, &argv);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		send_all();
	} else {
		sleep(1);
		for (i = 0; i < FULL + 2; i++)
			MPI_Recv(in, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	return finish();
}
