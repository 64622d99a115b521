// SPDX-License-Identifier: LGPL-2.1-or-later
/* Queries for launchers and tasks: the bounds of a space, and its tasks. */
#include <errno.h>
#include <pthread.h>

#include "backend.h"

PVAS_PUBLIC uint32_t pvas_space_get_id(const struct pvas_space *space)
{
	struct pvas_self self;

	if (space)
		return space->id;
	self = pvas_self();
	return self.header ? self.header->id : 0;
}

PVAS_PUBLIC int pvas_space_get_bounds(const struct pvas_space *space, unsigned int *first,
			       unsigned int *last, uint64_t *partition_size)
{
	struct pvas_self self = { NULL, 0, 0 };

	if (!space) {
		self = pvas_self();
		if (!self.header)
			return -ESRCH;
	}
	if (first)
		*first = space ? space->first : self.header->first;
	if (last)
		*last = space ? space->last : self.header->last;
	if (partition_size)
		*partition_size = 1ULL << (space ? space->shift : self.header->shift);
	return 0;
}

/* In a task: read the table. */
static int tasks_here(struct pvas_task_info *tasks, size_t room)
{
	struct pvas_self self = pvas_self();
	struct pvas_task_info info;
	size_t count = 0;
	uint32_t i;

	if (!self.header)
		return -ESRCH;
	for (i = self.header->first; i <= self.header->last && i < self.header->entries; i++) {
		pvas_partition_info(self.header, i, &info);
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
	int cancel, ret;

	pvas_clear_error();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	ret = space ? space->ops->tasks(space, tasks, room) : tasks_here(tasks, room);
	pthread_setcancelstate(cancel, NULL);
	return ret;
}
