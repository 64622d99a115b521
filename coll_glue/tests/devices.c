// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Neighborhood collectives over several network devices: the last rank is on another node than
 * the others, its neighbors. Do they leave what coll/basic leaves, also with datatypes that have
 * gaps, one behind another without a pause, and is the component used for it?
 *
 *	devices used|unused [ROUNDS]
 *	devices dies RANK	that rank ends in the middle, and the others must end soon
 */
#define COUNTER_PREFIX "coll_pvas_"
#include "common.h"
#include "counter.h"
#include "own_net.h"

#include <signal.h>
#include <sys/time.h>

#define MOST_EDGES 64
#define LONGEST 60000		/* ints in a block, of which some are gaps */

enum { STAR, OUTWARD, INWARD, MIXED_EDGES, NR_TOPOLOGIES };

struct topology {
	MPI_Comm ours, basic;
	int nr_sources, nr_destinations;
};

static struct topology topologies[NR_TOPOLOGIES];
static MPI_Datatype gaps;
static int bad;

static int add_leaves(int *to)
{
	int i;

	for (i = 0; i < size - 1; i++)
		to[i] = i;
	return size - 1;
}

/* Both nodes' ranks have edges inside the node, too, and one edge to the other node is double. */
static void add_mixed(int *sources, int *nr_sources, int *destinations, int *nr_destinations)
{
	const int hub = size - 1, leaves = size - 1;

	destinations[(*nr_destinations)++] = rank == hub ? 0 : (rank + 1) % leaves;
	sources[(*nr_sources)++] = rank == hub ? 0 : (rank + leaves - 1) % leaves;
	if (rank == 0) {
		destinations[(*nr_destinations)++] = hub;
		sources[(*nr_sources)++] = hub;
	}
	destinations[(*nr_destinations)++] = rank;
	sources[(*nr_sources)++] = rank;
}

static void make_topology(struct topology *t, int what)
{
	int sources[MOST_EDGES], destinations[MOST_EDGES], out = 0, in = 0;
	const int hub = rank == size - 1;

	if (what == MIXED_EDGES)
		add_mixed(sources, &in, destinations, &out);
	if (what != (hub ? INWARD : OUTWARD)) {
		destinations[out] = size - 1;
		out += hub ? add_leaves(destinations + out) : 1;
	}
	if (what != (hub ? OUTWARD : INWARD)) {
		sources[in] = size - 1;
		in += hub ? add_leaves(sources + in) : 1;
	}
	/* Their numbers serve as weights. */
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, sources, sources, out, destinations,
				       destinations, MPI_INFO_NULL, 0, &t->ours);
	t->basic = basic_comm(t->ours);
	t->nr_sources = in;
	t->nr_destinations = out;
}

static int *filled(size_t ints, uint64_t seed)
{
	int *p = malloc((ints + 1) * sizeof(*p));
	size_t i;

	for (i = 0; i < ints; i++)
		p[i] = mix(&seed);
	return p;
}

/* Each fourth int is a gap on one side, the other, both or none. */
static void exchange(MPI_Comm comm, uint64_t seed, int *s, int *r)
{
	uint64_t state = seed;
	const int n = 1 + below(&state, below(&state, 3) ? 300 : LONGEST / 4);
	const MPI_Datatype stype = below(&state, 2) ? gaps : MPI_INT;
	const MPI_Datatype rtype = below(&state, 2) ? gaps : MPI_INT;
	const int scount = stype == gaps ? n : 3 * n, rcount = rtype == gaps ? n : 3 * n;

	if (below(&state, 3))
		MPI_Neighbor_alltoall(s, scount, stype, r, rcount, rtype, comm);
	else
		MPI_Neighbor_allgather(s, scount, stype, r, rcount, rtype, comm);
}

#define BATCH 6

static void compare(const struct topology *t, uint64_t seed)
{
	const size_t out = (size_t)t->nr_destinations * LONGEST + LONGEST;
	const size_t in = (size_t)t->nr_sources * LONGEST;
	int *s[BATCH], *r[BATCH][2], i;

	for (i = 0; i < BATCH; i++) {
		s[i] = filled(out, seed + i * 1000 + rank);
		r[i][0] = filled(in, 7);
		r[i][1] = filled(in, 7);
	}
	for (i = 0; i < BATCH; i++)
		exchange(t->ours, seed + i, s[i], r[i][0]);
	for (i = 0; i < BATCH; i++)
		exchange(t->basic, seed + i, s[i], r[i][1]);
	for (i = 0; i < BATCH; i++) {
		if (memcmp(r[i][0], r[i][1], in * sizeof(int))) {
			printf("rank %d: topology %d, operation %llu differs\n", rank,
			       (int)(t - topologies), (unsigned long long)(seed + i));
			bad++;
		}
		free(s[i]);
		free(r[i][0]);
		free(r[i][1]);
	}
}

/* Twice as much as there is room for: an error where it is, and nothing behind the buffer */
static void overflow(const struct topology *t, int hub_is_longer)
{
	const int longer = (rank == size - 1) == hub_is_longer, n = longer ? 100000 : 50000;
	const size_t end = (size_t)t->nr_sources * n;
	int *s = filled((size_t)t->nr_destinations * n, rank), *r = filled(end + 1000, 3);
	int *behind = filled(1000, 5), class = MPI_SUCCESS, error;

	memcpy(r + end, behind, 1000 * sizeof(int));
	error = MPI_Neighbor_alltoall(s, n, MPI_INT, r, n, MPI_INT, t->ours);
	if (error)
		MPI_Error_class(error, &class);
	if (class != (longer ? MPI_SUCCESS : MPI_ERR_TRUNCATE) ||
	    memcmp(r + end, behind, 1000 * sizeof(int))) {
		printf("rank %d: hub longer %d: class %d\n", rank, hub_is_longer, class);
		bad++;
	}
	free(s);
	free(r);
	free(behind);
}

static void check_overflow(void)
{
	struct topology *t = &topologies[STAR];

	MPI_Comm_set_errhandler(t->ours, MPI_ERRORS_RETURN);
	overflow(t, 1);
	overflow(t, 0);
	compare(t, 99);
}

/* By the default action of a signal, as by SIGKILL: no handler, no clean-up. */
static void die_in_the_middle(const struct topology *t, int victim)
{
	const struct itimerval soon = { .it_value = { .tv_usec = 30000 } };
	const int n = 100000;
	int *s = filled((size_t)t->nr_destinations * n, rank);
	int *r = filled((size_t)t->nr_sources * n, 3);

	MPI_Barrier(MPI_COMM_WORLD);
	signal(SIGALRM, SIG_DFL);
	if (rank == victim)
		setitimer(ITIMER_REAL, &soon, NULL);
	for (;;)
		MPI_Neighbor_alltoall(s, n, MPI_INT, r, n, MPI_INT, t->ours);
}

int main(int argc, char **argv)
{
	const int used = argc > 1 && !strcmp(argv[1], "used");
	const int rounds = argc > 2 ? atoi(argv[2]) : 4;
	struct counter segments;
	long long sent;
	int i, k, all;

	own_net();
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	counters_begin();
	counter_find(&segments, "segments");
	MPI_Type_vector(1, 3, 4, MPI_INT, &gaps);
	MPI_Type_create_resized(gaps, 0, 4 * sizeof(int), &gaps);
	MPI_Type_commit(&gaps);
	for (i = 0; i < NR_TOPOLOGIES; i++)
		make_topology(&topologies[i], i);
	if (argc > 2 && !strcmp(argv[1], "dies"))
		die_in_the_middle(&topologies[STAR], atoi(argv[2]));
	for (k = 0; k < rounds; k++)
		for (i = 0; i < NR_TOPOLOGIES; i++)
			compare(&topologies[i], 100 * (k * NR_TOPOLOGIES + i));
	if (used)
		check_overflow();
	sent = counter_read(&segments);
	if ((sent > 0) != used) {
		printf("rank %d: %lld segments\n", rank, sent);
		bad++;
	}
	for (i = 0; i < NR_TOPOLOGIES; i++) {
		MPI_Comm_free(&topologies[i].ours);
		MPI_Comm_free(&topologies[i].basic);
	}
	MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d ranks, %d wrong\n", size, all);
	MPI_Type_free(&gaps);
	MPI_Finalize();
	return all != 0;
}
