// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Neighborhood collectives on many topologies: with edges, duplicate edges, edges to oneself,
 * ranks without any, and other sources than destinations. Random datatypes on both sides; do
 * they leave in the receive buffer exactly what coll/basic leaves there?
 *
 *	neighbors [ROUNDS [SEED [WAY]]]
 */
#include "compare.h"
#include "sides.h"

enum { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, NR_OPS };
static const char *const names[] = {
	"allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw",
};

struct topology {
	MPI_Comm comms[2];
	int cartesian;
	int nr_sources, sources[MOST_BLOCKS], nr_destinations, destinations[MOST_BLOCKS];
};

#define NR_TOPOLOGIES 9
static struct topology topologies[NR_TOPOLOGIES];

struct operation {
	int what, topology;
	enum way how;
	MPI_Request request;
	struct side s, r;
};

/* ---- topologies ---- */

static void make_cartesian(struct topology *t, int nr_dims, const int *dims, const int *periods)
{
	int i;

	MPI_Cart_create(MPI_COMM_WORLD, nr_dims, dims, periods, 0, &t->comms[OURS]);
	t->cartesian = 1;
	t->nr_sources = t->nr_destinations = 2 * nr_dims;
	for (i = 0; i < nr_dims; i++)
		MPI_Cart_shift(t->comms[OURS], i, 1, &t->sources[2 * i], &t->sources[2 * i + 1]);
	memcpy(t->destinations, t->sources, sizeof(t->sources));
}

/* Each rank has itself and both neighbors in a ring, which are in the list twice. */
static void make_graph(struct topology *t)
{
	int index[MOST_BLOCKS], edges[MOST_BLOCKS * 5], i, *p = edges;

	for (i = 0; i < size; i++) {
		*p++ = (i + 1) % size;
		*p++ = (i + size - 1) % size;
		*p++ = i;
		*p++ = (i + size - 1) % size;
		*p++ = (i + 1) % size;
		index[i] = p - edges;
	}
	MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &t->comms[OURS]);
	t->nr_sources = t->nr_destinations = 5;
	MPI_Graph_neighbors(t->comms[OURS], rank, 5, t->sources);
	memcpy(t->destinations, t->sources, sizeof(t->sources));
}

/* Up to two edges from any rank to any, in an order of each rank's own; none to or from @lonely */
static void make_distributed(struct topology *t, uint64_t common, int lonely)
{
	int i, k, shift = rank * 7 % size;

	for (k = 0; k < 2; k++) {
		for (i = 0; i < size * size; i++) {
			int from = i / size, to = (i + shift) % size;

			uint64_t edge = common + (from * size + to) * 2 + k;

			if (from == lonely || to == lonely || !below(&edge, 3))
				continue;
			if (to == rank && t->nr_sources < MOST_BLOCKS)
				t->sources[t->nr_sources++] = from;
			if (from == rank && t->nr_destinations < MOST_BLOCKS)
				t->destinations[t->nr_destinations++] = to;
		}
	}
	/* Their numbers serve as weights. */
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, t->nr_sources, t->sources, t->sources,
				       t->nr_destinations, t->destinations, t->destinations,
				       MPI_INFO_NULL, 0, &t->comms[OURS]);
}

static void prepare(void)
{
	const int none[3] = { 0 }, all[3] = { 1, 1, 1 }, some[3] = { 1, 0, 1 };
	int line[1] = { size }, thin[2] = { 1, size }, flat[2] = { 0 }, cube[3] = { 0 }, i;

	MPI_Dims_create(size, 2, flat);
	MPI_Dims_create(size, 3, cube);
	make_cartesian(&topologies[0], 1, line, all);
	make_cartesian(&topologies[1], 1, line, none);
	make_cartesian(&topologies[2], 2, thin, all);
	make_cartesian(&topologies[3], 2, flat, none);
	make_cartesian(&topologies[4], 3, cube, all);
	make_cartesian(&topologies[5], 3, cube, some);
	make_graph(&topologies[6]);
	make_distributed(&topologies[7], 1, -1);
	make_distributed(&topologies[8], 1000, size - 1);
	for (i = 0; i < NR_TOPOLOGIES; i++)
		topologies[i].comms[BASIC] = basic_comm(topologies[i].comms[OURS]);
}

/* ---- operations ---- */

/* Edges from one rank to another are numbered; in a cartesian topology, by their directions. */
static int tag_of(const struct topology *t, const int *ranks, int i, int incoming)
{
	int k, tag = 0;

	if (t->cartesian)
		return incoming ? i ^ 1 : i;
	for (k = 0; k < i; k++)
		tag += ranks[k] == ranks[i];
	return tag;
}

static int edge_elements(int what, uint64_t common, int from, int to, int tag)
{
	uint64_t edge = common;

	if (what == ALLGATHERV)
		edge += from;
	else if (what == ALLTOALLV || what == ALLTOALLW)
		edge += (from * size + to) * 64 + tag;
	return block_elements(&edge, what == ALLTOALLV || what == ALLTOALLW ? 600 : 3000);
}

static void choose(struct operation *op, uint64_t seed)
{
	static const MPI_Datatype bases[] = { MPI_CHAR, MPI_INT, MPI_DOUBLE };
	uint64_t common = seed, own = seed * 1000 + rank, lengths;
	int sent[MOST_BLOCKS], received[MOST_BLOCKS], i, base;
	const struct topology *t;

	op->what = below(&common, NR_OPS);
	op->topology = below(&common, NR_TOPOLOGIES);
	base = below(&common, 3);
	lengths = mix(&common);
	t = &topologies[op->topology];
	for (i = 0; i < t->nr_destinations; i++)
		sent[i] = edge_elements(op->what, lengths, rank, t->destinations[i],
					tag_of(t, t->destinations, i, 0));
	/* allgather(v) has one block to send, also without a destination. */
	if (op->what == ALLGATHER || op->what == ALLGATHERV)
		sent[0] = edge_elements(op->what, lengths, rank, 0, 0);
	for (i = 0; i < t->nr_sources; i++)
		received[i] = edge_elements(op->what, lengths, t->sources[i], rank,
					    tag_of(t, t->sources, i, 1));
	i = t->nr_destinations ? t->nr_destinations : 1;
	if (!t->nr_destinations && op->what >= ALLTOALL)
		sent[0] = 0;
	make_side(&op->s, &own, bases[base], sent, i);
	make_side(&op->r, &own, bases[base], received, t->nr_sources);
}

static void call(struct operation *op, MPI_Comm comm)
{
	struct side *s = &op->s, *r = &op->r;
	MPI_Datatype st = s->layout.type, rt = r->layout.type;

	switch (op->what) {
	case ALLGATHER:
		START(op, Neighbor_allgather, neighbor_allgather, s->buf, s->count, st, r->buf,
		      r->count, rt, comm);
		break;
	case ALLGATHERV:
		START(op, Neighbor_allgatherv, neighbor_allgatherv, s->buf, s->count, st, r->buf,
		      r->counts, r->displs, rt, comm);
		break;
	case ALLTOALL:
		START(op, Neighbor_alltoall, neighbor_alltoall, s->buf, s->count, st, r->buf,
		      r->count, rt, comm);
		break;
	case ALLTOALLV:
		START(op, Neighbor_alltoallv, neighbor_alltoallv, s->buf, s->counts, s->displs, st,
		      r->buf, r->counts, r->displs, rt, comm);
		break;
	default:
		START(op, Neighbor_alltoallw, neighbor_alltoallw, s->buf, s->counts, s->displs_wa,
		      s->types, r->buf, r->counts, r->displs_wa, r->types, comm);
	}
}

static void start(void *arg, uint64_t seed, int which)
{
	struct operation *op = arg;

	choose(op, seed);
	op->how = choose_way(seed, which);
	op->request = MPI_REQUEST_NULL;
	call(op, topologies[op->topology].comms[which]);
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
	printf("rank %d of %d: neighbor_%s, topology %d, seed %llu, way %d: byte %zu of %zu\n", rank,
	       size, names[a->what], a->topology, (unsigned long long)seed, a->how, i, a->r.bytes);
	return 1;
}

int main(int argc, char **argv)
{
	static const struct comparison test = {
		sizeof(struct operation), prepare, start, begin, complete, differs, release,
	};

	return compare(argc, argv, &test);
}
