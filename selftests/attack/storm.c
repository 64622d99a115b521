// SPDX-License-Identifier: GPL-2.0
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
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <pvas.h>

#define MAX_TASKS 12

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

static unsigned long long state;

/* Knuth's 64-bit linear congruential generator: the same on every machine. */
static unsigned int rnd(unsigned int below)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 33) % below;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/* In the launcher: never returns. */
static void launcher(unsigned long long seed)
{
	struct pvas_space *space;
	pid_t pids[MAX_TASKS];
	int n, i, err, started = 0;

	state = seed;
	err = pvas_create(&space, NULL);
	if (err) {
		fprintf(stderr, "storm: pvas_create: %s %s\n", strerror(-err), pvas_last_error());
		_exit(3);
	}
	n = 1 + rnd(MAX_TASKS);
	for (i = 0; i < n; i++) {
		const char *const *argv = kinds[rnd(N_KINDS)];
		char *none[] = { "PATH=/usr/bin:/bin", NULL };
		struct pvas_spawn_attr attr = {
			.size = sizeof(attr), .set_fds = 1, .fds = { -1, -1, -1 },
		};

		err = pvas_spawn(space, PVAS_ANY, argv[0], (char *const *)argv, none, &attr,
				 &pids[started]);
		if (err < 0)
			fprintf(stderr, "storm: spawn %s: %s %s\n", argv[0], strerror(-err),
				pvas_last_error());
		else
			started++;
	}
	if (rnd(2))
		usleep(rnd(20000));
	for (i = 0; i < started; i++)
		if (rnd(3) == 0)
			kill(pids[i], SIGKILL);
	if (rnd(4) == 0)
		_exit(0);	/* without waiting: closing the file kills them */
	for (i = 0; i < started; i++)
		waitpid(pids[i], NULL, 0);
	_exit(pvas_destroy(space) ? 3 : 0);
}

static int count_spaces(void)
{
	char line[512];
	FILE *f = fopen("/proc/pvas", "r");
	int n = 0;

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		n += !strncmp(line, "space ", 6);
	fclose(f);
	return n;
}

/* Children of ours, by now orphans of launchers that we adopted. */
static int reap_all(double deadline)
{
	int left;

	do {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		left = waitpid(-1, NULL, WNOHANG) == 0;
		if (!left)
			return 0;
		usleep(10000);
	} while (now() < deadline);
	return 1;
}

static void complain(const char *command)
{
	if (system(command))
		fprintf(stderr, "storm: can't show what is left\n");
}

static int check_end(int spaces_before)
{
	double deadline = now() + 30;
	int spaces;

	if (reap_all(deadline)) {
		fprintf(stderr, "storm: processes are left after 30 s\n");
		complain("ps -eo pid,ppid,stat,wchan:30,args | tail -30 >&2; cat /proc/pvas >&2;"
		       "for p in $(awk '/ task /{print $4}' /proc/pvas); do cat /proc/$p/stack "
		       "/proc/$p/syscall >&2; grep -E '^(Sig|Shd|State)' /proc/$p/status >&2; done");
		return 1;
	}
	do {
		spaces = count_spaces();
		if (spaces <= spaces_before)
			return 0;
		usleep(10000);
	} while (now() < deadline);
	fprintf(stderr, "storm: %d spaces are left after 30 s\n", spaces - spaces_before);
	complain("cat /proc/pvas >&2");
	return 1;
}

static pid_t start_job(unsigned long long seed)
{
	pid_t pid = fork();

	if (pid == 0)
		launcher(seed);
	return pid;
}

int main(int argc, char **argv)
{
	int c, jobs = 4, running = 0, failed = 0, verbose = 0, before;
	unsigned long long seed = 1, n = 0;
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
			break;
		case 'v':
			verbose = 1;
			break;
		default:
			fprintf(stderr, "usage: storm [-t seconds] [-s seed] [-j jobs] [-v]\n");
			return 2;
		}
	}
	before = count_spaces();
	if (before < 0) {
		printf("storm: no /proc/pvas: is the module loaded?\n");
		return 4;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	state = seed;
	end = now() + seconds;
	while (now() < end) {
		unsigned long long job_seed = seed * 1000003 + n;
		pid_t pid;
		int st;

		if (running >= jobs) {
			pid = wait(&st);
			if (pid < 0)
				running = 0;
			else if (WIFEXITED(st) && WEXITSTATUS(st) == 3)
				failed = 1;
			/* Adopted orphans count too: only ever too few run. */
			running -= running > 0;
			continue;
		}
		pid = start_job(job_seed);
		if (pid < 0) {
			usleep(1000);
			continue;
		}
		n++;
		running++;
		if (rnd(3) == 0) {
			usleep(rnd(30000));
			kill(pid, SIGKILL);
		}
		if (verbose && n % 100 == 0)
			fprintf(stderr, "storm: %llu jobs\n", n);
	}
	failed |= check_end(before);
	printf("storm: %llu jobs, seed %llu: %s\n", n, seed, failed ? "FAILED" : "ok");
	return failed;
}
