// SPDX-License-Identifier: GPL-2.0
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

/* What one gang of N took. */
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
	pvas_destroy(g->space);
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
	err = tasks ? pvas_create(&g.space, NULL) : 0;
	if (err)
		bench_die("pvas_create", err);
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

int main(int argc, char **argv)
{
	unsigned int n = argc > 1 ? atoi(argv[1]) : 240, runs = argc > 2 ? atoi(argv[2]) : 5, i;
	struct bench_series started, start, end, cpu, tables, memory;
	double *create = calloc(runs, sizeof(*create));
	pid_t *pids = calloc(n, sizeof(*pids));
	char what[64];

	if (!n || !runs || !pids || !create)
		bench_die("usage: spawn [N [RUNS]]", -EINVAL);
	bench_series_init(&started, runs);
	bench_series_init(&start, runs);
	bench_series_init(&end, runs);
	bench_series_init(&cpu, runs);
	bench_series_init(&tables, runs);
	bench_series_init(&memory, runs);
	/* The program and the libraries come into the page cache here. */
	run_gang(0, pids, 4);
	run_gang(1, pids, 4);
	for (i = 0; i < runs; i++) {
		struct sample a, b;

		/* Who goes first changes: neither inherits the other's warmth. */
		if (i % 2)
			b = run_gang(1, pids, n);
		a = run_gang(0, pids, n);
		if (i % 2 == 0)
			b = run_gang(1, pids, n);
		create[i] = b.create_us / 1000;
		bench_series_add(&started, a.started_us / 1000, b.started_us / 1000);
		bench_series_add(&start, a.start_us / 1000, b.start_us / 1000);
		bench_series_add(&end, a.end_us / 1000, b.end_us / 1000);
		bench_series_add(&cpu, a.cpu_us / 1000, b.cpu_us / 1000);
		bench_series_add(&tables, a.tables_kib, b.tables_kib);
		bench_series_add(&memory, a.memory_kib, b.memory_kib);
	}
	bench_result("make the space (in the next two)", "ms", runs, 0, bench_median(create, runs),
		     0, 0);
	snprintf(what, sizeof(what), "start %u (the calls return)", n);
	bench_series_result(&started, what, "ms", 0);
	snprintf(what, sizeof(what), "start %u (all in main)", n);
	bench_series_result(&start, what, "ms", 1.3);
	snprintf(what, sizeof(what), "end %u (all reaped)", n);
	bench_series_result(&end, what, "ms", 0);
	snprintf(what, sizeof(what), "processor time of %u, to the end", n);
	bench_series_result(&cpu, what, "ms", 0);
	snprintf(what, sizeof(what), "page tables of %u", n);
	bench_series_result(&tables, what, "KiB", 1.05);
	snprintf(what, sizeof(what), "MemAvailable used by %u", n);
	bench_series_result(&memory, what, "KiB", 0);
	free(create);
	free(pids);
	return 0;
}
