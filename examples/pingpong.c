// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of a message that is one memcpy(): rank 1 copies a buffer of rank 0 to its
 * own and answers, rank 0 waits for the answer; and so on.
 *
 *	pvasrun -n 2 pingpong [ROUNDS]
 */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pvas.h"

#define LARGEST (1 << 18)
#define WAIT_MS 60000
#define SPINS 100

/* In rank 0's memory; turn n is that of rank n % 2. */
struct table {
	_Alignas(64) uint32_t turn;
	_Alignas(64) unsigned char buffer[LARGEST];
};

static unsigned char received[LARGEST];

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* With fewer processors than tasks, spinning would take the processor from the other. */
static void await_turn(struct table *t, uint32_t turn)
{
	unsigned int spins = 0;

	while (__atomic_load_n(&t->turn, __ATOMIC_ACQUIRE) != turn)
		if (++spins % SPINS == 0)
			sched_yield();
}

static void pass_turn(struct table *t, uint32_t turn)
{
	__atomic_store_n(&t->turn, turn + 1, __ATOMIC_RELEASE);
}

static void fill(struct table *t, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		t->buffer[i] = (unsigned char)(i * 31 + size);
}

/* One round, beginning at turn @turn: rank 0 signals, rank 1 copies and answers. */
static void play(struct table *t, int rank, uint32_t turn, size_t size)
{
	if (!rank) {
		pass_turn(t, turn);
		await_turn(t, turn + 2);
	} else {
		await_turn(t, turn + 1);
		memcpy(received, t->buffer, size);
		pass_turn(t, turn + 1);
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * Rank 1 compares after the last round. Then there is an empty round, so that until
 * then rank 0 neither refills the buffer nor exits.
 */
static int play_all(struct table *t, int rank, uint32_t *turn, size_t size, double *us,
		    unsigned int rounds)
{
	unsigned int i;
	int err = 0;

	if (!rank)
		fill(t, size);
	for (i = 0; i < rounds; i++, *turn += 2) {
		double begin = now();

		play(t, rank, *turn, size);
		us[i] = (now() - begin) * 1e6;
	}
	if (rank && memcmp(received, t->buffer, size))
		err = -EBADMSG;
	play(t, rank, *turn, 0);
	*turn += 2;
	qsort(us, rounds, sizeof(*us), compare);
	return err;
}

static int fail(const char *what, int err)
{
	fprintf(stderr, "pingpong: %s: %s\n", what, strerror(-err));
	return 1;
}

static int meet(int rank, struct table **t)
{
	void *p = NULL;
	int err;

	if (rank) {
		err = pvas_name_import_wait(PVAS_ANY, "pingpong.table", WAIT_MS, &p);
		*t = p;
		return err < 0 ? err : 0;
	}
	*t = aligned_alloc(64, sizeof(**t));
	if (!*t)
		return -ENOMEM;
	memset(*t, 0, sizeof(**t));
	return pvas_name_export("pingpong.table", *t);
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	const char *rank_text = getenv("PVAS_RANK"), *size_text = getenv("PVAS_SIZE");
	struct table *t;
	uint32_t turn = 0;
	size_t size;
	double *us;
	int rank, err;

	if (pvas_task_get_index() < 0 || !rank_text || !size_text || strcmp(size_text, "2") ||
	    !rounds) {
		fprintf(stderr,
			"pingpong: not one of two tasks (start it with: pvasrun -n 2 pingpong [ROUNDS])\n");
		return 2;
	}
	rank = atoi(rank_text);
	err = meet(rank, &t);
	if (err)
		return fail("cannot meet the other", err);
	us = calloc(rounds, sizeof(*us));
	if (!us)
		return fail("cannot note the times", -ENOMEM);
	for (size = 64; !err && size <= LARGEST; size *= 8) {
		err = play_all(t, rank, &turn, size, us, rounds);
		if (!rank)
			printf("%8zu bytes: %10.2f us there and back (median of %u)\n", size,
			       us[rounds / 2], rounds);
	}
	return err ? fail("what arrived is not what was sent", err) : 0;
}
