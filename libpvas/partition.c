// SPDX-License-Identifier: LGPL-2.1-or-later
/* Read the partition table of the caller's own space, with plain loads only. */
#include <errno.h>

#include "private.h"
#include "pvas.h"

_Static_assert((int)PVAS_TASK_FREE == PVAS_PART_FREE &&
	       (int)PVAS_TASK_STARTING == PVAS_PART_ARMED &&
	       (int)PVAS_TASK_RUNNING == PVAS_PART_RUNNING &&
	       (int)PVAS_TASK_ENDING == PVAS_PART_ENDING &&
	       (int)PVAS_TASK_RESERVED == PVAS_PART_RESERVED, "the states are the ABI's");

/*
 * @state is written last on entry and first on leaving. So if state and gen are the
 * same before and after, the members belong together. The number of tries is limited
 * in case a task has overwritten the table; a valid one does not change that often.
 */
void pvas_partition_read(const struct pvas_header *h, uint32_t index, struct pvas_part *part)
{
	const struct pvas_part *p = pvas_header_part(h, index);
	int tries = 1000;

	do {
		part->state = __atomic_load_n(&p->state, __ATOMIC_ACQUIRE);
		part->gen = __atomic_load_n(&p->gen, __ATOMIC_RELAXED);
		part->pid = __atomic_load_n(&p->pid, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while ((__atomic_load_n(&p->state, __ATOMIC_RELAXED) != part->state ||
		  __atomic_load_n(&p->gen, __ATOMIC_RELAXED) != part->gen) && --tries);
}

void pvas_partition_info(const struct pvas_header *h, uint32_t index, struct pvas_task_info *info)
{
	struct pvas_part part;

	pvas_partition_read(h, index, &part);
	info->index = index;
	info->pid = part.pid;
	info->state = part.state;
	info->gen = part.gen;
	info->base = (void *)((uint64_t)index << h->shift);
	info->length = 1UL << h->shift;
}

PVAS_PUBLIC int pvas_task_get(unsigned int index, struct pvas_task_info *info)
{
	struct pvas_self self = pvas_self();

	if (!self.header)
		return -ESRCH;
	if (index >= self.header->entries)
		return -EINVAL;
	pvas_partition_info(self.header, index, info);
	return 0;
}

PVAS_PUBLIC int pvas_partition_get(unsigned int index, void **base, size_t *length)
{
	struct pvas_self self = pvas_self();

	if (!self.header)
		return -ESRCH;
	if (index >= self.header->entries)
		return -EINVAL;
	if (base)
		*base = (void *)((uint64_t)index << self.header->shift);
	if (length)
		*length = 1UL << self.header->shift;
	return 0;
}

PVAS_PUBLIC int pvas_task_find(const void *addr)
{
	struct pvas_self self = pvas_self();
	struct pvas_part part;
	uint64_t index;

	if (!self.header)
		return -ESRCH;
	index = (uint64_t)addr >> self.header->shift;
	if (index < self.header->first || index > self.header->last)
		return -ENOENT;
	pvas_partition_read(self.header, index, &part);
	return part.state == PVAS_PART_RUNNING ? (int)index : -ENOENT;
}
