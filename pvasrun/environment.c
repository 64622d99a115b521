// SPDX-License-Identifier: GPL-2.0-only
/*
 * The environments of other processes. To read one waits for an execve() of that process that has
 * begun, and this for a file server of its user's; or for the memory that it has put there. So
 * a child reads them, for all, and goes on with the next one in another child if it hangs.
 */
#include "environment.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "clock.h"

#define ANSWER_MS	1000	/* to wait for one answer */

/* The rest of the time for answers that don't come, in this job */
static int64_t patience = 2 * ANSWER_MS;

static bool has_variable(pid_t pid, const char *variable)
{
	char path[32], *line = NULL;
	bool found = false;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	file = fopen(path, "re");
	while (file && !found && getdelim(&line, &size, '\0', file) > 0)
		found = !strcmp(line, variable);
	free(line);
	if (file)
		fclose(file);
	return found;
}

static void __attribute__((noreturn)) answer_in_child(const char *variable, const pid_t *pids,
						      unsigned int nr, int to)
{
	unsigned int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(to, STDIN_FILENO);
	close_range(STDIN_FILENO + 1, ~0U, 0);
	for (i = 0; i < nr; i++) {
		bool has = has_variable(pids[i], variable);

		if (write(STDIN_FILENO, &has, sizeof(has)) != sizeof(has))
			_exit(1);
	}
	_exit(0);
}

/* Returns how many have answered. */
static unsigned int ask_some(const char *variable, const pid_t *pids, unsigned int nr, bool *has)
{
	struct pollfd answer = { .events = POLLIN };
	unsigned int got = 0;
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return 0;
	child = fork();
	if (!child)
		answer_in_child(variable, pids, nr, ends[1]);
	close(ends[1]);
	answer.fd = ends[0];
	while (child > 0 && got < nr && poll(&answer, 1, ANSWER_MS) == 1 &&
	       read(ends[0], &has[got], sizeof(has[got])) == sizeof(has[got]))
		got++;
	close(ends[0]);
	/* job_reap() waits for it. */
	if (child > 0)
		kill(child, SIGKILL);
	return got;
}

void environment_ask(const char *variable, const pid_t *pids, unsigned int nr, bool *has)
{
	unsigned int i = 0;

	while (i < nr) {
		if (patience > 0)
			i += ask_some(variable, pids + i, nr - i, has + i);
		if (i == nr)
			return;
		has[i++] = true;
		patience -= ANSWER_MS;
	}
}
