// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * usage: order ROUNDS [SEED]
 *
 * Every rank sends numbered messages of random lengths and tags to all ranks, in two
 * communicators, and receives them with random wildcards, before and after they come. No
 * message may be lost, come twice, or overtake one that the receive would take, too.
 */
#include "common.h"

#define TAGS 3
#define WINDOW 40
#define MAX_RANKS 40
#define SHORT 6000

struct note {
	int number;
	int tag;
	int length;
};

static MPI_Comm comms[2];
static unsigned char out[2 * MAX_RANKS * WINDOW][SHORT], in[WINDOW][SHORT];

/* Number of the last message with a tag that came from a rank in a communicator */
static int last[2][MAX_RANKS][TAGS];
static int sent[2][MAX_RANKS];

static int length(uint64_t *seed)
{
	int n = limits[below(seed, 16)] + (int)sizeof(struct note);

	return below(seed, 8) ? n : (int)sizeof(struct note) + below(seed, SHORT - 100);
}

static void send_one(uint64_t *seed, unsigned char *buf, int c, int to, MPI_Request *req)
{
	struct note note = { ++sent[c][to], below(seed, TAGS), length(seed) };

	fill(buf, note.length, note.number);
	memcpy(buf, &note, sizeof(note));
	if (below(seed, 4))
		MPI_Isend(buf, note.length, MPI_CHAR, to, note.tag, comms[c], req);
	else
		MPI_Issend(buf, note.length, MPI_CHAR, to, note.tag, comms[c], req);
}

static void check_one(const unsigned char *buf, int c, const MPI_Status *status)
{
	unsigned char copy[SHORT];
	struct note note;
	int count, i;

	memcpy(&note, buf, sizeof(note));
	MPI_Get_count(status, MPI_CHAR, &count);
	check(count == note.length && status->MPI_TAG == note.tag, "the status is another's");
	if (count < 0 || count > SHORT)
		return;
	fill(copy, count, note.number);
	for (i = sizeof(note); i < count; i++)
		if (buf[i] != copy[i])
			break;
	check(i >= count, "wrong data");
	check(note.number > last[c][status->MPI_SOURCE][note.tag], "a message was overtaken");
	last[c][status->MPI_SOURCE][note.tag] = note.number;
}

/*
 * All WINDOW messages from each of the ranks. Receives from one source with one tag could
 * leave others without a message, so they are posted only after a probe has found one.
 */
static void receive_all(uint64_t *seed, int c)
{
	int left = WINDOW * size, flag, posted, i;
	MPI_Request req[WINDOW];
	MPI_Status status[WINDOW];

	while (left) {
		if (below(seed, 2)) {
			MPI_Iprobe(below(seed, 2) ? below(seed, size) : MPI_ANY_SOURCE,
				   below(seed, 2) ? below(seed, TAGS) : MPI_ANY_TAG, comms[c],
				   &flag, &status[0]);
			if (!flag)
				continue;
			MPI_Recv(in[0], SHORT, MPI_CHAR, status[0].MPI_SOURCE, status[0].MPI_TAG,
				 comms[c], &status[0]);
			check_one(in[0], c, &status[0]);
			left--;
			continue;
		}
		posted = 1 + below(seed, left < WINDOW ? left : WINDOW);
		for (i = 0; i < posted; i++)
			MPI_Irecv(in[i], SHORT, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[c],
				  &req[i]);
		MPI_Waitall(posted, req, status);
		for (i = 0; i < posted; i++)
			check_one(in[i], c, &status[i]);
		left -= posted;
	}
}

static void round_of(uint64_t *seed)
{
	static MPI_Request req[2 * MAX_RANKS * WINDOW];
	int i, c, to, nr = 0;

	for (i = 0; i < WINDOW; i++)
		for (c = 0; c < 2; c++)
			for (to = 0; to < size; to++, nr++)
				send_one(seed, out[nr], c, to, &req[nr]);
	receive_all(seed, rank & 1);
	receive_all(seed, !(rank & 1));
	MPI_Waitall(nr, req, MPI_STATUSES_IGNORE);
	/* Nobody must take a message of the next round for one of this. */
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int i, rounds = argc > 1 ? atoi(argv[1]) : 5;
	uint64_t seed = argc > 2 ? atoi(argv[2]) : 1;

	begin(&argc, &argv);
	seed = seed * 1000 + rank;
	comms[0] = MPI_COMM_WORLD;
	MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
	for (i = 0; i < rounds && size <= MAX_RANKS; i++)
		round_of(&seed);
	MPI_Comm_free(&comms[1]);
	return finish();
}
