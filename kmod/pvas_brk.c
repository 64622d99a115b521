// SPDX-License-Identifier: GPL-2.0-only
/* brk(2) of a task: each partition has a heap of its own. */
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/sched/signal.h>

#include "pvas.h"

static bool pvas_over_data_limit(const struct pvas_partition *part, unsigned long brk)
{
	unsigned long limit = rlimit(RLIMIT_DATA);

	return limit != RLIM_INFINITY && brk - part->layout.heap > limit;
}

static bool pvas_move_brk(struct pvas_partition *part, unsigned long brk)
{
	unsigned long old = PAGE_ALIGN(part->brk);
	unsigned long new = PAGE_ALIGN(brk);

	if (new < old)
		return !vm_munmap(new, old - new);
	if (new > old) {
		/* NOREPLACE: the heap cannot grow over a mapping, as with the kernel's own brk. */
		unsigned long at = vm_mmap(NULL, old, new - old, PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, 0);
		return at == old;
	}
	return true;
}

/**
 * pvas_mm_brk - brk(2) inside a partition
 * @part:	the caller's partition
 * @brk:	the new break
 *
 * Return: as the system call: the new break, or the old one if that is not possible.
 */
long pvas_mm_brk(struct pvas_partition *part, unsigned long brk)
{
	long ret;

	if (mutex_lock_killable(&part->brk_lock))
		return -EINTR;
	if (brk >= part->layout.heap && brk < part->layout.mmap_top &&
	    !pvas_over_data_limit(part, brk) && pvas_move_brk(part, brk))
		WRITE_ONCE(part->brk, brk);
	ret = part->brk;
	mutex_unlock(&part->brk_lock);
	return ret;
}
