// SPDX-License-Identifier: GPL-2.0-only
/* Children that answer, end without an answer, or never answer */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../libpvas/tests/hung_server.h"
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

/* ---- a file that can't be closed ---- */

static bool has_mapping(pid_t pid, const void *begin)
{
	char path[32], line[512];
	bool found = false;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "r");
	check(maps != NULL);
	while (fgets(line, sizeof(line), maps))
		found |= strtoul(line, NULL, 16) == (uintptr_t)begin;
	fclose(maps);
	return found;
}

/* A child that hangs in that has given back memory and the end of a pipe before. */
static void hang_in_close(const struct hung_server *server, volatile int *holds_close)
{
	void *tasks = mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const int file = open(server->file, O_RDONLY);
	struct pollfd reader = { .events = POLLIN };
	struct ask ask;
	int ends[2];

	check(file >= 0 && tasks != MAP_FAILED && !pipe(ends));
	ask_without(tasks, 4096);
	*holds_close = 1;
	check(!ask_begin(&ask, say_nothing, NULL));
	close(ends[1]);
	reader.fd = ends[0];
	check(poll(&reader, 1, 20000) == 1);
	while (*holds_close != CLOSE_HANGS)
		usleep(1000);
	check(!has_mapping(ask.child, tasks));
	check(kill(server->pid, SIGKILL) == 0);
	ask_end(&ask);
}

/* In a process of its own, for its mount */
static void check_close(void)
{
	volatile int *holds_close = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct hung_server server;
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(60);
		if (!hung_server_start(&server, holds_close)) {
			hang_in_close(&server, holds_close);
			hung_server_stop(&server);
		}
		fflush(stdout);
		_exit(check_failures() != 0);
	}
	check(waitpid(pid, &status, 0) == pid && !status);
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
	check_close();
}
