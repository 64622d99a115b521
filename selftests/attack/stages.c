// SPDX-License-Identifier: GPL-2.0-only
/*
 * stages - kill -9 at every moment of a job's life
 *
 *	stages [-r rounds] [-s seed]
 *
 * A job makes a space, starts tasks in it, waits for them and ends the space.
 * How long that takes undisturbed is measured first; then, in each round, the
 * launcher or all its processes are killed after a random part of that time.
 * The kinds of jobs differ in where they spend it: in CREATE, in SPAWN and exec,
 * in an exec out of the space, in exits with much memory to give back.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pvas.h>

#include "left.h"

static const struct kind {
	const char *name;
	int tasks;
	const char *argv[8];
} kinds[] = {
	{ "create", 0, { NULL } },
	{ "spawn", 4, { "/bin/true" } },
	{ "exec out", 2, { "/bin/sh", "-c", "exec /bin/true" } },
	{ "children", 2, { "/bin/sh", "-c", "/bin/true | /bin/true" } },
	{ "memory", 2, { "/usr/bin/perl", "-e", "my $x = 'x' x 30_000_000" } },
};

#define N_KINDS (int)(sizeof(kinds) / sizeof(kinds[0]))

static int run_job(const struct kind *kind)
{
	struct pvas_space *space;
	char *none[] = { NULL };
	pid_t pids[4];
	int i, n = 0;

	if (pvas_space_create(&space, NULL))
		return 1;
	for (i = 0; i < kind->tasks; i++)
		if (pvas_task_spawn(space, PVAS_ANY, kind->argv[0], (char *const *)kind->argv, none,
				    NULL, &pids[n]) > 0)
			n++;
	for (i = 0; i < n; i++)
		waitpid(pids[i], NULL, 0);
	return pvas_space_destroy(space) || n < kind->tasks;
}

static pid_t start_job(const struct kind *kind)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	setpgid(0, 0);
	_exit(run_job(kind));
}

/* Seconds that an undisturbed job takes; negative if it fails. */
static double measure(const struct kind *kind)
{
	double start = now(), took = 0;
	int i, st;

	for (i = 0; i < 3; i++) {
		pid_t pid = start_job(kind);

		if (waitpid(pid, &st, 0) != pid || st)
			return -1;
	}
	took = (now() - start) / 3;
	return took;
}

static int attack(const struct kind *kind, int rounds, unsigned long long *state)
{
	double took = measure(kind);
	int i, killed = 0;

	if (took < 0) {
		fprintf(stderr, "stages: %s: the job fails undisturbed\n", kind->name);
		return 1;
	}
	for (i = 0; i < rounds; i++) {
		pid_t pid = start_job(kind);
		int st;

		usleep(took * 1e6 * rnd(state, 1100) / 1000);
		kill(rnd(state, 2) ? pid : -pid, SIGKILL);
		waitpid(pid, &st, 0);
		killed += WIFSIGNALED(st);
		/* Adopted tasks of a killed launcher end by themselves, in time. */
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	printf("stages: %s: %d rounds, %d killed in time\n", kind->name, rounds, killed);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long long seed = 1, state;
	int c, i, rounds = 50, failed = 0;
	const struct left before = left_before();

	while ((c = getopt(argc, argv, "r:s:")) != -1) {
		if (c == 'r') {
			rounds = atoi(optarg);
		} else if (c == 's') {
			seed = strtoull(optarg, NULL, 0);
		} else {
			fprintf(stderr, "usage: stages [-r rounds] [-s seed]\n");
			return 2;
		}
	}
	if (before.spaces < 0) {
		printf("stages: no /proc/pvas: is the module loaded?\n");
		return 4;
	}
	setlinebuf(stdout);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	state = seed;
	for (i = 0; i < N_KINDS; i++) {
		failed |= attack(&kinds[i], rounds, &state);
		failed |= check_end(&before);
	}
	printf("stages: seed %llu: %s\n", seed, failed ? "FAILED" : "ok");
	return failed;
}
