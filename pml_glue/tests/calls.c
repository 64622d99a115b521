// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * usage: calls
 *
 * Every kind of call, with messages of each length at a limit of the protocol, to the right
 * neighbour and to the rank itself, with the receive posted before and after.
 */
#include "common.h"

#define TAG 7

static unsigned char out[LONGEST], in[LONGEST + 16];
static int to, from;

/* ---- sends ---- */

enum send {
	SEND, SSEND, BSEND, ISEND, ISSEND, IBSEND, IRSEND, SEND_INIT, SSEND_INIT, BSEND_INIT, SENDS
};


static void start(enum send how, int n, MPI_Request *req)
{
	*req = MPI_REQUEST_NULL;
	switch (how) {
	case SEND:
	case ISEND:
		MPI_Isend(out, n, MPI_CHAR, to, TAG, MPI_COMM_WORLD, req);
		break;
	case SSEND:
	case ISSEND:
		MPI_Issend(out, n, MPI_CHAR, to, TAG, MPI_COMM_WORLD, req);
		break;
	case BSEND:
		MPI_Bsend(out, n, MPI_CHAR, to, TAG, MPI_COMM_WORLD);
		break;
	case IBSEND:
		MPI_Ibsend(out, n, MPI_CHAR, to, TAG, MPI_COMM_WORLD, req);
		break;
	case IRSEND:
		MPI_Irsend(out, n, MPI_CHAR, to, TAG, MPI_COMM_WORLD, req);
		break;
	case SEND_INIT:
		MPI_Send_init(out, n, MPI_CHAR, to, TAG, MPI_COMM_WORLD, req);
		break;
	case SSEND_INIT:
		MPI_Ssend_init(out, n, MPI_CHAR, to, TAG, MPI_COMM_WORLD, req);
		break;
	default:
		MPI_Bsend_init(out, n, MPI_CHAR, to, TAG, MPI_COMM_WORLD, req);
		break;
	}
	if (how >= SEND_INIT)
		MPI_Start(req);
}

/* ---- receives ---- */

enum receive { RECV, IRECV, RECV_INIT, PROBE, IPROBE, MPROBE, IMPROBE, ANY, RECEIVES };

static void receive_probed(enum receive how, int n, MPI_Status *status)
{
	MPI_Message message;
	MPI_Request req;
	int flag = 0, count;

	if (how == PROBE)
		MPI_Probe(from, MPI_ANY_TAG, MPI_COMM_WORLD, status);
	while (how == IPROBE && !flag)
		MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &flag, status);
	if (how == MPROBE)
		MPI_Mprobe(from, TAG, MPI_COMM_WORLD, &message, status);
	while (how == IMPROBE && !flag)
		MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, status);
	MPI_Get_count(status, MPI_CHAR, &count);
	check(count == n, "a probe finds another length");
	check(status->MPI_SOURCE == from && status->MPI_TAG == TAG, "a probe finds another one");
	if (how == PROBE || how == IPROBE) {
		MPI_Recv(in, n, MPI_CHAR, status->MPI_SOURCE, status->MPI_TAG, MPI_COMM_WORLD,
			 status);
	} else if (how == MPROBE) {
		MPI_Mrecv(in, n, MPI_CHAR, &message, status);
	} else {
		MPI_Imrecv(in, n, MPI_CHAR, &message, &req);
		MPI_Wait(&req, status);
	}
}

static void post(enum receive how, int n, MPI_Request *req)
{
	if (how == IRECV || how == RECV)
		MPI_Irecv(in, n + 16, MPI_CHAR, from, TAG, MPI_COMM_WORLD, req);
	else if (how == ANY)
		MPI_Irecv(in, n + 16, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, req);
	else
		MPI_Recv_init(in, n + 16, MPI_CHAR, from, MPI_ANY_TAG, MPI_COMM_WORLD, req);
	if (how == RECV_INIT)
		MPI_Start(req);
}

/* ---- one message ---- */

static void one(enum send how, enum receive as, int n, int posted, unsigned int key)
{
	MPI_Request sending, receiving = MPI_REQUEST_NULL;
	MPI_Status status;
	int count, must = how == IRSEND;

	fill(out, n, key);
	memset(in, 0xee, n + 16);
	if ((posted || must) && (as <= RECV_INIT || as == ANY))
		post(as, n, &receiving);
	else if (must)
		return;
	MPI_Barrier(MPI_COMM_WORLD);
	start(how, n, &sending);
	if (receiving == MPI_REQUEST_NULL && (as <= RECV_INIT || as == ANY))
		post(as, n, &receiving);
	if (receiving != MPI_REQUEST_NULL)
		MPI_Wait(&receiving, &status);
	else
		receive_probed(as, n, &status);
	MPI_Get_count(&status, MPI_CHAR, &count);
	check(count == n && status.MPI_SOURCE == from && status.MPI_TAG == TAG, "wrong status");
	check(is_filled(in, n, key) && in[n] == 0xee && in[n + 15] == 0xee, "wrong data");
	if (receiving != MPI_REQUEST_NULL)
		MPI_Request_free(&receiving);
	MPI_Wait(&sending, MPI_STATUS_IGNORE);
	if (sending != MPI_REQUEST_NULL)
		MPI_Request_free(&sending);
}

/* A blocking send to another rank; the even ones send first. */
static void blocking(int n)
{
	int turn;

	if (size % 2 || to == rank)
		return;
	for (turn = 0; turn < 2; turn++) {
		fill(out, n, n + turn);
		if (rank % 2 == turn)
			MPI_Ssend(out, n, MPI_CHAR, to, TAG, MPI_COMM_WORLD);
		else
			MPI_Recv(in, n, MPI_CHAR, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check(rank % 2 == turn || is_filled(in, n, n + turn), "wrong data of a send");
	}
}

static void all_calls(void)
{
	unsigned int key = 0;
	int how, as, i, posted;

	for (how = 0; how < SENDS; how++)
		for (as = 0; as < RECEIVES; as++)
			/* All lengths, in the course of four pairs of calls */
			for (i = (how + as) % 4; i < NR_LIMITS; i += 4)
				for (posted = 0; posted < 2; posted++)
					one(how, as, limits[i], posted, key++);
	for (i = 0; i < NR_LIMITS; i++)
		blocking(limits[i]);
}

int main(int argc, char **argv)
{
	static char buffer[1 << 20];
	void *old;
	int bytes;

	begin(&argc, &argv);
	MPI_Buffer_attach(buffer, sizeof(buffer));
	to = (rank + 1) % size;
	from = (rank + size - 1) % size;
	all_calls();
	to = from = rank;
	all_calls();
	MPI_Buffer_detach(&old, &bytes);
	check(old == buffer && bytes == sizeof(buffer), "another buffer was attached");
	return finish();
}
