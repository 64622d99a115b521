// SPDX-License-Identifier: GPL-2.0-only
/* See left.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "left.h"

/* Knuth's 64-bit linear congruential generator: the same on every machine. */
unsigned int rnd(unsigned long long *state, unsigned int below)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*state >> 33) % below;
}

double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

int count_spaces(void)
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

/* Our children: orphans of launchers, adopted by this process. */
static int reap_all(double deadline)
{
	do {
		pid_t pid = waitpid(-1, NULL, WNOHANG);

		if (pid < 0)
			return 0;
		if (pid == 0)
			usleep(10000);
	} while (now() < deadline);
	return 1;
}

static void complain(void)
{
	if (system("{ cat /proc/pvas; ps -eo pid,ppid,stat,wchan:30,args | tail -30;"
		   "for p in $(awk '/ task /{print $4}' /proc/pvas); do cat /proc/$p/stack "
		   "/proc/$p/syscall; grep -E '^(Sig|Shd|State|PPid)' /proc/$p/status; done; } >&2"))
		fprintf(stderr, "left: can't show what is left\n");
}

int check_end(int spaces_before)
{
	double deadline = now() + END_SECONDS;
	int spaces;

	if (reap_all(deadline)) {
		fprintf(stderr, "left: processes are left after %d s\n", END_SECONDS);
		complain();
		return 1;
	}
	do {
		spaces = count_spaces();
		if (spaces <= spaces_before)
			return 0;
		usleep(10000);
	} while (now() < deadline);
	fprintf(stderr, "left: %d spaces are left after %d s\n", spaces - spaces_before, END_SECONDS);
	complain();
	return 1;
}
