// SPDX-License-Identifier: GPL-2.0-only
/*
 * Spaces of the module, from /proc/pvas, which lists tasks only for users who may see
 * them. kmod/pvas_proc.c has the format; fields that later modules append are ignored.
 */
#include "ps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool take_space(struct ps_space *space, const char *line)
{
	unsigned long long gib, rss, tables, maps;
	char open[16];

	if (sscanf(line, "space %u uid %u partition_gib %llu tasks %u rss_kib %llu pagetables_kib %llu maps %llu %15s",
		   &space->id, &space->uid, &gib, &space->nr_tasks, &rss, &tables, &maps,
		   open) != 8 || !gib)
		return false;
	space->shift = 30 + __builtin_ctzll(gib);
	space->rss_kib = rss;
	space->tables_kib = tables;
	space->maps = maps;
	space->closing = strcmp(open, "open") != 0;
	return true;
}

static bool take_task(struct ps_task *task, const char *line)
{
	return sscanf(line, " task %u pid %d %15s users %*u range %lx-%lx load %lx heap %lx brk %lx",
		      &task->index, &task->pid, task->state, &task->start, &task->end,
		      &task->load, &task->heap, &task->brk) == 8;
}

/* The number in the space's line is read earlier, so the task lines are counted. */
static void add_task(struct ps_space *space, const char *line, uint32_t *nr)
{
	struct ps_task task = { 0 };

	if (!take_task(&task, line))
		return;
	space->tasks = ps_grow(space->tasks, *nr, sizeof(*space->tasks));
	space->tasks[(*nr)++] = task;
	space->nr_tasks = *nr;
	space->detail = true;
}

void ps_kernel_find(struct ps_snapshot *s)
{
	FILE *f = fopen("/proc/pvas", "re");
	struct ps_space space;
	uint32_t nr = 0;
	char line[512];

	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		memset(&space, 0, sizeof(space));
		if (take_space(&space, line)) {
			s->spaces = ps_grow(s->spaces, s->nr, sizeof(*s->spaces));
			s->spaces[s->nr++] = space;
			nr = 0;
		} else if (s->nr) {
			add_task(&s->spaces[s->nr - 1], line, &nr);
		}
	}
	fclose(f);
}
