// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * usage: flood MESSAGES [MOST_BYTES]
 *
 * Rank 0 sends so many messages that nobody receives for some time: the others' memory stays
 * below MOST_BYTES, because rank 0 waits. Then non-blocking sends are received in the opposite
 * order, which must work however many there are.
 */
#include "common.h"

#include <unistd.h>

static void late(int messages, int bytes)
{
	static char buf[4096];
	int i, first = -1;

	if (rank == 0)
		for (i = 0; i < messages; i++) {
			memcpy(buf, &i, sizeof(i));
			MPI_Send(buf, bytes, MPI_CHAR, 1 + i % (size - 1), 1, MPI_COMM_WORLD);
		}
	for (i = rank - 1; rank && i < messages; i += size - 1) {
		if (i == rank - 1)
			/* Many come now, and progress is made in a probe for something else. */
			for (int look = 0; look < 200; look++, usleep(1000))
				MPI_Iprobe(0, 2, MPI_COMM_WORLD, &first, MPI_STATUS_IGNORE);
		MPI_Recv(buf, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check(!memcmp(buf, &i, sizeof(i)), "a message is out of order");
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

static void backwards(int messages, int bytes)
{
	MPI_Request *req = malloc(messages * sizeof(*req));
	char *buf = calloc(messages, bytes);
	int i, n = messages;

	if (n > 20000)
		n = 20000;
	if (rank == 0) {
		for (i = 0; i < n; i++) {
			memcpy(buf + (size_t)i * bytes, &i, sizeof(i));
			MPI_Isend(buf + (size_t)i * bytes, bytes, MPI_CHAR, 1, i, MPI_COMM_WORLD,
				  &req[i]);
		}
		MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
	}
	for (i = n - 1; rank == 1 && i >= 0; i--) {
		MPI_Recv(buf, bytes, MPI_CHAR, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check(!memcmp(buf, &i, sizeof(i)), "a message has another one's data");
	}
	free(req);
	free(buf);
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int messages = argc > 1 ? atoi(argv[1]) : 100000;
	struct counter most;

	begin(&argc, &argv);
	counters_begin();
	counter_find(&most, "unexpected_most");
	late(messages, 8);
	late(messages / 8, 1000);
	late(messages / 8, 3000);
	if (argc > 2 && rank)
		check(counter_read(&most) > 0 && counter_read(&most) < atoll(argv[2]),
		      "too much memory, or none at all");
	backwards(messages / 10, 8);
	backwards(messages / 40, 2000);
	return finish();
}
