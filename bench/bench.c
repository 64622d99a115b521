// SPDX-License-Identifier: GPL-2.0-only
/* Functions that the benchmarks share. */
#include "bench.h"
#include "samples.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "pvas.h"

extern char **environ;

double bench_us(void)
{
	return now_ns() / 1e3;
}

double bench_median(double *v, size_t n)
{
	if (!n)
		return 0;
	samples_sort(v, n);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

long bench_meminfo(const char *field)
{
	size_t len = strlen(field);
	char line[128];
	long kib = -1;
	FILE *f;

	f = fopen("/proc/meminfo", "re");
	if (!f)
		bench_die("/proc/meminfo", -errno);
	while (kib < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, field, len) && line[len] == ':')
			kib = atol(line + len + 1);
	fclose(f);
	if (kib < 0)
		bench_die(field, -ENOENT);
	return kib;
}

void bench_die(const char *what, int err)
{
	const char *why = pvas_error_get();

	fprintf(stderr, "%s: %s: %s%s%s\n", program_invocation_short_name, what, strerror(-err),
		why[0] ? ": " : "", why);
	exit(1);
}

void bench_result(const char *what, const char *unit, size_t runs, double a, double b,
		  double ratio, double limit)
{
	printf("result|%s|%s|%zu|%.4g|%.4g|%.3f|%.2f\n", what, unit, runs, a, b, ratio, limit);
	fflush(stdout);
}

void bench_series_init(struct bench_series *s, size_t room)
{
	s->n = 0;
	s->room = room;
	s->a = calloc(room, sizeof(double));
	s->b = calloc(room, sizeof(double));
	s->again = calloc(room, sizeof(double));
	s->ratio = calloc(room, sizeof(double));
	if (!s->a || !s->b || !s->again || !s->ratio)
		bench_die("samples", -ENOMEM);
}

void bench_series_add(struct bench_series *s, double a, double b)
{
	if (s->n == s->room)
		bench_die("samples", -ENOBUFS);
	s->a[s->n] = a;
	s->b[s->n] = b;
	s->again[s->n] = NAN;
	s->ratio[s->n++] = b / a;
}

void bench_series_again(struct bench_series *s, double again)
{
	s->again[s->n - 1] = again;
}

void bench_series_result(struct bench_series *s, const char *what, const char *unit, double limit)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		printf("sample|%s|%s|%zu|%.6g|%.6g|%.6g\n", what, unit, i + 1, s->a[i], s->b[i],
		       s->again[i]);
	bench_result(what, unit, s->n, bench_median(s->a, s->n), bench_median(s->b, s->n),
		     bench_median(s->ratio, s->n), limit);
	free(s->a);
	free(s->b);
	free(s->again);
	free(s->ratio);
}

const char *bench_beside(const char *name)
{
	static char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	if (len < 0)
		bench_die("/proc/self/exe", -errno);
	path[len] = '\0';
	slash = strrchr(path, '/');
	if (slash + 1 + strlen(name) + 1 > path + sizeof(path))
		bench_die(name, -ENAMETOOLONG);
	strcpy(slash + 1, name);
	return path;
}

static pid_t start_plain(const char *path, char *const argv[], int out)
{
	posix_spawn_file_actions_t fa;
	pid_t pid;
	int err;

	posix_spawn_file_actions_init(&fa);
	if (out >= 0)
		posix_spawn_file_actions_adddup2(&fa, out, 1);
	err = posix_spawn(&pid, path, &fa, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	if (err)
		bench_die(path, -err);
	return pid;
}

pid_t bench_start(struct pvas_space *space, const char *path, char *const argv[], int out)
{
	struct pvas_spawn_attr attr = {
		.size = sizeof(attr), .set_fds = out >= 0, .fds = { -1, out, -1 },
	};
	pid_t pid;
	int ret;

	if (!space)
		return start_plain(path, argv, out);
	ret = pvas_task_spawn(space, PVAS_ANY, path, argv, environ, &attr, &pid);
	if (ret < 0)
		bench_die(path, ret);
	return pid;
}

void bench_reap(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		bench_die("waitpid", -errno);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		bench_die("a child failed", -ECHILD);
}
