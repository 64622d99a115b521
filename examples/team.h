/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A team: the N members of a job, which share memory and meet at barriers.
 *
 * Members are tasks of one space (started by pvasrun), or, so that both can be
 * compared, plain processes with a shared segment (started by plainrun). Alone,
 * started by neither, a program is a team of one.
 */
#ifndef TEAM_H
#define TEAM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum team_kind { TEAM_ALONE, TEAM_TASKS, TEAM_PLAIN };

/** struct team_seat - a member's entry on the board */
struct team_seat {
	int index;
	pid_t pid;
	void *memory;
};

/** struct team_board - one for each team, in rank 0's memory or at the segment's start */
struct team_board {
	uint32_t arrived;
	uint32_t phase;
	uint32_t left;
	struct team_seat seats[];
};

struct team {
	enum team_kind kind;
	unsigned int rank, size;
	struct team_board *board;
	char *segment;
	size_t share;
};

/**
 * team_init - learn rank and size
 *
 * The first $TEAM_SIZE ranks are members, if that is set: others may watch them.
 *
 * Return: 0 or -errno, after a line on standard error
 */
int team_init(struct team *team);

/**
 * team_join - become a member, with @share bytes of zeroed memory for others to read
 *
 * All members must ask for the same @share. Return: 0 or -errno, after one
 * line on standard error.
 */
int team_join(struct team *team, size_t share);

/** team_memory - the memory of member @rank; NULL after an error and a line about it */
void *team_memory(struct team *team, unsigned int rank);

/** team_barrier - wait until all members have called it */
void team_barrier(struct team *team);

/**
 * team_hold - as team_barrier(), but rank 0 returns first
 *
 * The others wait until rank 0 calls team_release(): so it can measure them at rest.
 */
void team_hold(struct team *team);
void team_release(struct team *team);

/**
 * team_leave - leave the team; rank 0 returns when all others have left
 *
 * A task's memory goes with it, so the board's owner must be the last.
 */
void team_leave(struct team *team);

#endif /* TEAM_H */
