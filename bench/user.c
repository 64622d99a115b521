// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of the user backend: system calls of a task beside those of a plain
 * process, and 64 tasks beside 64 posix_spawn(). Runs on the host, with no
 * module and no root.
 *
 * usage: user [ROUNDS]
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"
#include "pvas.h"

#define VALUES	7
#define GETPPID	4	/* of them */
#define TASKS	64

static const struct {
	const char *what;
	double limit;
} values[VALUES] = {
	{ "mmap, placed for a task", 12 },
	{ "mmap of a file, placed for a task", 12 },
	{ "munmap of one's own", 0 },
	{ "mprotect of one's own", 0 },
	{ "getppid", 1.15 },
	{ "stores, a page", 1.05 },
	{ "malloc + free, 50 to 150 KB", 1.05 },
};

static void calls(struct pvas_space *space, const char *how, double v[VALUES])
{
	char *argv[] = { "calls", (char *)how, NULL };
	int out[2], i;
	pid_t pid;
	FILE *f;

	if (pipe2(out, O_CLOEXEC))
		bench_die("pipe", -errno);
	pid = bench_start(space, bench_beside("calls"), argv, out[1]);
	close(out[1]);
	f = fdopen(out[0], "r");
	for (i = 0; i < VALUES; i++)
		if (fscanf(f, "%lf", &v[i]) != 1)
			bench_die("calls", -EPIPE);
	fclose(f);
	bench_reap(pid);
}

/* From the first start to the last end. */
static double gang(struct pvas_space *space)
{
	char *argv[] = { "true", NULL };
	double begin = bench_us();
	pid_t pids[TASKS];
	int i;

	for (i = 0; i < TASKS; i++)
		pids[i] = bench_start(space, "/bin/true", argv, -1);
	for (i = 0; i < TASKS; i++)
		bench_reap(pids[i]);
	return bench_us() - begin;
}

int main(int argc, char **argv)
{
	struct pvas_create_attr attr = { .size = sizeof(attr), .backend = PVAS_BACKEND_USER };
	struct bench_series series[VALUES], floor, starts;
	int rounds = argc > 1 ? atoi(argv[1]) : 11, i, j, err;
	struct pvas_space *space;
	double a[VALUES], b[VALUES], again[VALUES], c[VALUES];

	if (rounds < 1)
		bench_die("usage: user [ROUNDS]", -EINVAL);
	err = pvas_space_create(&space, &attr);
	if (err)
		bench_die("pvas_space_create", err);
	bench_series_init(&starts, rounds);
	bench_series_init(&floor, rounds);
	for (j = 0; j < VALUES; j++)
		bench_series_init(&series[j], rounds);
	for (i = 0; i < rounds; i++) {
		double plain = gang(NULL);

		bench_series_add(&starts, plain, gang(space));
		bench_series_again(&starts, gang(space));
		calls(NULL, NULL, a);
		calls(space, NULL, b);
		calls(space, NULL, again);
		calls(NULL, "filtered", c);
		/* That a filter is there at all is what it costs. */
		bench_series_add(&floor, c[GETPPID], b[GETPPID]);
		bench_series_again(&floor, again[GETPPID]);
		for (j = 0; j < VALUES; j++) {
			bench_series_add(&series[j], a[j], b[j]);
			bench_series_again(&series[j], again[j]);
		}
	}
	for (j = 0; j < VALUES; j++)
		bench_series_result(&series[j], values[j].what, "ns", values[j].limit);
	bench_series_result(&floor, "getppid, beside an allow-all filter", "ns", 1.05);
	bench_series_result(&starts, "64 starts, beside posix_spawn", "us", 3);
	pvas_space_destroy(space);
	return 0;
}
