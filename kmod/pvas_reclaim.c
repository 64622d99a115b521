// SPDX-License-Identifier: GPL-2.0-only
/*
 * Giving back the memory of a partition, in a work item on the space's own queue: an
 * exiting task has no mm any more, and a killed one could not take the mmap lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include <linux/delay.h>
#include <linux/hugetlb_inline.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/userfaultfd_k.h>

#include "pvas.h"

#define PVAS_LOCK_TRIES		500
/* Most bytes unmapped per hold of mmap_lock: about 1 ms. */
#define PVAS_SLICE		(16UL << 20)
/* Longer than any slice takes. */
#define PVAS_TURN		HZ

/*
 * Waits until mmap_lock looks free, without queueing for it. Under memory pressure,
 * faulting tasks hold mmap_lock for reading. A queued writer would block the OOM reaper
 * and exiting tasks (acct_collect()); and while a kernel thread uses the mm, the OOM
 * killer assumes that killing its users frees nothing. Without memory pressure, the
 * limit on the tries keeps this from waiting for ever.
 *
 * Returns false if the OOM killer has chosen a task: all of the mm is freed soon.
 */
static bool pvas_wait_for_lock(struct pvas_space *space)
{
	int tries;

	for (tries = 0; tries < PVAS_LOCK_TRIES; tries++) {
		if (!rwsem_is_locked(&space->mm->mmap_lock))
			return true;
		if (pvas_oom_has_victim(space))
			return false;
		usleep_range(100, 2000);
	}
	return true;
}

/*
 * The end of a slice that begins at @from and has at most PVAS_SLICE bytes mapped. It
 * does not cut huge pages: hugetlbfs refuses that, and for transparent ones it is not
 * necessary. An area with a userfaultfd, and all that follows, is one slice: the kernel
 * frees the pages, and then waits for the monitor, perhaps for ever.
 */
static unsigned long pvas_slice_end(struct mm_struct *mm, unsigned long from, unsigned long end)
{
	unsigned long room = PVAS_SLICE, begin, len, to = end;
	struct vm_area_struct *vma;

	mmap_read_lock(mm);
	for (vma = find_vma_intersection(mm, from, end); vma;
	     vma = find_vma_intersection(mm, vma->vm_end, end)) {
		begin = max(vma->vm_start, from);
		if (userfaultfd_armed(vma))
			break;
		/* Areas of neighbours that touch are one: its end can be a living task's. */
		len = min(vma->vm_end, end) - begin;
		if (len > room && !is_vm_hugetlb_page(vma)) {
			to = max(begin, ALIGN_DOWN(begin + room, PMD_SIZE));
			break;
		}
		room -= min(room, len);
	}
	mmap_read_unlock(mm);
	return to;
}

/* The result of unmapping a partition. */
enum pvas_unmapped {
	PVAS_UNMAPPED,		/* nothing is left */
	PVAS_UNMAP_FAILED,	/* mappings are left as long as the mm lives */
	PVAS_UNMAP_NEEDLESS,	/* all of the mm is freed soon */
};

/*
 * In slices, because otherwise the end of a large task would delay the mapping calls of
 * all its peers, and the OOM reaper.
 */
static enum pvas_unmapped pvas_unmap_slices(struct pvas_partition *part)
{
	struct pvas_space *space = part->space;
	unsigned long from = part->base, to;
	bool failed = false;
	int err;

	do {
		to = pvas_slice_end(space->mm, from, part->end);
		err = vm_munmap(from, to - from);
		/* Splitting a mapping allocates memory, unmapping all of it does not. */
		if (err && to < part->end) {
			to = part->end;
			err = vm_munmap(from, to - from);
		}
		if (err)
			pr_warn_ratelimited("space %u: partition %u can't be unmapped: error %d\n",
					    space->id, part->index, err);
		failed |= err;
		from = to;
		WRITE_ONCE(space->slices, space->slices + 1);
		/* Otherwise this takes the lock again before a waiter is awake. */
		if (mmap_lock_is_contended(space->mm))
			usleep_range(100, 200);
	} while (from < part->end && !pvas_oom_has_victim(space));
	if (from < part->end)
		return PVAS_UNMAP_NEEDLESS;
	return failed ? PVAS_UNMAP_FAILED : PVAS_UNMAPPED;
}

/*
 * One partition of a space at a time: when all tasks of a job end together, their work
 * items would keep all CPUs busy polling mmap_lock. One that makes no progress (because
 * a userfaultfd monitor does not answer) is not waited for. Returns false in that case.
 */
static bool pvas_take_turn(struct pvas_space *space)
{
	unsigned int seen;

	do {
		seen = READ_ONCE(space->slices);
		if (!down_timeout(&space->reclaim, PVAS_TURN))
			return true;
	} while (READ_ONCE(space->slices) != seen);
	return false;
}

/* The caller has a reference to the mm. */
static enum pvas_unmapped pvas_unmap_all(struct pvas_partition *part)
{
	struct pvas_space *space = part->space;
	enum pvas_unmapped result;

	if (pvas_oom_has_victim(space) || !pvas_wait_for_lock(space))
		return PVAS_UNMAP_NEEDLESS;
	kthread_use_mm(space->mm);
	pvas_mm_publish(part, PVAS_PART_ENDING);
	pvas_exe_pass_on(part);
	pvas_owner_find(space);
	result = pvas_unmap_slices(part);
	if (result == PVAS_UNMAPPED)
		pvas_mm_publish(part, PVAS_PART_FREE);
	kthread_unuse_mm(space->mm);
	return result;
}

/* Returns false if something is left that the next task in the partition would see. */
static bool pvas_unmap(struct pvas_partition *part)
{
	struct pvas_space *space = part->space;
	bool turn = pvas_take_turn(space);
	enum pvas_unmapped result = PVAS_UNMAP_NEEDLESS;

	if (mmget_not_zero(space->mm)) {
		result = pvas_unmap_all(part);
		if (result == PVAS_UNMAP_NEEDLESS)
			/* Not here: dropping the last reference frees all pages. */
			pvas_mmput(space->mm);
		else
			mmput(space->mm);
	}
	if (turn)
		up(&space->reclaim);
	return result != PVAS_UNMAP_FAILED;
}

/* Removes the partition from its space. @reuse: the index can be taken again. */
static void pvas_partition_free(struct pvas_partition *part, bool reuse)
{
	struct pvas_space *space = part->space;

	spin_lock(&space->lock);
	space->occupied -= part->state != PVAS_PART_ARMED;
	if (reuse)
		part->state = PVAS_PART_FREE;
	else
		set_bit(part->index, space->reserved);
	space->parts[part->index] = NULL;
	space->in_use--;
	spin_unlock(&space->lock);
	/* Not pvas_mmput(): this runs on the space's own queue. */
	if (pvas_space_is_over(space))
		mmput(space->mm);
}

/* @part: ENDING, its last member has left; or ARMED, nothing ever entered. */
static void pvas_reclaim(struct pvas_partition *part)
{
	struct pvas_space *space = part->space;
	bool over, clean = true;

	spin_lock(&space->lock);
	/* With the last partition of a closed space, all of the mm is freed. */
	over = !space->files && space->in_use == 1;
	if (over)
		space->dead = true;
	/* Not while its creator has it. */
	over &= !space->has_creator;
	spin_unlock(&space->lock);
	if (part->state == PVAS_PART_ENDING && !over)
		clean = pvas_unmap(part);
	pvas_exe_drop(part);
	pvas_partition_free(part, clean);
}

static void pvas_reclaim_work(struct work_struct *work)
{
	struct pvas_partition *part = container_of(work, struct pvas_partition, reclaim);

	pvas_reclaim(part);
	complete_all(&part->reclaimed);
	pvas_partition_put(part);
}

/* The last member has left, or the armed process has ended. Atomic. */
void pvas_reclaim_start(struct pvas_partition *part)
{
	kref_get(&part->ref);
	INIT_WORK(&part->reclaim, pvas_reclaim_work);
	/* The space's own queue: one that is blocked there delays no other space. */
	queue_work(part->space->wq, &part->reclaim);
}
