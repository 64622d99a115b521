// SPDX-License-Identifier: GPL-2.0-only
/*
 * The least that a collective operation of two ranks can take: two threads make the copies that it
 * needs, with one flag each, and nothing else. As in collectives.c the sender has just stored into
 * what it sends, buffers change, and the time is the mean of both of the best of many pieces.
 * One line an operation and size: name, bytes, and microseconds.
 *
 *	bare [BYTES]...		65536 and 1048576
 *	PIECES=...		of which the best one counts
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LONGEST (4 << 20)
#define BUFFERS 4

/* Copies are made in pieces of so many bytes, as the component does it. */
#define PIECE (256 << 10)

/* Polls after which the other thread has probably lost its processor */
#define PATIENCE 20000

/* BCAST: by the receiver; BCAST_BOTH: half of it by each; ADD: arrays of doubles, likewise */
enum { BCAST, BCAST_BOTH, ALLGATHER, ADD, NR };
static const char *const names[NR] = { "bcast", "bcast-both", "allgather", "reduce" };

static struct {
	_Alignas(128) _Atomic unsigned long came;
	_Alignas(128) double us;
} ranks[2];
static char *sent[2][BUFFERS], *received[2][BUFFERS];
static int pieces = 31, operation, bytes;
static cpu_set_t processors;

/* Both have come so far. */
static void meet(int me, unsigned long *n)
{
	unsigned int polls = 0;

	atomic_store_explicit(&ranks[me].came, ++*n, memory_order_release);
	while (atomic_load_explicit(&ranks[!me].came, memory_order_acquire) < *n) {
		__builtin_ia32_pause();
		if (++polls % PATIENCE == 0)
			sched_yield();
	}
}

/* Each thread on a processor of its own, if there are two */
static void bind_to(int me)
{
	cpu_set_t one;
	int i, nr = 0;

	CPU_ZERO(&one);
	for (i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &processors) && nr++ == me)
			CPU_SET(i, &one);
	if (CPU_COUNT(&one))
		sched_setaffinity(0, sizeof(one), &one);
}

static void copy(char *to, const char *from, size_t n)
{
	size_t at, now;

	for (at = 0; at < n; at += now) {
		now = n - at < PIECE ? n - at : PIECE;
		memcpy(to + at, from + at, now);
	}
}

static void add(double *to, const double *a, const double *b, int n)
{
	int i;

	for (i = 0; i < n; i++)
		to[i] = a[i] + b[i];
}

static void operate(int me, int i)
{
	const int half = bytes / 2, at = me * half;
	char *from = sent[0][i], *to = received[1][i];

	switch (operation) {
	case BCAST:
		if (me)
			copy(to, from, bytes);
		break;
	case BCAST_BOTH:
		copy(to + at, from + at, half);
		break;
	case ALLGATHER:
		copy(received[me][i] + (size_t)me * bytes, sent[me][i], bytes);
		copy(received[me][i] + (size_t)!me * bytes, sent[!me][i], bytes);
		break;
	default:
		add((double *)(received[0][i] + at), (double *)(sent[0][i] + at),
		    (double *)(sent[1][i] + at), half / 8);
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static double piece(int me, unsigned long *n)
{
	const int times = bytes <= 64 << 10 ? 12 : 4, sends = !me || operation >= ALLGATHER;
	double begin;
	int i;

	meet(me, n);
	begin = now();
	for (i = 0; i < times; i++) {
		if (sends)
			memset(sent[me][i % BUFFERS], i & 1, bytes);
		meet(me, n);
		operate(me, i % BUFFERS);
		meet(me, n);
	}
	ranks[me].us = (now() - begin) / times;
	meet(me, n);
	return (ranks[0].us + ranks[1].us) / 2;
}

static void *measure(void *arg)
{
	const int me = arg != NULL;
	unsigned long n = 0;
	double best = 0, us;
	int i;

	bind_to(me);
	for (i = 0; i < pieces; i++) {
		us = piece(me, &n);
		if (!i || us < best)
			best = us;
		meet(me, &n);
	}
	if (me)
		printf("%s %d %.3f\n", names[operation], bytes, best);
	return NULL;
}

static void measure_all(void)
{
	pthread_t other;

	for (operation = 0; operation < NR; operation++) {
		ranks[0].came = ranks[1].came = 0;
		if (pthread_create(&other, NULL, measure, &ranks))
			exit(1);
		measure(NULL);
		pthread_join(other, NULL);
	}
}

int main(int argc, char **argv)
{
	static const int ours[] = { 64 << 10, 1 << 20 };
	int i, k;

	sched_getaffinity(0, sizeof(processors), &processors);
	if (getenv("PIECES"))
		pieces = atoi(getenv("PIECES"));
	for (i = 0; i < BUFFERS; i++) {
		for (k = 0; k < 2; k++) {
			sent[k][i] = malloc(LONGEST);
			received[k][i] = malloc(2 * LONGEST);
			memset(sent[k][i], 1, LONGEST);
			memset(received[k][i], 1, 2 * LONGEST);
		}
	}
	for (i = 0; i < (argc > 1 ? argc - 1 : 2); i++) {
		bytes = argc > 1 ? atoi(argv[i + 1]) : ours[i];
		if (bytes < 16 || bytes > LONGEST)
			return 1;
		measure_all();
	}
	return 0;
}
