// SPDX-License-Identifier: GPL-2.0-only
/*
 * usage: p2p FILE FIRST
 *
 * Two ranks. FILE is the page that all jobs share (see p2p.h), made by p2p.sh;
 * FIRST is the place of this job in a turn. The first job, which runs in one space,
 * has the place after it, too: there each rank copies straight from the other's
 * warm buffer, which is the best that one processor can do.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "p2p.h"

#define WINDOW 16
#define RATE_WINDOW 64
#define PIECES 8
#define BUFFER ((size_t)64 << 20)

/* The other rank's part in the bare copies */
struct peer {
	char *buf;
	uint64_t *flag;
};

static char *buf;
static _Alignas(64) uint64_t flag;
static struct peer peer;
static int rank;

/* ---- by MPI ---- */

static void send(char *p, size_t n)
{
	MPI_Send(p, n, MPI_CHAR, !rank, 0, MPI_COMM_WORLD);
}

static void receive(char *p, size_t n)
{
	MPI_Recv(p, n, MPI_CHAR, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* @step: distance between the buffers of two messages, or 0 */
static double ping_pong_at(char *p, size_t n, int rounds, size_t step)
{
	double t = seconds();
	int i;

	for (i = 0; i < rounds; i++, p += step) {
		if (rank == 0) {
			send(p, n);
			receive(p, n);
		} else {
			receive(p, n);
			send(p, n);
		}
	}
	return (seconds() - t) / rounds / 2;
}

static double ping_pong(size_t n, int rounds)
{
	return ping_pong_at(buf, n, rounds, 0);
}

static size_t slot(size_t n, int i)
{
	return n * WINDOW <= BUFFER ? n * i : 0;
}

/* One way, @window messages at a time */
static double one_way(size_t n, int rounds, int window)
{
	MPI_Request req[RATE_WINDOW];
	double t = seconds();
	int i, j;

	for (i = 0; i < rounds; i++) {
		for (j = 0; j < window; j++) {
			char *p = buf + slot(n, j);

			if (rank == 0)
				MPI_Isend(p, n, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &req[j]);
			else
				MPI_Irecv(p, n, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &req[j]);
		}
		MPI_Waitall(window, req, MPI_STATUSES_IGNORE);
	}
	if (rank == 0)
		receive(buf, 0);
	else
		send(buf, 0);
	return (seconds() - t) / rounds / window;
}

static double stream(size_t n, int rounds)
{
	return one_way(n, rounds, WINDOW);
}

static double rate(size_t n, int rounds)
{
	return one_way(n, rounds, RATE_WINDOW);
}

/* Send from one half of the buffer, receive into the other. */
static double both_ways(size_t n, int rounds)
{
	MPI_Request req[2 * WINDOW];
	double t = seconds();
	int i, j;

	for (i = 0; i < rounds; i++) {
		for (j = 0; j < WINDOW; j++) {
			char *p = buf + slot(2 * n, j);

			MPI_Irecv(p, n, MPI_CHAR, !rank, 0, MPI_COMM_WORLD, &req[j]);
			MPI_Isend(p + n, n, MPI_CHAR, !rank, 0, MPI_COMM_WORLD, &req[WINDOW + j]);
		}
		MPI_Waitall(2 * WINDOW, req, MPI_STATUSES_IGNORE);
	}
	return (seconds() - t) / rounds / WINDOW;
}

/* Both sides use pages that were never used for a message before. */
static double fresh(size_t n, int rounds)
{
	size_t step = (n + 4095) & ~(size_t)4095, len = step * rounds + 4096;
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	double t;

	if (p == MAP_FAILED)
		MPI_Abort(MPI_COMM_WORLD, 1);
	memset(p, rank, len);
	MPI_Barrier(MPI_COMM_WORLD);
	t = ping_pong_at(p, n, rounds, step);
	munmap(p, len);
	return t;
}

/* ---- by memcpy ---- */

static void wait_flag(uint64_t value)
{
	while (__atomic_load_n(&flag, __ATOMIC_ACQUIRE) < value)
		;
}

static void set_flag(uint64_t value)
{
	__atomic_store_n(peer.flag, value, __ATOMIC_RELEASE);
}

static double copy_ping_pong(size_t n, int rounds)
{
	uint64_t base = flag;
	double t;
	int i;

	MPI_Barrier(MPI_COMM_WORLD);
	t = seconds();
	for (i = 1; i <= rounds; i++) {
		if (rank == 1) {
			wait_flag(base + i);
			memcpy(buf, peer.buf, n);
			set_flag(base + i);
		} else {
			set_flag(base + i);
			wait_flag(base + i);
			memcpy(buf, peer.buf, n);
		}
	}
	t = (seconds() - t) / rounds / 2;
	MPI_Barrier(MPI_COMM_WORLD);
	return t;
}

static double copy_stream(size_t n, int rounds)
{
	double t = seconds();
	int i, j;

	for (i = 0; i < rounds && rank == 1; i++)
		for (j = 0; j < WINDOW; j++)
			memcpy(buf + slot(n, j), peer.buf + slot(n, j), n);
	MPI_Barrier(MPI_COMM_WORLD);
	return (seconds() - t) / rounds / WINDOW;
}

static double copy_both_ways(size_t n, int rounds)
{
	double t;
	int i, j;

	MPI_Barrier(MPI_COMM_WORLD);
	t = seconds();
	for (i = 0; i < rounds; i++)
		for (j = 0; j < WINDOW; j++)
			memcpy(buf + slot(2 * n, j), peer.buf + slot(2 * n, j) + n, n);
	MPI_Barrier(MPI_COMM_WORLD);
	return (seconds() - t) / rounds / WINDOW;
}

static void find_peer(void)
{
	struct peer me = { buf, &flag };

	MPI_Sendrecv(&me, sizeof(me), MPI_BYTE, !rank, 1, &peer, sizeof(peer), MPI_BYTE, !rank, 1,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* ---- a turn ---- */

/* A piece takes about 0.1 ms, much less than a time slice. */
static int rounds_for(size_t n)
{
	return n <= 4096 ? 100 : n <= 16384 ? 20 : n <= 65536 ? 10 : n <= 262144 ? 4 : 1;
}

/* The best of several short pieces, for other programs use the processors, too */
static double best_of(double (*piece)(size_t n, int rounds), size_t n, int rounds)
{
	double best = 1, t;
	int i;

	for (i = 0; i < PIECES; i++) {
		t = piece(n, rounds);
		if (t < best)
			best = t;
	}
	return best;
}

static void by_mpi(struct sample *s, size_t n)
{
	int rounds = rounds_for(n);

	s->seconds[LATENCY] = best_of(ping_pong, n, rounds);
	s->seconds[STREAM] = best_of(stream, n, rounds / WINDOW + 1);
	s->seconds[FRESH] = best_of(fresh, n, rounds);
	s->seconds[BOTH_WAYS] = best_of(both_ways, n, rounds / WINDOW + 1);
	s->seconds[RATE] = n <= RATE_LIMIT ? best_of(rate, n, rounds / RATE_WINDOW + 1) : 0;
}

static void by_memcpy(struct sample *s, size_t n)
{
	int rounds = rounds_for(n);

	s->seconds[LATENCY] = best_of(copy_ping_pong, n, rounds);
	s->seconds[STREAM] = best_of(copy_stream, n, rounds / WINDOW + 1);
	s->seconds[FRESH] = s->seconds[LATENCY];
	s->seconds[BOTH_WAYS] = best_of(copy_both_ways, n, rounds / WINDOW + 1);
	s->seconds[RATE] = 0;
}

/* Both ranks start each probe with the line at zero. */
static double probe_together(struct page *page)
{
	double t;

	if (rank == 0)
		__atomic_store_n(&page->line, 0, __ATOMIC_RELEASE);
	MPI_Barrier(MPI_COMM_WORLD);
	t = probe(&page->line, rank);
	MPI_Barrier(MPI_COMM_WORLD);
	return t;
}

static void take_turn(struct page *page, struct sample *s, size_t n, bool bare)
{
	double before = probe_together(page), after;

	if (bare)
		by_memcpy(s, n);
	else
		by_mpi(s, n);
	after = probe_together(page);
	s->probe = before > after ? before : after;
	s->moved = before >= after * PROBE_LIMIT || after >= before * PROBE_LIMIT;
	if (rank == 0)
		next_turn(page);
}

static void all_turns(struct page *page, unsigned int first, unsigned int last)
{
	unsigned int size, i, r;
	struct sample mine, *s;

	for (size = 0; size < page->nr_sizes; size++)
		for (i = 0; i < page->nr_samples; i++)
			for (r = first; r <= last; r++) {
				wait_turn(page, (size * page->nr_samples + i) *
						page->nr_rivals + r);
				s = rank == 0 ? &page->samples[size][i][r] : &mine;
				take_turn(page, s, page->sizes[size], r != first);
			}
}

int main(int argc, char **argv)
{
	struct page *page;
	unsigned int first;
	int size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc != 3 || size != 2) {
		fprintf(stderr, "usage: p2p FILE FIRST, in two ranks\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	page = open_page(argv[1]);
	first = atoi(argv[2]);
	if (stay_on(rank))
		perror("p2p: sched_setaffinity");
	buf = malloc(BUFFER);
	memset(buf, 1, BUFFER);
	find_peer();
	all_turns(page, first, first ? first : 1);
	MPI_Finalize();
	return 0;
}
