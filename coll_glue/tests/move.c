// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Operations that move data, with random datatypes on both sides, counts, roots and
 * MPI_IN_PLACE: do they leave in the receive buffer exactly what coll/basic leaves there? Many
 * are done without a pause, and each send buffer is overwritten as soon as the call returns.
 *
 *	move [ROUNDS [SEED]]
 */
#include "common.h"
#include "layouts.h"

#define BATCH 16
#define GUARD 64

enum {
	BCAST, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV,
	ALLTOALLW, BARRIER, NR_OPS
};
static const char *const names[] = {
	"bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv",
	"alltoall", "alltoallv", "alltoallw", "barrier",
};

#define MOST_RANKS 64

/* One side's buffer, with room for a block of each rank */
struct side {
	struct layout layout;
	char *memory, *buf;
	size_t bytes;
	int count, counts[MOST_RANKS], displs[MOST_RANKS];
	MPI_Datatype types[MOST_RANKS];
};

struct operation {
	int what, root, in_place;
	struct side s, r;
};

/* @elements of each block are a multiple of ELEMENTS; blocks lie in random order, with gaps. */
static void make_side(struct side *side, uint64_t *own, MPI_Datatype base, const int *elements)
{
	MPI_Aint lb, extent, true_lb, true_extent;
	int i, k, at = 1;

	side->layout = layout_create(below(own, NR_LAYOUTS), base);
	MPI_Type_get_extent(side->layout.type, &lb, &extent);
	MPI_Type_get_true_extent(side->layout.type, &true_lb, &true_extent);
	for (k = 0; k < size; k++) {
		i = (k * 5 + 3) % size;
		if (size % 5 == 0)
			i = k;
		side->counts[i] = elements[i] / side->layout.elements;
		side->displs[i] = at;
		side->types[i] = side->layout.type;
		at += side->counts[i] + below(own, 3);
	}
	side->count = elements[0] / side->layout.elements;
	if (at < size * side->count)
		at = size * side->count;
	/* A layout may begin before, and end behind, its extent. */
	side->bytes = (at + 2) * extent + true_extent + 2 * GUARD + 32 * extent;
	side->memory = malloc(side->bytes);
	side->buf = side->memory + GUARD + 2 * extent;
	for (i = 0; i < (int)side->bytes; i++)
		side->memory[i] = mix(own);
}

static void free_side(struct side *side)
{
	MPI_Type_free(&side->layout.type);
	free(side->memory);
}

static int is_rooted(int what)
{
	return what == GATHER || what == GATHERV || what == SCATTER || what == SCATTERV;
}

static int block_elements(uint64_t *common, int longest)
{
	static const int few[] = { 0, 1, 1, 2, 4, 10 };

	if (below(common, 2))
		return ELEMENTS * few[below(common, 6)];
	return ELEMENTS * below(common, longest / ELEMENTS);
}

/* The elements that this rank sends to each, and receives from each */
static void choose_elements(struct operation *op, uint64_t *common, int *sent, int *received)
{
	const int what = op->what;
	const int varies = what == GATHERV || what == SCATTERV || what == ALLGATHERV ||
			   what == ALLTOALLV || what == ALLTOALLW;
	const int each = block_elements(common, 6000);
	int from, to, n, symmetric[MOST_RANKS];

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
	int sent[MOST_RANKS], received[MOST_RANKS], base;
	MPI_Aint lb, extent;
	int i;

	op->what = below(&common, NR_OPS);
	op->root = below(&common, size);
	op->in_place = below(&common, 4) == 0;
	base = below(&common, 4);
	choose_elements(op, &common, sent, received);
	own = seed * 1000 + rank;
	make_side(&op->s, &own, bases[base], sent);
	make_side(&op->r, &own, bases[base], received);
	if (op->what != ALLTOALLW)
		return;
	for (i = 0; i < size; i++) {
		MPI_Type_get_extent(op->s.types[i], &lb, &extent);
		op->s.displs[i] *= extent;
		MPI_Type_get_extent(op->r.types[i], &lb, &extent);
		op->r.displs[i] *= extent;
	}
}

static void do_rooted(struct operation *op, MPI_Comm comm)
{
	struct side *s = &op->s, *r = &op->r;
	const int at_root = op->in_place && rank == op->root;
	void *sbuf = at_root ? MPI_IN_PLACE : s->buf, *rbuf = at_root ? MPI_IN_PLACE : r->buf;
	MPI_Datatype st = s->layout.type, rt = r->layout.type;

	switch (op->what) {
	case GATHER:
		MPI_Gather(sbuf, s->count, st, r->buf, r->count, rt, op->root, comm);
		break;
	case GATHERV:
		MPI_Gatherv(sbuf, s->counts[0], st, r->buf, r->counts, r->displs, rt, op->root,
			    comm);
		break;
	case SCATTER:
		MPI_Scatter(s->buf, s->count, st, rbuf, r->count, rt, op->root, comm);
		break;
	default:
		MPI_Scatterv(s->buf, s->counts, s->displs, st, rbuf, r->counts[op->root], rt,
			     op->root, comm);
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
		MPI_Bcast(r->buf, r->count, rt, op->root, comm);
		break;
	case ALLGATHER:
		MPI_Allgather(sbuf, s->count, st, r->buf, r->count, rt, comm);
		break;
	case ALLGATHERV:
		MPI_Allgatherv(sbuf, s->counts[0], st, r->buf, r->counts, r->displs, rt, comm);
		break;
	case ALLTOALL:
		MPI_Alltoall(sbuf, s->count, st, r->buf, r->count, rt, comm);
		break;
	case ALLTOALLV:
		MPI_Alltoallv(sbuf, s->counts, s->displs, st, r->buf, r->counts, r->displs, rt,
			      comm);
		break;
	case ALLTOALLW:
		MPI_Alltoallw(sbuf, s->counts, s->displs, s->types, r->buf, r->counts, r->displs,
			      r->types, comm);
		break;
	default:
		MPI_Barrier(comm);
	}
}

static void run(struct operation *op, uint64_t seed, MPI_Comm comm)
{
	choose(op, seed);
	if (is_rooted(op->what))
		do_rooted(op, comm);
	else
		do_all(op, comm);
	memset(op->s.memory, 0xee, op->s.bytes);
}

static int differs(const struct operation *a, const struct operation *b, uint64_t seed)
{
	size_t i;

	if (!memcmp(a->r.memory, b->r.memory, a->r.bytes))
		return 0;
	for (i = 0; a->r.memory[i] == b->r.memory[i]; i++)
		;
	printf("rank %d of %d: %s, seed %llu, root %d%s, %d elements of a layout: byte %zu of %zu\n",
	       rank, size, names[a->what], (unsigned long long)seed, a->root,
	       a->in_place ? ", in place" : "", a->r.count, i, a->r.bytes);
	return 1;
}

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? atoi(argv[1]) : 10;
	uint64_t seed = argc > 2 ? atoll(argv[2]) : 1;
	struct operation ours[BATCH], basic[BATCH];
	int wrong = 0, all, i, k;
	MPI_Comm comm;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	comm = basic_comm(MPI_COMM_WORLD);
	for (i = 0; i < rounds; i++, seed += BATCH) {
		for (k = 0; k < BATCH; k++)
			run(&ours[k], seed + k, MPI_COMM_WORLD);
		for (k = 0; k < BATCH; k++)
			run(&basic[k], seed + k, comm);
		for (k = 0; k < BATCH; k++) {
			wrong += differs(&ours[k], &basic[k], seed + k);
			free_side(&ours[k].s);
			free_side(&ours[k].r);
			free_side(&basic[k].s);
			free_side(&basic[k].r);
		}
	}
	MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, comm);
	MPI_Comm_free(&comm);
	if (rank == 0)
		printf("%d operations, %d wrong\n", rounds * BATCH, all);
	MPI_Finalize();
	return all != 0;
}
