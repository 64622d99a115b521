// SPDX-License-Identifier: GPL-2.0-only
/* The environment of another process, read by a child: see ask.h. */
#include "environment.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ask.h"

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

struct question {
	char path[32];
	const char *variable;
};

static void search(const void *about)
{
	const struct question *question = about;
	char answer = ENVIRONMENT_HAS_NOT;
	int fd = open(question->path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		answer = (char)search_file(fd, question->variable);
	if (write(STDIN_FILENO, &answer, 1) != 1)
		return;
}

enum environment environment_has(pid_t pid, const char *variable, int64_t *patience)
{
	struct question question = { .variable = variable };
	char answer = ENVIRONMENT_UNKNOWN;
	struct ask ask;

	snprintf(question.path, sizeof(question.path), "/proc/%d/environ", pid);
	if (*patience <= 0 || ask_begin(&ask, search, &question))
		return ENVIRONMENT_UNKNOWN;
	if (!ask_read(&ask, &answer, 1, patience))
		answer = ENVIRONMENT_UNKNOWN;
	ask_end(&ask);
	return (enum environment)answer;
}
