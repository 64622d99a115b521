// SPDX-License-Identifier: LGPL-2.1-or-later
/* What launcher and task can both ask: the geometry, and who is there. */
#include <errno.h>

#include "backend.h"

PVAS_PUBLIC uint32_t pvas_space_get_id(const struct pvas_space *space)
{
	struct pvas_me me;

	if (space)
		return space->id;
	me = pvas_me();
	return me.header ? me.header->id : 0;
}

PVAS_PUBLIC int pvas_space_get_bounds(const struct pvas_space *space, unsigned int *first,
			       unsigned int *last, uint64_t *partition_size)
{
	struct pvas_me me = { NULL, 0, 0 };

	if (!space) {
		me = pvas_me();
		if (!me.header)
			return -ESRCH;
	}
	if (first)
		*first = space ? space->first : me.header->first;
	if (last)
		*last = space ? space->last : me.header->last;
	if (partition_size)
		*partition_size = 1ULL << (space ? space->shift : me.header->shift);
	return 0;
}

/* From the inside: the table. */
static int tasks_here(struct pvas_task_info *tasks, size_t room)
{
	struct pvas_me me = pvas_me();
	struct pvas_task_info info;
	size_t count = 0;
	uint32_t i;

	if (!me.header)
		return -ESRCH;
	for (i = me.header->first; i <= me.header->last && i < me.header->entries; i++) {
		pvas_part_info(me.header, i, &info);
		if (info.state == PVAS_TASK_FREE || info.state == PVAS_TASK_RESERVED)
			continue;
		if (count < room)
			tasks[count] = info;
		count++;
	}
	return (int)count;
}

PVAS_PUBLIC int pvas_task_list(const struct pvas_space *space, struct pvas_task_info *tasks,
			       size_t room)
{
	pvas_clear_error();
	return space ? space->ops->tasks(space, tasks, room) : tasks_here(tasks, room);
}
