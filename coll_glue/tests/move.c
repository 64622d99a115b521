// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Operations that move data, with random datatypes on both sides, counts, roots and
 * MPI_IN_PLACE: do they leave in the receive buffer exactly what coll/basic leaves there? Many
 * are done without a pause; each send buffer is overwritten as soon as the operation is complete,
 * and datatypes are freed while it is not.
 *
 *	move [ROUNDS [SEED [WAY [shuffled] [close]]]]
 */
#include "compare.h"
#include "sides.h"

enum {
	BCAST, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV,
	ALLTOALLW, BARRIER, NR_OPS
};
static const char *const names[] = {
	"bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv",
	"alltoall", "alltoallv", "alltoallw", "barrier",
};

struct operation {
	int what, root, in_place;
	enum way how;
	MPI_Request request;
	struct side s, r;
};

static MPI_Comm comms[2];

static int is_rooted(int what)
{
	return what == GATHER || what == GATHERV || what == SCATTER || what == SCATTERV;
}

/* The elements that this rank sends to each, and receives from each */
static void choose_elements(struct operation *op, uint64_t *common, int *sent, int *received)
{
	const int what = op->what;
	const int varies = what == GATHERV || what == SCATTERV || what == ALLGATHERV ||
			   what == ALLTOALLV || what == ALLTOALLW;
	const int each = block_elements(common, 6000);
	int from, to, n, symmetric[MOST_BLOCKS];

	for (from = 0; from < size; from++)
		symmetric[from] = block_elements(common, 600);
	for (from = 0; from < size; from++) {
		for (to = 0; to < size; to++) {
			n = each;
			/* Blocks that are exchanged in place are as long both ways. */
			if (what == ALLTOALLV || what == ALLTOALLW)
				n = symmetric[(from + to) % size];
			else if (varies)
				n = symmetric[what == SCATTERV ? to : from];
			if (from == rank)
				sent[to] = n;
			if (to == rank)
				received[from] = n;
		}
	}
}

static void choose(struct operation *op, uint64_t seed)
{
	static const MPI_Datatype bases[] = { MPI_CHAR, MPI_INT, MPI_DOUBLE, MPI_SHORT };
	uint64_t common = seed, own;
	int sent[MOST_BLOCKS], received[MOST_BLOCKS], base;

	op->what = below(&common, NR_OPS);
	op->root = below(&common, size);
	op->in_place = below(&common, 4) == 0;
	base = below(&common, 4);
	choose_elements(op, &common, sent, received);
	own = seed * 1000 + rank;
	make_side(&op->s, &own, bases[base], sent, size);
	make_side(&op->r, &own, bases[base], received, size);
}

static void do_rooted(struct operation *op, MPI_Comm comm)
{
	struct side *s = &op->s, *r = &op->r;
	const int at_root = op->in_place && rank == op->root;
	void *sbuf = at_root ? MPI_IN_PLACE : s->buf, *rbuf = at_root ? MPI_IN_PLACE : r->buf;
	MPI_Datatype st = s->layout.type, rt = r->layout.type;

	switch (op->what) {
	case GATHER:
		START(op, Gather, gather, sbuf, s->count, st, r->buf, r->count, rt, op->root, comm);
		break;
	case GATHERV:
		START(op, Gatherv, gatherv, sbuf, s->counts[0], st, r->buf, r->counts, r->displs,
		      rt, op->root, comm);
		break;
	case SCATTER:
		START(op, Scatter, scatter, s->buf, s->count, st, rbuf, r->count, rt, op->root,
		      comm);
		break;
	default:
		START(op, Scatterv, scatterv, s->buf, s->counts, s->displs, st, rbuf,
		      r->counts[op->root], rt, op->root, comm);
	}
}

static void do_all(struct operation *op, MPI_Comm comm)
{
	struct side *s = &op->s, *r = &op->r;
	MPI_Datatype st = s->layout.type, rt = r->layout.type;
	void *sbuf = op->in_place ? MPI_IN_PLACE : s->buf;

	switch (op->what) {
	case BCAST:
		/* The root's buffer is compared, too. */
		START(op, Bcast, bcast, r->buf, r->count, rt, op->root, comm);
		break;
	case ALLGATHER:
		START(op, Allgather, allgather, sbuf, s->count, st, r->buf, r->count, rt, comm);
		break;
	case ALLGATHERV:
		START(op, Allgatherv, allgatherv, sbuf, s->counts[0], st, r->buf, r->counts,
		      r->displs, rt, comm);
		break;
	case ALLTOALL:
		START(op, Alltoall, alltoall, sbuf, s->count, st, r->buf, r->count, rt, comm);
		break;
	case ALLTOALLV:
		START(op, Alltoallv, alltoallv, sbuf, s->counts, s->displs, st, r->buf, r->counts,
		      r->displs, rt, comm);
		break;
	case ALLTOALLW:
		START(op, Alltoallw, alltoallw, sbuf, s->counts, s->displs_w, s->types, r->buf,
		      r->counts, r->displs_w, r->types, comm);
		break;
	default:
		START(op, Barrier, barrier, comm);
	}
}

static void start(void *arg, uint64_t seed, int which)
{
	struct operation *op = arg;

	choose(op, seed);
	op->how = choose_way(seed, which);
	op->request = MPI_REQUEST_NULL;
	if (is_rooted(op->what))
		do_rooted(op, comms[which]);
	else
		do_all(op, comms[which]);
	MPI_Type_free(&op->s.layout.type);
	MPI_Type_free(&op->r.layout.type);
}

#include "move_data.h"

static int differs(const void *ours, const void *basic, uint64_t seed)
{
	const struct operation *a = ours, *b = basic;
	size_t i;

	if (!memcmp(a->r.memory, b->r.memory, a->r.bytes))
		return 0;
	for (i = 0; a->r.memory[i] == b->r.memory[i]; i++)
		;
	printf("rank %d of %d: %s, seed %llu, way %d, root %d%s, %d elements of a layout: byte %zu of %zu\n",
	       rank, size, names[a->what], (unsigned long long)seed, a->how, a->root,
	       a->in_place ? ", in place" : "", a->r.count, i, a->r.bytes);
	return 1;
}

static void prepare(void)
{
	comms[OURS] = everybody;
	comms[BASIC] = basic_comm(everybody);
}

int main(int argc, char **argv)
{
	static const struct comparison test = {
		sizeof(struct operation), prepare, start, begin, complete, differs, release,
	};

	return compare(argc, argv, &test);
}
