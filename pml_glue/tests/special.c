// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * usage: special
 *
 * Cancel, truncation, MPI_PROC_NULL, negative results and errors, requests freed while active,
 * persistent requests started many times.
 */
#include "common.h"

static unsigned char out[LONGEST], in[LONGEST];

static void cancel(int src, int tag)
{
	MPI_Request req[3];
	MPI_Status status;
	int i, flag;

	for (i = 0; i < 3; i++)
		MPI_Irecv(in, 4, MPI_CHAR, src, tag + i, MPI_COMM_WORLD, &req[i]);
	/* The one in the middle, the last, the first */
	for (i = 1; i < 4; i++) {
		MPI_Cancel(&req[i % 3]);
		MPI_Wait(&req[i % 3], &status);
		MPI_Test_cancelled(&status, &flag);
		check(flag, "a receive is not cancelled");
	}
	/* One that has its message is not. */
	MPI_Irecv(in, 4, MPI_CHAR, rank, 5, MPI_COMM_WORLD, &req[0]);
	MPI_Send(out, 4, MPI_CHAR, rank, 5, MPI_COMM_WORLD);
	MPI_Cancel(&req[0]);
	MPI_Wait(&req[0], &status);
	MPI_Test_cancelled(&status, &flag);
	check(!flag, "a completed receive is cancelled");
}

/* One byte of room less than the message has; nothing behind it is written. */
static void truncate_one(int n, int posted, int to, int from)
{
	MPI_Request req, send;
	MPI_Status status;
	int rc, class;

	memset(in, 0xee, n + 1);
	fill(out, n, n);
	if (posted)
		MPI_Irecv(in, n - 1, MPI_CHAR, from, 1, MPI_COMM_WORLD, &req);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Isend(out, n, MPI_CHAR, to, 1, MPI_COMM_WORLD, &send);
	if (!posted)
		MPI_Irecv(in, n - 1, MPI_CHAR, from, 1, MPI_COMM_WORLD, &req);
	rc = MPI_Wait(&req, &status);
	MPI_Error_class(rc, &class);
	check(class == MPI_ERR_TRUNCATE, "no MPI_ERR_TRUNCATE");
	check(in[n - 1] == 0xee && is_filled(in, n - 1, n), "truncated data are wrong");
	MPI_Wait(&send, MPI_STATUS_IGNORE);
}

static void truncation(void)
{
	int i, posted;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (i = 1; i < NR_LIMITS - 1; i++)
		for (posted = 0; posted < 2; posted++) {
			truncate_one(limits[i], posted, (rank + 1) % size,
				     (rank + size - 1) % size);
			truncate_one(limits[i], posted, rank, rank);
		}
}

static void wrong_arguments(void)
{
	int class, rc;

	rc = MPI_Send(out, 1, MPI_CHAR, size, 0, MPI_COMM_WORLD);
	MPI_Error_class(rc, &class);
	check(class == MPI_ERR_RANK, "no MPI_ERR_RANK");
	rc = MPI_Send(out, 1, MPI_CHAR, 0, -5, MPI_COMM_WORLD);
	MPI_Error_class(rc, &class);
	check(class == MPI_ERR_TAG, "no MPI_ERR_TAG");
	rc = MPI_Bsend(out, 10000, MPI_CHAR, (rank + 1) % size, 0, MPI_COMM_WORLD);
	MPI_Error_class(rc, &class);
	check(class == MPI_ERR_BUFFER, "no MPI_ERR_BUFFER");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void proc_null(void)
{
	MPI_Status status;
	MPI_Request req[2];
	int flag, count;

	MPI_Send(out, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
	MPI_Recv(in, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_CHAR, &count);
	check(status.MPI_SOURCE == MPI_PROC_NULL && count == 0, "wrong status of MPI_PROC_NULL");
	MPI_Iprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &flag, &status);
	check(flag && status.MPI_SOURCE == MPI_PROC_NULL, "a probe of MPI_PROC_NULL finds none");
	MPI_Recv_init(in, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &req[0]);
	MPI_Send_init(out, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &req[1]);
	MPI_Startall(2, req);
	MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
	MPI_Request_free(&req[0]);
	MPI_Request_free(&req[1]);
	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
	check(!flag, "a probe finds a message that nobody sent");
	MPI_Barrier(MPI_COMM_WORLD);
}

/* A request may be freed before it completes; the data come all the same. */
static void freed_early(int n)
{
	MPI_Request req;
	int token = 0, to = (rank + 1) % size, from = (rank + size - 1) % size;

	memset(in, 0, n);
	fill(out, n, 3);
	MPI_Irecv(in, n, MPI_CHAR, from, 2, MPI_COMM_WORLD, &req);
	MPI_Request_free(&req);
	MPI_Isend(out, n, MPI_CHAR, to, 2, MPI_COMM_WORLD, &req);
	MPI_Request_free(&req);
	/* It comes later than the data, which are received first. */
	MPI_Sendrecv_replace(&token, 1, MPI_INT, to, 2, from, 2, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	check(is_filled(in, n, 3), "wrong data in a freed request");
	MPI_Barrier(MPI_COMM_WORLD);
}

static void persistent(int n)
{
	MPI_Request req[2];
	int i, to = (rank + 1) % size, from = (rank + size - 1) % size;

	MPI_Send_init(out, n, MPI_CHAR, to, 4, MPI_COMM_WORLD, &req[0]);
	MPI_Recv_init(in, n, MPI_CHAR, from, 4, MPI_COMM_WORLD, &req[1]);
	for (i = 0; i < 100; i++) {
		fill(out, n, i);
		MPI_Startall(2, req);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		check(is_filled(in, n, i), "wrong data of a persistent request");
	}
	MPI_Request_free(&req[0]);
	MPI_Request_free(&req[1]);
}

int main(int argc, char **argv)
{
	begin(&argc, &argv);
	cancel(rank, 100);
	cancel(MPI_ANY_SOURCE, 100);
	truncation();
	wrong_arguments();
	proc_null();
	freed_early(100);
	freed_early(50000);
	persistent(10);
	persistent(2000);
	persistent(20000);
	return finish();
}
