// SPDX-License-Identifier: GPL-2.0-only
/* A team: the N members of a job, which share memory and meet at barriers. */
#include "team.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pvas.h"

#define WAIT_MS (5 * 60 * 1000)

static int complain(const char *what, int err, const char *hint)
{
	fprintf(stderr, "%s: %s: %s (%s)\n", program_invocation_short_name, what, strerror(-err),
		hint);
	return err;
}

static int get_number(const char *name, unsigned long max, unsigned int *value)
{
	const char *text = getenv(name);
	unsigned long v;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return -EINVAL;
	v = strtoul(text, &end, 10);
	if (*end || v > max)
		return -EINVAL;
	*value = v;
	return 0;
}

static int get_place(struct team *team, const char *rank, const char *size)
{
	if (get_number(size, INT_MAX, &team->size) || !team->size ||
	    get_number(rank, team->size - 1, &team->rank))
		return complain("rank and size in the environment", -EINVAL,
				"start it with pvasrun or plainrun");
	return 0;
}

static size_t board_size(const struct team *team)
{
	return sizeof(struct team_board) + team->size * sizeof(struct team_seat);
}

static size_t round_up(size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

/*
 * Tasks: each member allocates its own memory. Rank 0 exports the board under a name,
 * which all import; the board has the address of each member's memory.
 */
static int join_tasks(struct team *team)
{
	void *memory, *board;
	int err;

	if (!team->rank) {
		team->board = calloc(1, board_size(team));
		err = team->board ? pvas_name_export("team.board", team->board) : -ENOMEM;
		if (err)
			return complain("the board", err, "is there another team in this space?");
	} else {
		err = pvas_name_import_wait(PVAS_ANY, "team.board", WAIT_MS, &board);
		if (err < 0)
			return complain("the board of rank 0", err, "does rank 0 run?");
		team->board = board;
	}
	memory = calloc(1, team->share);
	if (!memory)
		return complain("memory", -ENOMEM, "make the problem smaller");
	err = pvas_name_export("team.memory", memory);
	if (err)
		return complain("team.memory", err, "join once");
	team->board->seats[team->rank].index = pvas_task_get_index();
	return 0;
}

/* Plain processes: the board and all members' memory lie in one segment. */
static int join_plain(struct team *team)
{
	size_t need = round_up(board_size(team)) + team->size * round_up(team->share);
	unsigned int fd;
	struct stat st;
	void *p;

	if (get_number("PLAIN_SEGMENT", INT_MAX, &fd) || fstat(fd, &st))
		return complain("PLAIN_SEGMENT", -EBADF, "start it with plainrun");
	if ((size_t)st.st_size < need)
		return complain("the shared segment", -ENOSPC, "raise plainrun's --segment");
	p = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return complain("the shared segment", -errno, "is there memory?");
	team->segment = p;
	team->board = p;
	return 0;
}

static int join_alone(struct team *team)
{
	team->board = calloc(1, board_size(team));
	if (team->board)
		team->board->seats[0].memory = calloc(1, team->share);
	if (!team->board || !team->board->seats[0].memory)
		return complain("memory", -ENOMEM, "make the problem smaller");
	return 0;
}

int team_init(struct team *team)
{
	memset(team, 0, sizeof(*team));
	if (pvas_task_get_index() >= 0) {
		team->kind = TEAM_TASKS;
		return get_place(team, "PVAS_RANK",
				 getenv("TEAM_SIZE") ? "TEAM_SIZE" : "PVAS_SIZE");
	}
	if (getenv("PLAIN_SEGMENT")) {
		team->kind = TEAM_PLAIN;
		return get_place(team, "PLAIN_RANK", "PLAIN_SIZE");
	}
	team->kind = TEAM_ALONE;
	team->size = 1;
	return 0;
}

int team_join(struct team *team, size_t share)
{
	int err;

	team->share = share;
	switch (team->kind) {
	case TEAM_TASKS:
		err = join_tasks(team);
		break;
	case TEAM_PLAIN:
		err = join_plain(team);
		break;
	default:
		err = join_alone(team);
	}
	if (err)
		return err;
	team->board->seats[team->rank].pid = getpid();
	team_barrier(team);
	return 0;
}

void *team_memory(struct team *team, unsigned int rank)
{
	void *memory;
	int err;

	if (team->kind == TEAM_ALONE)
		return team->board->seats[0].memory;
	if (team->kind == TEAM_PLAIN)
		return team->segment + round_up(board_size(team)) + rank * round_up(team->share);
	err = pvas_name_import_wait(team->board->seats[rank].index, "team.memory", WAIT_MS,
				    &memory);
	if (err < 0) {
		complain("a neighbour's memory", err, "did it end early?");
		return NULL;
	}
	return memory;
}

/* A private futex is keyed by mm and address: tasks share both. */
static long futex(const struct team *team, uint32_t *word, int op, uint32_t value)
{
	int private = team->kind == TEAM_PLAIN ? 0 : FUTEX_PRIVATE_FLAG;

	return syscall(SYS_futex, word, op | private, value, NULL, NULL, 0);
}

static void await_change(const struct team *team, uint32_t *word, uint32_t from)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == from)
		futex(team, word, FUTEX_WAIT, from);
}

static void next_phase(struct team *team)
{
	struct team_board *b = team->board;

	__atomic_store_n(&b->arrived, 0, __ATOMIC_RELAXED);
	__atomic_add_fetch(&b->phase, 1, __ATOMIC_RELEASE);
	futex(team, &b->phase, FUTEX_WAKE, INT_MAX);
}

void team_barrier(struct team *team)
{
	struct team_board *b = team->board;
	uint32_t phase = __atomic_load_n(&b->phase, __ATOMIC_ACQUIRE);

	if (__atomic_add_fetch(&b->arrived, 1, __ATOMIC_ACQ_REL) == team->size)
		next_phase(team);
	else
		await_change(team, &b->phase, phase);
}

void team_hold(struct team *team)
{
	struct team_board *b = team->board;
	uint32_t phase = __atomic_load_n(&b->phase, __ATOMIC_ACQUIRE), seen;

	seen = __atomic_add_fetch(&b->arrived, 1, __ATOMIC_ACQ_REL);
	if (seen == team->size)
		futex(team, &b->arrived, FUTEX_WAKE, 1);
	if (team->rank)
		return await_change(team, &b->phase, phase);
	while (seen < team->size) {
		await_change(team, &b->arrived, seen);
		seen = __atomic_load_n(&b->arrived, __ATOMIC_ACQUIRE);
	}
}

void team_release(struct team *team)
{
	next_phase(team);
}

void team_leave(struct team *team)
{
	struct team_board *b = team->board;
	uint32_t left;

	if (team->rank) {
		/* After the last addition the board may be gone: only its address is used. */
		if (__atomic_add_fetch(&b->left, 1, __ATOMIC_ACQ_REL) == team->size - 1)
			futex(team, &b->left, FUTEX_WAKE, 1);
		return;
	}
	while ((left = __atomic_load_n(&b->left, __ATOMIC_ACQUIRE)) < team->size - 1)
		await_change(team, &b->left, left);
}
