/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Random operations on two communicators, one of them coll/basic's: are results equal? Many
 * are started without a pause.
 */
#ifndef PVAS_TEST_COLL_COMPARE_H
#define PVAS_TEST_COLL_COMPARE_H

#include "common.h"


#define BATCH 16

enum { OURS, BASIC };

/* How operations are called. MIXED: each in one of the ways, the same at all ranks */
enum way { BLOCKING, NONBLOCKING, PERSISTENT, MIXED };
static enum way way;

/* The communicator that is tested: all ranks, maybe in another order than they were started in */
static MPI_Comm everybody;

/* Sums in another order than coll/basic's are right, too. */
static int close_is_equal;

/**
 * struct comparison - a test
 * @bytes:	size of an operation
 * @prepare:	called once
 * @start:	choose an operation and start it, on coll/basic's communicator or on ours
 * @begin:	start it if it is persistent
 * @complete:	it is complete, and its send buffer can be overwritten
 * @differs:	compare the results of two operations with the same seed
 * @release:	free what an operation has allocated
 */
struct comparison {
	size_t bytes;
	void (*prepare)(void);
	void (*start)(void *op, uint64_t seed, int which);
	void (*begin)(void *op);
	void (*complete)(void *op);
	int (*differs)(const void *ours, const void *basic, uint64_t seed);
	void (*release)(void *op);
};

/* coll/basic has blocking operations only. */
static inline enum way choose_way(uint64_t seed, int which)
{
	uint64_t state = seed ^ 0x5eed;

	if (which == BASIC)
		return BLOCKING;
	return way == MIXED ? (enum way)below(&state, MIXED) : way;
}

/* Call an operation @op, which has members @how and @request, in its way. */
#define START(op, Name, name, ...)						\
	((op)->how == BLOCKING ? MPI_##Name(__VA_ARGS__) :			\
	 (op)->how == NONBLOCKING ? MPI_I##name(__VA_ARGS__, &(op)->request) :	\
	 PERSISTENT(Name)(__VA_ARGS__, MPI_INFO_NULL, &(op)->request))

static inline void wait_for(enum way how, MPI_Request *request)
{
	int flag;

	/* A rank may also test, and some of those requests are complete already. */
	MPI_Test(request, &flag, MPI_STATUS_IGNORE);
	MPI_Wait(request, MPI_STATUS_IGNORE);
	if (how == PERSISTENT)
		MPI_Request_free(request);
}

/*
 * All are called in one order, but each rank completes them in an order of its own; likewise
 * it starts persistent ones.
 */
static inline void run_batch(const struct comparison *c, char *ops, uint64_t seed, int which)
{
	uint64_t own = seed * 1000 + rank;
	int first = below(&own, BATCH), step = 1 + 2 * below(&own, BATCH / 2), k;

	for (k = 0; k < BATCH; k++)
		c->start(ops + k * c->bytes, seed + k, which);
	for (k = 0; k < BATCH; k++)
		c->begin(ops + (first + 5 * k) % BATCH * c->bytes);
	for (k = 0; k < BATCH; k++)
		c->complete(ops + (first + k * step) % BATCH * c->bytes);
}

static inline int compare_batch(const struct comparison *c, char *ours, char *basic, uint64_t seed)
{
	int wrong = 0, k;

	run_batch(c, ours, seed, OURS);
	run_batch(c, basic, seed, BASIC);
	for (k = 0; k < BATCH; k++) {
		wrong += c->differs(ours + k * c->bytes, basic + k * c->bytes, seed + k);
		c->release(ours + k * c->bytes);
		c->release(basic + k * c->bytes);
	}
	return wrong;
}

static inline void make_everybody(int shuffled)
{
	int world_rank, world_size;

	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &world_size);
	everybody = MPI_COMM_WORLD;
	/* Those of a node are neither neighbors then, nor is the first one the node's first. */
	if (shuffled)
		MPI_Comm_split(MPI_COMM_WORLD, 0, world_rank * 7919 % 101, &everybody);
	MPI_Comm_rank(everybody, &rank);
	MPI_Comm_size(everybody, &size);
}

/* Arguments: [ROUNDS [SEED [blocking|nonblocking|persistent|mixed [shuffled] [close]]]] */
static inline int compare(int argc, char **argv, const struct comparison *c)
{
	static const char *const ways[] = { "blocking", "nonblocking", "persistent", "mixed" };
	const int rounds = argc > 1 ? atoi(argv[1]) : 10;
	uint64_t seed = argc > 2 ? atoll(argv[2]) : 1;
	char *ours = calloc(BATCH, c->bytes), *basic = calloc(BATCH, c->bytes);
	int wrong = 0, shuffled = 0, all, i;

	for (i = 0; i < 4 && argc > 3; i++)
		if (!strcmp(argv[3], ways[i]))
			way = i;
	for (i = 4; i < argc; i++) {
		close_is_equal |= !strcmp(argv[i], "close");
		shuffled |= !strcmp(argv[i], "shuffled");
	}
	MPI_Init(&argc, &argv);
	make_everybody(shuffled);
	c->prepare();
	for (i = 0; i < rounds; i++)
		wrong += compare_batch(c, ours, basic, seed + i * BATCH);
	MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d operations, %d wrong\n", rounds * BATCH, all);
	MPI_Finalize();
	free(ours);
	free(basic);
	return all != 0;
}

#endif /* PVAS_TEST_COLL_COMPARE_H */
