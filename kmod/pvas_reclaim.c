// SPDX-License-Identifier: GPL-2.0-only
/*
 * Giving back the memory of a partition, in a work item on the space's own queue: an
 * exiting task has no mm any more, and a killed one could not take the mmap lock.
 *
 * First all memory, then what can wait for the user for ever: the ends of slow areas, and
 * the last references to files.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/hugetlb_inline.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/wait.h>

#include "pvas.h"
#include "pvas_member.h"

/*
 * Most unmapped per hold of mmap_lock, about 1 ms: page tables and huge pages, and areas.
 * Not bytes: a mapping of terabytes that nobody has touched would keep a worker busy for
 * seconds, on nobody's account.
 */
#define PVAS_SLICE_TABLES	((16UL << 20) / PMD_SIZE)
#define PVAS_SLICE_AREAS	1000
/* Longer than an exit takes that nobody holds up. */
#define PVAS_QUIET_MAX		(5 * HZ)
/* Longer than any slice takes. */
#define PVAS_TURN		HZ

/* Frees the pages of slow areas, which stay until the late work. Returns if there are any. */
static bool pvas_zap_slow(struct pvas_space *space, unsigned long from, unsigned long end)
{
	struct vm_area_struct *vma;
	VMA_ITERATOR(vmi, space->mm, from);
	bool any = false;

	pvas_lock_read(space);
	for_each_vma_range(vmi, vma, end) {
		if (!pvas_area_is_slow(vma))
			continue;
		any = true;
		/* Not memory, or memory that is the device's. */
		if (!(vma->vm_flags & (VM_PFNMAP | VM_IO)))
			pvas_zap(vma, vma->vm_start, vma->vm_end);
	}
	mmap_read_unlock(space->mm);
	return any;
}

/*
 * The end of a slice, with all of the range if @whole. Its begin, *@from, is moved
 * behind slow areas, some of which may have become so just now. It does not cut huge
 * pages: hugetlbfs refuses that, and for transparent ones it is not necessary.
 */
static unsigned long pvas_slice_end(struct pvas_space *space, unsigned long *from,
				    unsigned long end, bool whole, bool *skipped)
{
	struct mm_struct *mm = space->mm;
	unsigned int tables = whole ? UINT_MAX : PVAS_SLICE_TABLES;
	unsigned int areas = whole ? UINT_MAX : PVAS_SLICE_AREAS;
	unsigned long begin, stop, to = end;
	struct vm_area_struct *vma;

	pvas_lock_read(space);
	vma = find_vma_intersection(mm, *from, end);
	while (vma && pvas_area_is_slow(vma)) {
		*skipped = true;
		*from = vma->vm_end;
		vma = find_vma_intersection(mm, *from, end);
	}
	for (; vma; vma = find_vma_intersection(mm, vma->vm_end, end)) {
		begin = max(vma->vm_start, *from);
		if (pvas_area_is_slow(vma) || !areas--) {
			to = begin;
			break;
		}
		/* Their tables can be those of other processes, who free them. */
		if (is_vm_hugetlb_page(vma)) {
			tables -= min_t(unsigned long, tables,
					(vma->vm_end - begin) >> PMD_SHIFT);
			continue;
		}
		stop = pvas_present_end(mm, begin, vma->vm_end, &tables);
		if (stop < vma->vm_end) {
			to = max(begin, ALIGN_DOWN(stop, PMD_SIZE));
			break;
		}
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
 * all its peers, and the OOM reaper. With @all, not less after an OOM kill: nobody else
 * frees it.
 */
static enum pvas_unmapped pvas_unmap_slices(struct pvas_space *space, unsigned long from,
					    unsigned long end, bool all, bool *skipped)
{
	unsigned long to;
	bool failed = false;
	int err;

	do {
		to = pvas_slice_end(space, &from, end, false, skipped);
		if (from >= end)
			break;
		err = pvas_munmap(space, from, to - from);
		/* Splitting a mapping allocates memory, unmapping all of it does not. */
		if (err) {
			to = pvas_slice_end(space, &from, end, true, skipped);
			err = pvas_munmap(space, from, to - from);
		}
		/* With all of the mm, it is freed afterwards anyway. */
		if (err && !all)
			pr_warn_ratelimited("space %u: %lx-%lx can't be unmapped: error %d\n",
					    space->id, from, to, err);
		failed |= err;
		from = to;
		WRITE_ONCE(space->slices, space->slices + 1);
		/* Otherwise this takes the lock again before a waiter is awake. */
		if (mmap_lock_is_contended(space->mm))
			usleep_range(100, 200);
	} while (from < end && (all || !pvas_oom_has_victim(space)));
	if (from < end)
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

/*
 * Nothing is left in it. In the table it is not free if the task's next program waits for it:
 * that shows itself when it runs.
 */
static void pvas_partition_emptied(struct pvas_partition *part)
{
	pvas_keys_free(part);
	if (!READ_ONCE(part->next))
		pvas_table_publish(part, PVAS_PART_FREE);
}

/* The caller has a reference to the mm. */
static enum pvas_unmapped pvas_unmap_all(struct pvas_partition *part)
{
	struct pvas_space *space = part->space;
	enum pvas_unmapped result;

	if (pvas_oom_has_victim(space))
		return PVAS_UNMAP_NEEDLESS;
	pvas_table_publish(part, PVAS_PART_ENDING);
	pvas_exe_pass_on(part);
	pvas_owner_find(space);
	pvas_lock_read(space);
	pvas_files_hold(&part->files, space->mm, part->base, part->end);
	mmap_read_unlock(space->mm);
	if (part->files.n)
		pvas_unmap_remote(space, space->mm, part->base, part->end, false);
	part->unfinished = pvas_zap_slow(space, part->base, part->end);
	result = pvas_unmap_slices(space, part->base, part->end, false, &part->unfinished);
	pvas_files_put_memory(&part->files);
	if (result == PVAS_UNMAPPED && !part->unfinished)
		pvas_partition_emptied(part);
	return result;
}

static void pvas_unmap(struct pvas_partition *part)
{
	struct pvas_space *space = part->space;
	bool turn = pvas_take_turn(space);
	enum pvas_unmapped result = PVAS_UNMAP_NEEDLESS;

	if (mmget_not_zero(space->mm)) {
		result = pvas_unmap_all(part);
		/* Not here: dropping the last reference waits for slow areas. */
		pvas_mmput(space);
	}
	if (turn)
		up(&space->reclaim);
	part->unfinished &= result != PVAS_UNMAP_NEEDLESS;
	part->unclean = result == PVAS_UNMAP_FAILED;
}

/*
 * Frees all memory that no process has, and that waits for nobody. The caller has a reference to
 * the mm, and releases @files: those that were mapped, and are not released yet.
 */
void pvas_unmap_space(struct pvas_space *space, struct pvas_files *files)
{
	struct mm_struct *mm = space->mm;
	bool any_slow;

	pvas_lock_read(space);
	pvas_files_hold(files, mm, 0, TASK_SIZE);
	mmap_read_unlock(mm);
	if (files->n)
		pvas_unmap_remote(space, mm, 0, TASK_SIZE, false);
	/* Slow areas stay until the mm is freed. */
	any_slow = pvas_zap_slow(space, 0, TASK_SIZE);
	pvas_unmap_slices(space, 0, TASK_SIZE, true, &any_slow);
	pvas_files_put_memory(files);
}

/*
 * mmput() that leaves no file to others, and no memory behind what can take for ever: after an
 * OOM kill, partitions are not unmapped before. In a kernel thread.
 */
void pvas_mmput_here(struct pvas_space *space)
{
	struct mm_struct *mm = space->mm;
	struct pvas_files files;
	struct file *exe;

	/* Not the last reference: nothing is freed. */
	if (atomic_fetch_add_unless(&mm->mm_users, -1, 1) != 1)
		return;
	pvas_unmap_space(space, &files);
	exe = pvas_exe_take_last(space);
	if (exe && pvas_file_is_local(exe)) {
		__fput_sync(exe);
		exe = NULL;
	}
	if (files.n)
		pvas_unmap_remote(space, mm, 0, TASK_SIZE, true);
	mmput(mm);
	pvas_files_put(&files);
	if (exe)
		__fput_sync(exe);
}

/* Has every task that is ending let go of its memory? */
static bool pvas_is_quiet(struct pvas_space *space)
{
	struct pvas_member *m;
	bool quiet;

	spin_lock(&space->lock);
	quiet = !atomic_read(&space->early);
	list_for_each_entry(m, &space->members, list)
		if (READ_ONCE(m->signal->flags) & SIGNAL_GROUP_EXIT)
			quiet = false;
	spin_unlock(&space->lock);
	return quiet;
}

/*
 * Nobody says that a process is past its exit_mm(), so this has to look. A debugger or the
 * reader of a core dump can hold a process in its exit for ever.
 */
static void pvas_wait_for_quiet(struct pvas_space *space)
{
	unsigned long end = jiffies + PVAS_QUIET_MAX, pause = HZ / 50;

	while (!wait_event_idle_timeout(space->quiet, pvas_is_quiet(space), pause) &&
	       time_before(jiffies, end))
		pause = min(2 * pause, (unsigned long)HZ);
}

/*
 * Unmaps the slow areas. Before, the other tasks that are ending get time to let go of
 * their memory, which they can't do while this holds mmap_lock.
 */
static void pvas_unmap_slow(struct pvas_partition *part)
{
	struct pvas_space *space = part->space;

	pvas_wait_for_quiet(space);
	if (!mmget_not_zero(space->mm))
		return;
	if (part->files.n)
		pvas_unmap_remote(space, space->mm, part->base, part->end, true);
	if (pvas_munmap(space, part->base, part->end - part->base))
		part->unclean = true;
	if (!part->unclean)
		pvas_partition_emptied(part);
	pvas_mmput_here(space);
}

/*
 * Removes the partition from its space. Its index can be taken again if nothing is left in it;
 * or its task's next program has it, which can end first, if it was killed while it waited.
 */
static void pvas_partition_free(struct pvas_partition *part)
{
	struct pvas_space *space = part->space;
	struct pvas_partition **at;

	spin_lock(&space->lock);
	if (part->unclean)
		set_bit(part->index, space->reserved);
	else
		part->state = PVAS_PART_FREE;
	for (at = &space->parts[part->index]; *at != part; at = &(*at)->next)
		;
	*at = part->next;
	/* The task's next program has ended before it ran. */
	if (!space->parts[part->index] && !part->unclean)
		pvas_table_publish(part, PVAS_PART_FREE);
	space->in_use--;
	spin_unlock(&space->lock);
	/* Not pvas_mmput(): this runs on the space's own queue. */
	if (pvas_space_is_over(space))
		pvas_mmput_here(space);
}

/*
 * Does the end of the partition wait for nobody? Then it must not wait behind others', on
 * the queue for what can take for ever.
 */
static bool pvas_ends_soon(struct pvas_partition *part)
{
	return !part->vacates && !part->unfinished && pvas_files_are_local(&part->files) &&
	       (!part->exe || pvas_file_is_local(part->exe));
}

/*
 * The queue for the end of a partition. Those of several tasks that used the same hung server
 * occupy all workers of one queue, which must not be that of tasks that never used it.
 */
static struct workqueue_struct *pvas_finish_queue(struct pvas_partition *part)
{
	struct pvas_space *space = part->space;

	/* Of a space's partitions, only one does. */
	if (part->vacates)
		return space->late_wq;
	return part->unfinished || pvas_files_have_changes(&part->files) ? space->slow_wq :
									   space->late_wq;
}

/*
 * The program of a task that has ended, which nobody can change as long as it is held. If it is
 * memory, that is freed with it.
 */
static void pvas_put_local_exe(struct pvas_partition *part)
{
	struct file *exe = pvas_partition_exe(part), *held = NULL;

	if (!exe)
		return;
	if (pvas_file_is_local(exe))
		held = pvas_exe_release(part);
	if (held)
		__fput_sync(held);
	__fput_sync(exe);
}

static void pvas_partition_end(struct pvas_partition *part)
{
	pvas_partition_free(part);
	complete_all(&part->reclaimed);
}

/* The end of a partition: all that can take for ever. */
static void pvas_finish_work(struct work_struct *work)
{
	struct pvas_partition *part = container_of(work, struct pvas_partition, finish);
	struct file *exe;

	pvas_put_local_exe(part);
	exe = pvas_exe_release(part);
	if (part->vacates)
		pvas_vacate_late(part->space);
	if (part->unfinished)
		pvas_unmap_slow(part);
	pvas_files_put(&part->files);
	if (exe)
		__fput_sync(exe);
	if (!part->ended)
		pvas_partition_end(part);
	pvas_partition_put(part);
}

/* @part: ENDING, its last member has left; or ARMED, nothing ever entered. */
static void pvas_reclaim_work(struct work_struct *work)
{
	struct pvas_partition *part = container_of(work, struct pvas_partition, reclaim);
	struct pvas_space *space = part->space;

	spin_lock(&space->lock);
	/* With the last partition of a closed space, all of the mm is freed. */
	if (!space->files && space->in_use == 1)
		WRITE_ONCE(space->dead, true);
	spin_unlock(&space->lock);
	if (part->state == PVAS_PART_ENDING) {
		pvas_unmap(part);
		pvas_put_local_exe(part);
		/* Now, because the late work may never end. */
		part->vacates = pvas_space_leave(space);
		if (part->vacates)
			pvas_unmap_space(space, &space->left);
		/* The OOM killer waits for that exit, and nobody for the index. */
		if (part->vacates && space->oom)
			complete_all(&part->reclaimed);
	}
	if (!atomic_dec_return(&space->early))
		wake_up_all(&space->quiet);
	if (pvas_ends_soon(part)) {
		pvas_finish_work(&part->finish);
		return;
	}
	/* The task's next program, which has no mm yet, does not wait for the old one's files. */
	if (READ_ONCE(part->next) && !part->unfinished) {
		part->ended = true;
		pvas_partition_end(part);
	}
	queue_work(pvas_finish_queue(part), &part->finish);
}

/*
 * The last member has left, or the armed process has ended; the caller has counted it in
 * space->early. Atomic.
 */
void pvas_reclaim_start(struct pvas_partition *part)
{
	kref_get(&part->ref);
	INIT_WORK(&part->reclaim, pvas_reclaim_work);
	INIT_WORK(&part->finish, pvas_finish_work);
	/* The space's own queue: one that is blocked there delays no other space. */
	queue_work(part->space->wq, &part->reclaim);
}
