// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of a copy to a neighbour, by mechanism, without MPI: half a round trip
 * between two processes, each on a processor of its own. The receiver of a message has
 * it in its own buffer, as after MPI_Recv.
 *
 * usage: raw MECHANISM BYTES...
 *
 *	same-mm		two threads, standing for two tasks: memcpy() from the peer's buffer
 *	cma		process_vm_readv()
 *	pipe		write() and read()
 *	shm		two copies, through a ring of 8 chunks in shared memory
 *	xpmem		attach, memcpy(), detach (if fresh; else attached once)
 *
 * Prints "latency", BYTES, "us" and the best of some pieces, and the same as "fresh", for
 * which each message lies in pages that none used before. Exit status 77: not on this
 * machine.
 */
#include "raw.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define PIECES 8

static const struct raw_way *const ways[] = {
	&raw_same_mm, &raw_cma, &raw_pipe, &raw_shm, &raw_xpmem,
};

static struct raw_pair *pair;
static int cpus[2];

/* Called before the second side starts: both use the processors found here. */
static void find_processors(void)
{
	cpu_set_t set;
	int i, n = 0;

	sched_getaffinity(0, sizeof(set), &set);
	for (i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &set))
			cpus[n++] = i;
	if (n < 2) {
		fprintf(stderr, "raw: one processor: no neighbour to send to\n");
		exit(77);
	}
}

static void stay_on(int side)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpus[side], &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		bench_die("sched_setaffinity", -errno);
}

static void *map_pages(size_t len, int flags)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		bench_die("mmap", -errno);
	return p;
}

void raw_wait(uint64_t *flag, uint64_t value)
{
	while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) < value)
		__builtin_ia32_pause();
}

void raw_set(uint64_t *flag, uint64_t value)
{
	__atomic_store_n(flag, value, __ATOMIC_RELEASE);
}

/* Both sides meet: neither runs ahead into the next piece. */
static void meet(struct raw_side *me)
{
	me->meetings++;
	raw_set(&pair->met[me->side], me->meetings);
	raw_wait(&pair->met[!me->side], me->meetings);
}

/* New pages for each piece; the receive buffer, too, has new pages if it must be fresh. */
static size_t open_piece(struct raw_side *me, const struct raw_way *way, size_t step, int rounds)
{
	size_t all = step * rounds + me->len + 4096;

	me->at = 0;
	me->buf = map_pages(all, MAP_PRIVATE);
	memset(me->buf, 1 + me->side, all);
	me->in = me->fresh ? map_pages(all, MAP_PRIVATE) : me->landing;
	memset(me->in, 0, me->fresh ? all : me->len);
	pair->base[me->side] = me->buf;
	if (way->begin)
		way->begin(me, all);
	meet(me);
	if (way->join)
		way->join(me);
	meet(me);
	return all;
}

static void close_piece(struct raw_side *me, const struct raw_way *way, size_t all)
{
	meet(me);
	if (way->leave)
		way->leave(me);
	meet(me);
	if (way->end)
		way->end(me);
	munmap(me->buf, all);
	if (me->fresh)
		munmap(me->in, all);
}

/* The peer's bytes, first and last of the last message, must have come. */
static void check(const struct raw_side *me, size_t at)
{
	char peers = 1 + !me->side;

	if (me->len && (me->in[at] != peers || me->in[at + me->len - 1] != peers))
		bench_die("the message that came is not the one that was sent", -EBADMSG);
}

/* @rounds round trips: microseconds of half a one */
static double piece(struct raw_side *me, const struct raw_way *way, int rounds)
{
	size_t step = me->fresh ? (me->len + 4095) & ~(size_t)4095 : 0;
	size_t all = open_piece(me, way, step, rounds);
	double t = bench_us();
	int i;

	for (i = 0; i < rounds; i++, me->at += step) {
		if (me->side == 0)
			way->send(me);
		way->receive(me);
		if (me->side == 1)
			way->send(me);
	}
	t = (bench_us() - t) / rounds / 2;
	check(me, me->at - step);
	close_piece(me, way, all);
	return t;
}

static int rounds_for(size_t n)
{
	return n <= 4096 ? 100 : n <= 65536 ? 20 : n <= 1048576 ? 4 : 1;
}

static void run_side(int side, const struct raw_way *way, size_t len, bool fresh)
{
	struct raw_side me = { .side = side, .len = len, .fresh = fresh, .pair = pair };
	double best = 1e12, t;
	int i;

	stay_on(side);
	pair->pid[side] = getpid();
	me.landing = map_pages(len + 4096, MAP_PRIVATE);
	memset(me.landing, 0, len + 4096);
	for (i = 0; i < PIECES; i++) {
		t = piece(&me, way, rounds_for(len));
		if (t < best)
			best = t;
	}
	if (side == 0)
		printf("%s %zu us %.4f\n", fresh ? "fresh" : "latency", len, best);
}

struct job {
	const struct raw_way *way;
	size_t len;
	bool fresh;
};

static void *other_thread(void *arg)
{
	struct job *job = arg;

	run_side(1, job->way, job->len, job->fresh);
	return NULL;
}

static void by_threads(struct job *job)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, other_thread, job))
		bench_die("pthread_create", -EAGAIN);
	run_side(0, job->way, job->len, job->fresh);
	pthread_join(thread, NULL);
}

static void by_processes(struct job *job)
{
	pid_t pid = fork();

	if (pid < 0)
		bench_die("fork", -errno);
	run_side(!pid, job->way, job->len, job->fresh);
	if (!pid)
		_exit(0);
	bench_reap(pid);
}

/* With a pair of its own */
static void run_job(struct job *job)
{
	int err;

	pair = map_pages(sizeof(*pair), MAP_SHARED);
	err = job->way->open ? job->way->open(pair) : 0;
	if (err) {
		fprintf(stderr, "raw: %s: %s\n", job->way->name, strerror(-err));
		exit(77);
	}
	if (job->way->threads)
		by_threads(job);
	else
		by_processes(job);
	fflush(stdout);
	if (job->way->close)
		job->way->close(pair);
	munmap(pair, sizeof(*pair));
}

int main(int argc, char **argv)
{
	struct job job = { 0 };
	size_t i;

	for (i = 0; argc > 2 && i < sizeof(ways) / sizeof(*ways); i++)
		if (!strcmp(argv[1], ways[i]->name))
			job.way = ways[i];
	if (!job.way) {
		fprintf(stderr, "usage: raw same-mm|cma|pipe|shm|xpmem BYTES...\n");
		return 2;
	}
	find_processors();
	for (argv += 2; *argv; argv++)
		for (i = 0; i < 2; i++) {
			job.len = strtoull(*argv, NULL, 0);
			job.fresh = i;
			run_job(&job);
		}
	return 0;
}
