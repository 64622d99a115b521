// SPDX-License-Identifier: GPL-2.0-only
/* A snapshot of all spaces. */
#include "ps.h"

#include <stdlib.h>
#include <string.h>

static void free_space(struct ps_space *space)
{
	uint32_t i;

	for (i = 0; space->tasks && i < space->nr_tasks; i++)
		free(space->tasks[i].areas);
	free(space->tasks);
}

void ps_snapshot_free(struct ps_snapshot *s)
{
	uint32_t i;

	for (i = 0; i < s->nr; i++)
		free_space(&s->spaces[i]);
	free(s->spaces);
	memset(s, 0, sizeof(*s));
}

static bool has_pid(const struct ps_space *space, pid_t pid)
{
	uint32_t i;

	if (space->launcher == pid)
		return true;
	for (i = 0; space->tasks && i < space->nr_tasks; i++)
		if (space->tasks[i].pid == pid)
			return true;
	return false;
}

static void choose(struct ps_snapshot *s, const struct ps_choice *choice)
{
	uint32_t i, kept = 0;

	for (i = 0; i < s->nr; i++) {
		struct ps_space *space = &s->spaces[i];

		if ((choice->space && space->id != choice->space) ||
		    (choice->pid && !has_pid(space, choice->pid)))
			free_space(space);
		else
			s->spaces[kept++] = *space;
	}
	s->nr = kept;
}

static void measure_by(struct ps_space *space, pid_t pid, bool *late)
{
	space->measured = ps_measure(space, pid);
	*late = ps_reader_late();
}

/*
 * By any process that has the space's memory and has not ended: all show the same. False if
 * the time was used up.
 */
static bool measure(struct ps_space *space)
{
	bool late = false;
	uint32_t i;

	if (space->launcher)
		measure_by(space, space->launcher, &late);
	for (i = 0; !space->measured && i < space->nr_tasks; i++)
		if (space->tasks[i].pid && !strcmp(space->tasks[i].state, "running"))
			measure_by(space, space->tasks[i].pid, &late);
	return space->measured || !late;
}

/* Not if the task has ended: its pid may be in use again. False if the time was used up. */
static bool read_task(const struct ps_space *space, struct ps_task *task)
{
	if (!task->pid || !strcmp(task->state, "ending"))
		return true;
	if (ps_reader_turn(space->uid, PS_FINDING))
		ps_read_task(task);
	return !ps_reader_late();
}

void ps_snapshot_take(struct ps_snapshot *s, const struct ps_choice *choice)
{
	uint32_t i, j;

	memset(s, 0, sizeof(*s));
	ps_reader_begin();
	ps_kernel_find(s);
	ps_user_find(s);
	choose(s, choice);
	for (i = 0; i < s->nr; i++) {
		struct ps_space *space = &s->spaces[i];

		if (!space->detail)
			continue;
		for (j = 0; j < space->nr_tasks; j++)
			s->slow += !read_task(space, &space->tasks[j]);
		if (choice->memory && !measure(space))
			s->slow++;
	}
}

static struct ps_space *same_space(const struct ps_snapshot *s, const struct ps_space *space)
{
	uint32_t i;

	for (i = 0; i < s->nr; i++)
		if (s->spaces[i].id == space->id && s->spaces[i].uid == space->uid &&
		    s->spaces[i].launcher == space->launcher)
			return &s->spaces[i];
	return NULL;
}

void ps_snapshot_reuse(struct ps_snapshot *s, const struct ps_snapshot *old)
{
	uint32_t i, j;

	for (i = 0; i < s->nr; i++) {
		struct ps_space *to = &s->spaces[i], *from = same_space(old, to);

		if (!from || !from->measured || to->measured || !to->detail)
			continue;
		to->header = from->header;
		to->rest = from->rest;
		to->measured = true;
		if (to->user)
			to->maps = from->maps;
		for (j = 0; j < to->nr_tasks; j++) {
			const struct ps_task *task = ps_task_at(from, to->tasks[j].index);

			if (task && task->pid == to->tasks[j].pid)
				to->tasks[j].mem = task->mem;
		}
	}
}
