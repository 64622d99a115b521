// SPDX-License-Identifier: GPL-2.0-only
/* PMI-1: its store, and requests that arrive while one is handled */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../pmi1.h"
#include "unit.h"

static void test_store(void)
{
	struct pmi1_store store = { .room = 10000 };
	char key[32], value[1001];
	unsigned int i, nr = 0;

	memset(value, 'v', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	/* replacing a value takes no more room */
	for (i = 0; i < 1000; i++)
		check(pmi1_store(&store, "key", value));
	check(store.used < 2 * sizeof(value));
	for (i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "key-%u", i);
		nr += pmi1_store(&store, key, value);
	}
	check(nr > 4 && nr < 10 && store.used <= store.room);
	check(pmi1_find(&store, "key-3") && !pmi1_find(&store, "key-999"));
	/* deleting frees room */
	check(pmi1_delete(&store, "key-3") && !pmi1_delete(&store, "key-3"));
	check(pmi1_store(&store, "again", value));
	check_text(pmi1_find(&store, "again"), value, "again");
	pmi1_delete_all(&store);
	check(!store.used && !pmi1_find(&store, "key"));
}

static struct pmi1 pmi;
static int rank_end;		/* rank 1's */
static unsigned int aborts, depth, deepest;

static void ignore(void *arg, unsigned int rank)
{
	(void)arg;
	(void)rank;
}

static void write_text(const char *text)
{
	check(write(rank_end, text, strlen(text)) == (ssize_t)strlen(text));
}

/* As rank_aborted() of mpi.c, which looks at ranks that have exited: read all that is there. */
static void aborted(void *arg, unsigned int rank, int code, const char *text)
{
	(void)arg;
	(void)text;
	check(rank == 1 && code == (int)++aborts);
	deepest = ++depth > deepest ? depth : deepest;
	if (aborts == 1)
		write_text("cmd=abort exitcode=3\ncmd=abort exitcode=4\ncmd=abort exit");
	pmi1_read(&pmi, 0);
	if (aborts == 4)
		write_text("code=5\n");
	depth--;
}

/* A program of another user that the rank has started */
static void write_as_stranger(const char *text)
{
	pid_t pid = fork();

	if (!pid) {
		if (!setresuid(65534, 65534, 65534)) {
			write_text(text);
			send(rank_end, "x", 1, MSG_OOB);
		}
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

/* More of a rank's requests arrive while one of them is handled: each is handled once, in order. */
static void test_nested(void)
{
	struct options opt = { .tasks = 2 };
	struct task tasks[2] = { 0 };
	struct job job = { .tasks = tasks };
	struct loop outer;
	struct mpi_job common = {
		.opt = &opt, .loop = &outer, .tasks = &job,
		.callbacks = { .initialized = ignore, .finalized = ignore, .aborted = aborted },
	};
	unsigned int i;

	check(!loop_open(&outer));
	pmi1_init(&pmi, &common);
	check(!pmi1_open(&pmi));
	for (i = 0; i < 2; i++) {
		check(!pmi1_prepare_rank(&pmi, i));
		rank_end = dup(pmi.child_fd);
		pmi1_rank_started(&pmi);
	}
	check(!pmi1_serve(&pmi));
	write_text("cmd=abort exitcode=1\ncmd=abort exitcode=2\n");
	for (i = 0; i < 10; i++)
		loop_turn(&outer, 0);
	check(aborts == 5 && deepest == 1 && !pmi.ranks[1].used);
	if (!geteuid()) {
		write_as_stranger("cmd=abort exitcode=1\ncmd=ab");
		for (i = 0; i < 10; i++)
			loop_turn(&outer, 0);
		check(aborts == 5 && !pmi.ranks[0].used && !pmi.ranks[1].used);
		check(loop_turn(&outer, 0) == 0);	/* nothing is left there */
		write_text("cmd=abort exitcode=6\n");
		for (i = 0; i < 10; i++)
			loop_turn(&outer, 0);
		check(aborts == 6);
	}
	close(rank_end);
	pmi1_close(&pmi);
	loop_close(&outer);
}

void test_pmi1(void)
{
	test_store();
	test_nested();
}
