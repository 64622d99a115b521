// SPDX-License-Identifier: GPL-2.0-only
/*
 * storm - random jobs, killed at random moments
 *
 *	storm [-t seconds] [-s seed] [-j jobs at once] [-v]
 *
 * Each job is a launcher process that makes a space and starts tasks of
 * several kinds in it (short ones, forking ones, threaded ones, ones that exec
 * out, ones that crash). At a random moment some of its tasks, or the launcher
 * itself, get SIGKILL. In the end nothing may be left: no process, no space.
 * The same seed makes the same jobs, though not the same timing.
 *
 * Exit status: 0, or 1 with a line for what was left or went wrong.
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

#define MAX_TASKS 12
#define MAX_JOBS 64

static const char *const kinds[][6] = {
	{ "/bin/true" },
	{ "/bin/sleep", "0.05" },
	{ "/bin/sleep", "0.5" },
	{ "/bin/sh", "-c", "for i in 1 2 3; do /bin/true; done" },
	{ "/bin/sh", "-c", "(sleep 0.01; echo x | cat >/dev/null) & wait" },
	{ "/bin/sh", "-c", "exec /bin/sleep 0.02" },
	{ "/bin/sh", "-c", "kill -SEGV $$" },
	{ "/bin/sh", "-c", "ulimit -c 0; kill -ABRT $$" },
	{ "/bin/sh", "-c", "xz -T2 -c /bin/ls >/dev/null" },
	{ "/usr/bin/xz", "-T2", "-l", "/nonexistent" },
	{ "/usr/bin/perl", "-e", "for (1..5) { my $p = fork // last; exit 0 unless $p; wait }" },
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* In the launcher: never returns. */
static void launcher(unsigned long long state)
{
	struct pvas_space *space;
	pid_t pids[MAX_TASKS];
	int n, i, err, started = 0;

	err = pvas_space_create(&space, NULL);
	if (err) {
		fprintf(stderr, "storm: pvas_space_create: %s %s\n", strerror(-err),
			pvas_error_get());
		_exit(3);
	}
	n = 1 + rnd(&state, MAX_TASKS);
	for (i = 0; i < n; i++) {
		const char *const *argv = kinds[rnd(&state, N_KINDS)];
		char *none[] = { "PATH=/usr/bin:/bin", NULL };
		struct pvas_spawn_attr attr = {
			.size = sizeof(attr), .set_fds = 1, .fds = { -1, -1, -1 },
		};

		err = pvas_task_spawn(space, PVAS_ANY, argv[0], (char *const *)argv, none, &attr,
				      &pids[started]);
		if (err < 0)
			fprintf(stderr, "storm: spawn %s: %s %s\n", argv[0], strerror(-err),
				pvas_error_get());
		else
			started++;
	}
	if (rnd(&state, 2))
		usleep(rnd(&state, 20000));
	for (i = 0; i < started; i++)
		if (rnd(&state, 3) == 0)
			kill(pids[i], SIGKILL);
	if (rnd(&state, 4) == 0)
		_exit(0);	/* without waiting: closing the file kills them */
	for (i = 0; i < started; i++)
		waitpid(pids[i], NULL, 0);
	_exit(pvas_space_destroy(space) ? 3 : 0);
}

static pid_t start_job(unsigned long long seed)
{
	pid_t pid = fork();

	if (pid == 0)
		launcher(seed);
	return pid;
}

/*
 * Waits for the end of one of the @n launchers in @jobs, and takes it off the
 * list. Orphans that we adopted are reaped on the way and don't count, or ever
 * more jobs would run. Returns 1 if the launcher found something wrong.
 */
static int end_one(pid_t *jobs, int *n)
{
	for (;;) {
		int st, i;
		pid_t pid = wait(&st);

		if (pid < 0) {
			*n = 0;
			return 0;
		}
		for (i = 0; i < *n && jobs[i] != pid; i++)
			;
		if (i == *n)
			continue;
		jobs[i] = jobs[--*n];
		return WIFEXITED(st) && WEXITSTATUS(st) == 3;
	}
}

int main(int argc, char **argv)
{
	int c, jobs = 4, running = 0, failed = 0, verbose = 0;
	struct left before;
	pid_t pids[MAX_JOBS];
	unsigned long long seed = 1, state, n = 0;
	double seconds = 10, end;

	while ((c = getopt(argc, argv, "t:s:j:v")) != -1) {
		switch (c) {
		case 't':
			seconds = atof(optarg);
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'j':
			jobs = atoi(optarg);
			if (jobs < 1 || jobs > MAX_JOBS) {
				fprintf(stderr, "storm: -j %s: not from 1 to %d\n", optarg,
					MAX_JOBS);
				return 2;
			}
			break;
		case 'v':
			verbose = 1;
			break;
		default:
			fprintf(stderr, "usage: storm [-t seconds] [-s seed] [-j jobs] [-v]\n");
			return 2;
		}
	}
	before = left_before();
	if (before.spaces < 0) {
		printf("storm: no /proc/pvas: is the module loaded?\n");
		return 4;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	state = seed;
	end = now() + seconds;
	while (now() < end) {
		unsigned long long job_seed = seed * 1000003 + n;
		pid_t pid;

		if (running >= jobs) {
			failed |= end_one(pids, &running);
			continue;
		}
		pid = start_job(job_seed);
		if (pid < 0) {
			usleep(1000);
			continue;
		}
		n++;
		pids[running++] = pid;
		if (rnd(&state, 3) == 0) {
			usleep(rnd(&state, 30000));
			kill(pid, SIGKILL);
		}
		if (verbose && n % 100 == 0)
			fprintf(stderr, "storm: %llu jobs\n", n);
	}
	failed |= check_end(&before);
	printf("storm: %llu jobs, seed %llu: %s\n", n, seed, failed ? "FAILED" : "ok");
	return failed;
}
