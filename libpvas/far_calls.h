/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Far memory of a task: the calls that map, unmap and change memory. The user backend makes them
 * for a task, and with the module a task makes them itself: far/task/. Internal to PVAS.
 */
#ifndef PVAS_FAR_CALLS_H
#define PVAS_FAR_CALLS_H

#include "far_ops.h"

/**
 * struct pvas_far_part - a partition with a far part
 * @ops:	the pager
 * @threshold:	mappings of so many bytes are far
 * @row:	the far part's number, to the pager
 * @base:	where the partition begins
 * @end:	and ends
 * @far_start:	where the far part begins
 * @far_end:	and ends
 * @map_local:	map private memory at an address of the partition that is not far. The address,
 *		or -errno
 * @owner:	of @map_local
 * @full:	there is no far memory for a mapping of so many bytes
 */
struct pvas_far_part {
	const struct pvas_far_ops *ops;
	uint64_t threshold;
	unsigned int row;
	uint64_t base, end, far_start, far_end;
	int64_t (*map_local)(void *owner, uint64_t addr, uint64_t len, int prot, int flags);
	void *owner;
	void (*full)(void *owner, uint64_t len);
};

/*
 * The task's system call @nr. Returns whether it is answered, with its result in *@value; if not,
 * it has nothing to do with far memory. One call at a time for each partition.
 */
int pvas_far_call(const struct pvas_far_part *p, int nr, const uint64_t *args, int64_t *value);

#endif
