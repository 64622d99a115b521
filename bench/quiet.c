// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a command and tells whether the machine was quiet meanwhile.
 *
 * usage: quiet FILE COMMAND [ARGUMENT]...
 *
 * FILE gets one line: a cache line's round trip between two processors in ns (0 if
 * there is one processor only), and
 *	quiet		nothing to say
 *	moved		the round trip was another one after the command than before
 *	disturbed	other processes, or the host, took processor time
 * Exit status: the command's.
 */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "p2p.h"

/* The share of all processors' time that others may take; and the least that is measurable */
#define OTHERS_LIMIT	0.05
#define OTHERS_SECONDS	0.05

/* Seconds of processor time since the machine started: all processes', the host's */
struct times {
	double busy, stolen, own, now;
};

static __attribute__((noreturn)) void fail(const char *what)
{
	fprintf(stderr, "quiet: %s: %s\n", what, strerror(errno));
	exit(125);
}

static struct times look(void)
{
	unsigned long long user, nice, system, idle, iowait, irq, softirq, steal;
	double tick = 1.0 / sysconf(_SC_CLK_TCK);
	FILE *f = fopen("/proc/stat", "re");
	struct times t = { .now = seconds() };
	struct rusage u;

	if (!f || fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system,
			 &idle, &iowait, &irq, &softirq, &steal) != 8)
		fail("/proc/stat");
	fclose(f);
	getrusage(RUSAGE_CHILDREN, &u);
	t.busy = (user + nice + system + irq + softirq) * tick;
	t.stolen = steal * tick;
	t.own = u.ru_utime.tv_sec + u.ru_stime.tv_sec +
		(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
	return t;
}

/* The first two processors that we may use; false if there is but one */
static bool two_processors(const cpu_set_t *all, int cpu[2])
{
	int i, n = 0;

	for (i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, all))
			cpu[n++] = i;
	return n == 2;
}

/* In nanoseconds */
static double distance(const cpu_set_t *all)
{
	uint64_t *line;
	double t;
	pid_t pid;
	int cpu[2];

	if (!two_processors(all, cpu))
		return 0;
	line = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid = line == MAP_FAILED ? -1 : fork();
	if (pid < 0)
		fail("the probe");
	if (stay_on(cpu[!pid]))
		fail("sched_setaffinity");
	t = probe(line, !pid);
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	munmap(line, 4096);
	sched_setaffinity(0, sizeof(*all), all);
	return 1e9 * t;
}

static int run(char **argv)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		fail("fork");
	if (!pid) {
		execvp(argv[0], argv);
		fail(argv[0]);
	}
	while (waitpid(pid, &status, 0) != pid)
		if (errno != EINTR)
			fail("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool disturbed(const struct times *a, const struct times *b)
{
	double others = (b->busy - a->busy) - (b->own - a->own) + (b->stolen - a->stolen);

	return others > OTHERS_SECONDS &&
	       others > OTHERS_LIMIT * (b->now - a->now) * sysconf(_SC_NPROCESSORS_ONLN);
}

static bool moved(double a, double b)
{
	return a >= b * PROBE_LIMIT || b >= a * PROBE_LIMIT;
}

int main(int argc, char **argv)
{
	struct times begin, end;
	double before, after;
	cpu_set_t all;
	int status;
	FILE *f;

	if (argc < 3) {
		fprintf(stderr, "usage: quiet FILE COMMAND [ARGUMENT]...\n");
		return 125;
	}
	if (sched_getaffinity(0, sizeof(all), &all))
		fail("sched_getaffinity");
	before = distance(&all);
	begin = look();
	status = run(argv + 2);
	end = look();
	after = distance(&all);
	f = fopen(argv[1], "we");
	if (!f)
		fail(argv[1]);
	fprintf(f, "%.0f %s\n", before > after ? before : after,
		before > 0 && moved(before, after) ? "moved" :
		disturbed(&begin, &end) ? "disturbed" : "quiet");
	fclose(f);
	return status;
}
