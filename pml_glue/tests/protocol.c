// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * usage: protocol, with 3 ranks
 *
 * All that ranks do in each other's memory, a few times each: tests/points.sh ends or stops a
 * rank in the middle of it. Those that go on check all data. With little room in the rings, so
 * that they are full soon: see points.sh. The last line says that a rank came to the end.
 */
#include "common.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#define BURST 24
#define SHORT 16
#define COLUMN 1500

static unsigned char out[LONGEST], in[LONGEST], many[BURST][SHORT];
static unsigned char from_matrix[COLUMN][16], to_matrix[COLUMN][16];
static int right, left;
static long pids[3];

static void sendrecv(int n, int from, MPI_Comm comm)
{
	fill(out, n, n + rank);
	memset(in, 0xee, n + 1);
	MPI_Sendrecv(out, n, MPI_CHAR, right, n % 1000, in, n, MPI_CHAR, from, n % 1000, comm,
		     MPI_STATUS_IGNORE);
	check(is_filled(in, n, n + left) && in[n] == 0xee, "wrong data");
}

/* Each reads what came before the token: it is unexpected. */
static void token(void)
{
	MPI_Sendrecv(NULL, 0, MPI_CHAR, right, 1001, NULL, 0, MPI_CHAR, left, 1001, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
}

static void receive_many(int from)
{
	int i;

	for (i = 0; i < BURST; i++) {
		MPI_Recv(in, SHORT, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check(is_filled(in, SHORT, i + from), "wrong data, or another message");
	}
}

static void send_many(int to, MPI_Request *req)
{
	int i;

	for (i = 0; i < BURST; i++) {
		fill(many[i], SHORT, i + rank);
		MPI_Isend(many[i], SHORT, MPI_CHAR, to, 1, MPI_COMM_WORLD, &req[i]);
	}
}

/* More than a receiver keeps: it says so, and the rest stays with the sender. */
static void too_many(void)
{
	MPI_Request req[BURST];

	send_many(right, req);
	token();
	receive_many(left);
	MPI_Waitall(BURST, req, MPI_STATUSES_IGNORE);
}

/* Left with the sender before the receive: one is copied early, the other is not. */
static void unexpected_reference(int n)
{
	MPI_Request req;

	fill(out, n, rank);
	MPI_Isend(out, n, MPI_CHAR, right, 2, MPI_COMM_WORLD, &req);
	token();
	MPI_Recv(in, n, MPI_CHAR, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check(is_filled(in, n, left), "wrong unexpected data");
	MPI_Wait(&req, MPI_STATUS_IGNORE);
}

static void synchronous(void)
{
	MPI_Request req;

	fill(out, 8, rank);
	MPI_Issend(out, 8, MPI_CHAR, right, 3, MPI_COMM_WORLD, &req);
	MPI_Recv(in, 8, MPI_CHAR, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check(is_filled(in, 8, left), "wrong synchronous data");
	MPI_Wait(&req, MPI_STATUS_IGNORE);
}

static void columns(void)
{
	MPI_Datatype column;
	int i;

	MPI_Type_vector(COLUMN, 8, 16, MPI_CHAR, &column);
	MPI_Type_commit(&column);
	for (i = 0; i < COLUMN; i++)
		fill(from_matrix[i], 8, i + rank);
	MPI_Sendrecv(from_matrix, 1, column, right, 4, to_matrix, 1, column, left, 4,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (i = 0; i < COLUMN; i++)
		check(is_filled(to_matrix[i], 8, i + left) && !to_matrix[i][8], "wrong column");
	MPI_Type_free(&column);
}

/* A signal of another rank, which may have ended */
static void await_signal(void)
{
	const struct timespec limit = { .tv_sec = 5 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigtimedwait(&set, NULL, &limit);
}

/* @a looks into no ring until @b, which has filled @a's, has fetched data from it. */
static void full_ring(int a, int b)
{
	MPI_Request req[BURST], one;

	if (rank == a) {
		fill(out, 5000, a);
		MPI_Isend(out, 5000, MPI_CHAR, b, 5, MPI_COMM_WORLD, &one);
		await_signal();
		receive_many(b);
		MPI_Wait(&one, MPI_STATUS_IGNORE);
	} else if (rank == b) {
		/* Then @a reads no more. */
		MPI_Probe(a, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		send_many(a, req);
		MPI_Recv(in, 5000, MPI_CHAR, a, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check(is_filled(in, 5000, a), "wrong data of a rank with a full ring");
		kill(pids[a], SIGUSR1);
		MPI_Waitall(BURST, req, MPI_STATUSES_IGNORE);
	}
}

static void exchange(MPI_Comm comm)
{
	static const int lengths[] = { 8, 150, 1000, 20000 };
	int i;

	for (i = 0; i < 4; i++)
		sendrecv(lengths[i], i & 1 ? MPI_ANY_SOURCE : left, comm);
}

static void probe(void)
{
	MPI_Message message;
	MPI_Status status;
	MPI_Request req;

	fill(out, 150, rank);
	MPI_Isend(out, 150, MPI_CHAR, right, 6, MPI_COMM_WORLD, &req);
	MPI_Mprobe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &message, &status);
	MPI_Mrecv(in, 150, MPI_CHAR, &message, MPI_STATUS_IGNORE);
	check(status.MPI_SOURCE == left && is_filled(in, 150, left), "wrong probed data");
	MPI_Wait(&req, MPI_STATUS_IGNORE);
}

/* For the threads of Open MPI, too, and for a program that takes this one's place */
static void block_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

int main(int argc, char **argv)
{
	long pid = getpid();
	MPI_Comm comm;

	block_signal();
	begin(&argc, &argv);
	right = (rank + 1) % size;
	left = (rank + size - 1) % size;
	MPI_Allgather(&pid, 1, MPI_LONG, pids, 1, MPI_LONG, MPI_COMM_WORLD);
	exchange(MPI_COMM_WORLD);
	too_many();
	unexpected_reference(1000);
	unexpected_reference(5000);
	synchronous();
	columns();
	full_ring(0, 1);
	full_ring(1, 2);
	probe();
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	exchange(comm);
	MPI_Comm_free(&comm);
	MPI_Finalize();
	if (!errors)
		printf("rank %d is done\n", rank);
	return errors != 0;
}
