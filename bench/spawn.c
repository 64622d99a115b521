// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long do N tasks take to start and to end, and how much memory do their
 * page tables need, beside N plain processes of the same program?
 *
 * usage: spawn [N [RUNS]]
 *
 * "Started" is: each is in main() and has said so. The space is made within the
 * time, and ended within the time to end. Memory is read while all N are alive.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"
#include "pvas.h"

/* The time and the memory of one gang of N. */
struct sample {
	double create_us, started_us, start_us, end_us, cpu_us;
	long tables_kib, memory_kib;
};

struct gang {
	struct pvas_space *space;
	pid_t *pids;
	unsigned int n;
	int ready[2], go[2];
};

static void start_all(struct gang *g)
{
	const char *path = bench_beside("member");
	char ready[12], go[12];
	char *argv[] = { "member", ready, go, NULL };
	unsigned int i;

	snprintf(ready, sizeof(ready), "%d", g->ready[1]);
	snprintf(go, sizeof(go), "%d", g->go[0]);
	for (i = 0; i < g->n; i++)
		g->pids[i] = bench_start(g->space, path, argv, -1);
}

static void await_all(struct gang *g)
{
	unsigned int left = g->n;
	char buf[256];

	while (left) {
		ssize_t len = read(g->ready[0], buf, sizeof(buf));

		if (len <= 0)
			bench_die("waiting for all to run", len ? -errno : -EPIPE);
		left -= len;
	}
}

/* Only the reading end of one pipe and the writing end of the other are for members. */
static void open_pipes(struct gang *g)
{
	if (pipe(g->ready) || pipe(g->go))
		bench_die("pipe", -errno);
	fcntl(g->ready[0], F_SETFD, FD_CLOEXEC);
	fcntl(g->go[1], F_SETFD, FD_CLOEXEC);
}

static void end_all(struct gang *g)
{
	unsigned int i;

	close(g->go[1]);
	for (i = 0; i < g->n; i++)
		bench_reap(g->pids[i]);
	pvas_space_destroy(g->space);
}

/* Of this process and the children it has reaped: waiting is not in it. */
static double cpu_us(void)
{
	static const int who[] = { RUSAGE_SELF, RUSAGE_CHILDREN };
	struct rusage u;
	double us = 0;
	int i;

	for (i = 0; i < 2; i++) {
		if (getrusage(who[i], &u))
			bench_die("getrusage", -errno);
		us += (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 + u.ru_utime.tv_usec +
		      u.ru_stime.tv_usec;
	}
	return us;
}

static struct sample run_gang(int tasks, pid_t *pids, unsigned int n)
{
	long tables = bench_meminfo("PageTables"), available = bench_meminfo("MemAvailable");
	struct gang g = { .pids = pids, .n = n };
	struct sample s;
	double begin, cpu = cpu_us();
	int err;

	open_pipes(&g);
	begin = bench_us();
	err = tasks ? pvas_space_create(&g.space, NULL) : 0;
	if (err)
		bench_die("pvas_space_create", err);
	s.create_us = bench_us() - begin;
	start_all(&g);
	s.started_us = bench_us() - begin;
	await_all(&g);
	s.start_us = bench_us() - begin;
	s.tables_kib = bench_meminfo("PageTables") - tables;
	s.memory_kib = available - bench_meminfo("MemAvailable");
	begin = bench_us();
	end_all(&g);
	s.end_us = bench_us() - begin;
	s.cpu_us = cpu_us() - cpu;
	close(g.ready[0]);
	close(g.ready[1]);
	close(g.go[0]);
	return s;
}

/* One run: plain processes, tasks, tasks again */
enum { PLAIN, TASKS, AGAIN, GANGS };

struct all {
	struct bench_series started, start, end, cpu, tables, memory;
};

static void add(struct bench_series *s, double plain, double tasks, double again)
{
	bench_series_add(s, plain, tasks);
	bench_series_again(s, again);
}

static void run(struct all *all, pid_t *pids, unsigned int n, unsigned int nr, double *create_ms)
{
	struct sample s[GANGS];
	unsigned int i, which;

	/* The order rotates, so that none always profits from caches that another has filled. */
	for (i = 0; i < GANGS; i++) {
		which = (nr + i) % GANGS;
		s[which] = run_gang(which != PLAIN, pids, n);
	}
	*create_ms = s[TASKS].create_us / 1000;
	add(&all->started, s[PLAIN].started_us / 1000, s[TASKS].started_us / 1000,
	    s[AGAIN].started_us / 1000);
	add(&all->start, s[PLAIN].start_us / 1000, s[TASKS].start_us / 1000,
	    s[AGAIN].start_us / 1000);
	add(&all->end, s[PLAIN].end_us / 1000, s[TASKS].end_us / 1000, s[AGAIN].end_us / 1000);
	add(&all->cpu, s[PLAIN].cpu_us / 1000, s[TASKS].cpu_us / 1000, s[AGAIN].cpu_us / 1000);
	add(&all->tables, s[PLAIN].tables_kib, s[TASKS].tables_kib, s[AGAIN].tables_kib);
	add(&all->memory, s[PLAIN].memory_kib, s[TASKS].memory_kib, s[AGAIN].memory_kib);
}

static void init(struct all *all, unsigned int runs)
{
	bench_series_init(&all->started, runs);
	bench_series_init(&all->start, runs);
	bench_series_init(&all->end, runs);
	bench_series_init(&all->cpu, runs);
	bench_series_init(&all->tables, runs);
	bench_series_init(&all->memory, runs);
}

static void result(struct bench_series *s, const char *format, unsigned int n, const char *unit,
		   double limit)
{
	char what[64];

	snprintf(what, sizeof(what), format, n);
	bench_series_result(s, what, unit, limit);
}

int main(int argc, char **argv)
{
	unsigned int n = argc > 1 ? atoi(argv[1]) : 240, runs = argc > 2 ? atoi(argv[2]) : 5, i;
	double *create = calloc(runs, sizeof(*create));
	pid_t *pids = calloc(n, sizeof(*pids));
	struct all all;

	if (!n || !runs || !pids || !create)
		bench_die("usage: spawn [N [RUNS]]", -EINVAL);
	init(&all, runs);
	/* The program and the libraries come into the page cache here. */
	run_gang(0, pids, 4);
	run_gang(1, pids, 4);
	for (i = 0; i < runs; i++)
		run(&all, pids, n, i, &create[i]);
	bench_result("make the space (in the next two)", "ms", runs, 0, bench_median(create, runs),
		     0, 0);
	result(&all.started, "start %u (the calls return)", n, "ms", 0);
	result(&all.start, "start %u (all in main)", n, "ms", 1.3);
	result(&all.end, "end %u (all reaped)", n, "ms", 0);
	result(&all.cpu, "processor time of %u, to the end", n, "ms", 0);
	result(&all.tables, "page tables of %u", n, "KiB", 1.05);
	result(&all.memory, "MemAvailable used by %u", n, "KiB", 0);
	free(create);
	free(pids);
	return 0;
}
