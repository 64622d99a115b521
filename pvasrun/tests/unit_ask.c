// SPDX-License-Identifier: GPL-2.0-only
/* Children that answer, end without an answer, or never answer */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ask.h"
#include "../clock.h"
#include "unit.h"

static void answer_twice(const void *about)
{
	const int n = *(const int *)about + 1, more = n + 1;

	check(write(STDIN_FILENO, &n, sizeof(n)) == sizeof(n));
	check(write(STDIN_FILENO, &more, sizeof(more)) == sizeof(more));
}

static void say_nothing(const void *about)
{
	(void)about;
}

/* Signals don't end it, but for the one that ends all. */
static void hang(const void *about)
{
	sigset_t all;

	(void)about;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	for (;;)
		pause();
}

static bool has_children(void)
{
	return waitpid(-1, NULL, __WALL | WNOHANG) != -1 || errno != ECHILD;
}

/* How many answers come; *@patience is what is left of it. */
static unsigned int answers(void (*answer)(const void *about), int64_t *patience)
{
	const int about = 41;
	unsigned int n = 0;
	struct ask ask;
	int got;

	check(!ask_begin(&ask, answer, &about));
	while (n < 3 && ask_read(&ask, &got, sizeof(got), patience)) {
		n++;
		check(got == about + (int)n);
	}
	ask_end(&ask);
	check(!has_children());
	return n;
}

void test_ask(void)
{
	const int64_t begin = now_ms();
	int64_t patience = 60000;
	struct ask ask;

	check(answers(answer_twice, &patience) == 2);
	check(answers(say_nothing, &patience) == 0);
	check(now_ms() - begin < 50000);
	check(patience > 0);
	patience = 50;
	check(answers(hang, &patience) == 0);
	check(patience <= 0);
	/* Nothing is left of it: nobody waits even for one that would answer. */
	check(answers(answer_twice, &patience) == 0);

	check(!ask_begin(&ask, say_nothing, NULL));
	errno = 0;
	check(waitpid(ask.child, NULL, WNOHANG) == -1 && errno == ECHILD);
	ask_end(&ask);
}
