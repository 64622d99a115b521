// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/PID/environ is read by a child that nobody waits for: its open() waits for an
 * execve(2) of that process that has begun, and read() for the pages, both perhaps for a file
 * server that doesn't answer.
 *
 * The child sends no signal when it ends, so that it is not taken for one of the job's. It may
 * use only calls of the kernel: pvasrun may have other threads, which held locks.
 */
#include "environment.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

/* The kernel's limit for arguments and environment: three quarters of _STK_LIM */
#define LONGEST		(6UL << 20)

/* A search in a text that comes in pieces */
struct search {
	const char *wanted;
	size_t len;		/* with its '\0' */
	size_t matched;		/* bytes of the variable that is being read; or */
	bool other;		/* it is another one */
};

static bool search_piece(struct search *s, const char *text, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (!s->other && text[i] == s->wanted[s->matched]) {
			if (++s->matched == s->len)
				return true;
			continue;
		}
		s->other = text[i] != '\0';
		s->matched = 0;
	}
	return false;
}

static enum environment search_file(int fd, const char *variable)
{
	struct search search = { .wanted = variable, .len = strlen(variable) + 1 };
	size_t all = 0;
	char text[4096];
	ssize_t n;

	while (all < LONGEST) {
		n = read(fd, text, sizeof(text));
		if (n <= 0)
			break;
		if (search_piece(&search, text, (size_t)n))
			return ENVIRONMENT_HAS;
		all += (size_t)n;
	}
	return ENVIRONMENT_HAS_NOT;
}

static void __attribute__((noreturn)) search_in_child(const char *path, const char *variable,
						      int to)
{
	char answer = ENVIRONMENT_HAS_NOT;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* If it hangs, it holds up no reader of pvasrun's files. */
	dup2(to, STDIN_FILENO);
	close_range(STDIN_FILENO + 1, ~0U, 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		answer = (char)search_file(fd, variable);
	_exit(write(STDIN_FILENO, &answer, 1) != 1);
}

static enum environment ask_child(pid_t pid, const char *variable, int timeout)
{
	struct pollfd ready = { .events = POLLIN };
	char answer = ENVIRONMENT_UNKNOWN, path[32];
	int ends[2];
	pid_t child;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return ENVIRONMENT_UNKNOWN;
	child = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
	if (!child)
		search_in_child(path, variable, ends[1]);
	close(ends[1]);
	ready.fd = ends[0];
	if (child < 0 || poll(&ready, 1, timeout) != 1 || read(ends[0], &answer, 1) != 1)
		answer = ENVIRONMENT_UNKNOWN;
	close(ends[0]);
	if (child > 0) {
		kill(child, SIGKILL);
		/* One that hangs is left to init. One that has answered ends at once. */
		waitpid(child, NULL, __WALL | (answer == ENVIRONMENT_UNKNOWN ? WNOHANG : 0));
	}
	return (enum environment)answer;
}

enum environment environment_has(pid_t pid, const char *variable, int64_t *patience)
{
	const int64_t begin = now_ms();
	enum environment answer;

	if (*patience <= 0)
		return ENVIRONMENT_UNKNOWN;
	answer = ask_child(pid, variable, (int)*patience);
	/* A process that answers at once can be asked any number of times. */
	*patience -= now_ms() - begin > 10 ? now_ms() - begin : 0;
	return answer;
}
