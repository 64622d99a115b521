// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long does a job take to start and to end?
 *
 * usage: launch NAME N PROGRAM [LAUNCHER [ARGUMENT]...]
 *
 * Runs LAUNCHER ... PROGRAM FILE, or starts PROGRAM FILE N times by posix_spawn. Each
 * of the N programs stores the time of its start in FILE (stamp.h). Prints, for the
 * last of them and for the job's end,
 *	NAME N ms VALUE
 *	NAME-whole N ms VALUE
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

static char file[] = "/tmp/launch.XXXXXX";

static void forget_file(void)
{
	unlink(file);
}

static void spawn_all(const char *program, int n)
{
	char *argv[] = { (char *)program, file, NULL };
	pid_t *pids = calloc(n, sizeof(*pids));
	int i;

	if (!pids)
		bench_die("calloc", -ENOMEM);
	for (i = 0; i < n; i++)
		pids[i] = bench_start(NULL, program, argv, -1);
	for (i = 0; i < n; i++)
		bench_reap(pids[i]);
	free(pids);
}

/* @argv: the launcher's, with room for two more */
static void launch_all(const char *program, char **argv, int argc)
{
	pid_t pid;
	int err;

	argv[argc] = (char *)program;
	argv[argc + 1] = file;
	/* As the programs are: a fork costs more. */
	err = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
	if (err)
		bench_die(argv[0], -err);
	bench_reap(pid);
}

/* Microseconds of bench_us()'s clock; all @n must have stored their time. */
static double last_of(int fd, int n)
{
	double t, last = 0;
	int i;

	for (i = 0; read(fd, &t, sizeof(t)) == sizeof(t); i++)
		if (t > last)
			last = t;
	if (i != n) {
		fprintf(stderr, "launch: %d of %d programs came so far\n", i, n);
		exit(1);
	}
	return 1e6 * last;
}

int main(int argc, char **argv)
{
	char program[PATH_MAX], **command;
	double begin, last, end;
	int n, fd;

	if (argc < 4 || (n = atoi(argv[2])) < 1) {
		fprintf(stderr, "usage: launch NAME N PROGRAM [LAUNCHER [ARGUMENT]...]\n");
		return 2;
	}
	/* Two of argv's first four make room for the program, its file and the end. */
	command = calloc(argc, sizeof(*command));
	fd = mkostemp(file, O_CLOEXEC);
	if (!command || fd < 0)
		bench_die(file, -errno);
	atexit(forget_file);
	memcpy(command, argv + 4, (argc - 4) * sizeof(*command));
	snprintf(program, sizeof(program), "%s", bench_beside(argv[3]));
	begin = bench_us();
	if (argc == 4)
		spawn_all(program, n);
	else
		launch_all(program, command, argc - 4);
	end = bench_us();
	last = last_of(fd, n);
	printf("%s %d ms %.3f\n%s-whole %d ms %.3f\n", argv[1], n, (last - begin) / 1e3, argv[1], n,
	       (end - begin) / 1e3);
	return 0;
}
