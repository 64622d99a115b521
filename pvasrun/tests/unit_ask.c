// SPDX-License-Identifier: GPL-2.0-only
/* Children that answer, end without an answer, or never answer */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
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

/* Is there memory at this address? */
static void look_at_memory(const void *about)
{
	unsigned char in_memory;
	const int n = mincore((void *)(uintptr_t)about, 1, &in_memory) ? -errno : 1;

	check(write(STDIN_FILENO, &n, sizeof(n)) == sizeof(n));
}

/* A child keeps no copy of memory that it does not need. */
static void check_unneeded(void)
{
	const size_t length = 1 << 20;
	int64_t patience = 60000;
	struct ask ask;
	void *tasks;
	int i, n;

	tasks = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(tasks != MAP_FAILED);
	memset(tasks, 1, length);
	for (i = 0; i < 2; i++) {
		check(!ask_begin(&ask, look_at_memory, tasks));
		check(ask_read(&ask, &n, sizeof(n), &patience));
		check(n == (i ? -ENOMEM : 1));
		ask_end(&ask);
		ask_without(tasks, length);
	}
	check(*(char *)tasks == 1);
	ask_without(NULL, 0);
	munmap(tasks, length);
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

	check_unneeded();
}
