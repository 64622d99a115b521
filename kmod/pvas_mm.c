// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory of a partition: its layout, where mmap may place things, the
 * per-task brk, what /proc shows of it, and giving it back.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/file.h>
#include <linux/hugetlb_inline.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pid.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/userfaultfd_k.h>

#include "pvas.h"
#include "pvas_layout.h"

#define PVAS_LOCK_TRIES		500
/* At most so much is unmapped while others wait for the mmap lock: about a millisecond. */
#define PVAS_SLICE		(16UL << 20)
/* No slice takes that long. */
#define PVAS_TURN		HZ


/**
 * pvas_mm_layout - decide where things go in a partition
 * @part:	the partition
 * @image:	what the program needs
 * @stack_limit: RLIMIT_STACK of the exec, in bytes
 * @randomize:	not at the fixed places
 *
 * Sets load, heap, brk, mmap_top, stack and skew. Return: 0, or -ENOMEM if it
 * can't fit.
 */
int pvas_mm_layout(struct pvas_partition *part, const struct pvas_elf_image *image,
		   unsigned long stack_limit, bool randomize)
{
	struct pvas_layout_random random = {};
	struct pvas_layout l;
	int err;

	if (randomize)
		get_random_bytes(&random, sizeof(random));
	err = pvas_layout(&l, part->base, part->end - part->base, image, stack_limit, &random);
	if (err)
		return err;
	part->load = l.load;
	part->heap = l.heap;
	part->brk = l.heap;
	part->mmap_top = l.mmap_top;
	part->stack = l.stack;
	part->skew = l.skew;
	return 0;
}

/* Does [addr, addr + len) reach outside the partition? A range that wraps around does. */
bool pvas_mm_foreign(const struct pvas_partition *part, unsigned long addr, unsigned long len)
{
	return pvas_layout_outside(part->base, part->end, addr, len);
}

/*
 * The kernel is about to search a gap: let it search the partition only. The
 * limits it came with are those of the creator's layout, with one exception:
 * a caller that needs an address below 4 GiB (MAP_32BIT, ia32) would not be
 * helped by one above, and gets an empty range, so -ENOMEM.
 */
void pvas_mm_clamp(const struct pvas_partition *part, struct vm_unmapped_area_info *info)
{
	unsigned long low = PAGE_ALIGN(READ_ONCE(part->brk)) + PAGE_SIZE;
	unsigned long high = part->mmap_top;

	/* Bottom-up would start right above the heap and block its growth. */
	info->flags |= VM_UNMAPPED_AREA_TOPDOWN;
	info->low_limit = low;
	info->high_limit = info->high_limit <= (1UL << 32) || low >= high ? low : high;
}

static bool pvas_over_data_limit(const struct pvas_partition *part, unsigned long brk)
{
	unsigned long limit = rlimit(RLIMIT_DATA);

	return limit != RLIM_INFINITY && brk - part->heap > limit;
}

static bool pvas_move_brk(struct pvas_partition *part, unsigned long brk)
{
	unsigned long old = PAGE_ALIGN(part->brk);
	unsigned long new = PAGE_ALIGN(brk);

	if (new < old)
		return !vm_munmap(new, old - new);
	if (new > old) {
		/* NOREPLACE: a mapping in the way ends the heap, as with the real brk. */
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
 * Return: as the system call: the new break, or the old one if it can't be.
 */
long pvas_mm_brk(struct pvas_partition *part, unsigned long brk)
{
	long ret;

	if (mutex_lock_killable(&part->brk_lock))
		return -EINTR;
	if (brk >= part->heap && brk < part->mmap_top && !pvas_over_data_limit(part, brk) &&
	    pvas_move_brk(part, brk))
		WRITE_ONCE(part->brk, brk);
	ret = part->brk;
	mutex_unlock(&part->brk_lock);
	return ret;
}

/*
 * Write the partition's entry in the table of the space header. The caller
 * runs on the space's mm. A page that tasks have unmapped or protected is
 * their loss: the table is advice for them, the module never reads it.
 */
void pvas_mm_publish(struct pvas_partition *part, u32 state)
{
	struct pvas_space *space = part->space;
	struct pvas_part __user *entry;
	pid_t pid = pid_nr_ns(part->pid, space->pid_ns);

	entry = (struct pvas_part __user *)space->table + part->index;
	if (state != PVAS_PART_RUNNING) {
		if (put_user(state, &entry->state))
			return;
		smp_wmb();	/* readers: state first, then the rest */
		pid = 0;
	}
	if (put_user(part->gen, &entry->gen) || put_user(pid, &entry->pid))
		return;
	if (state == PVAS_PART_RUNNING) {
		smp_wmb();	/* readers that see RUNNING see the rest */
		if (put_user(state, &entry->state))
			return;
	}
}

/*
 * Both files have write access denied as long as an mm names them. @file may be
 * NULL. Atomic.
 */
static void pvas_swap_exe(struct mm_struct *mm, struct file *file)
{
	struct file *old;

	if (file && pvas_deny_write(file))
		return;
	old = rcu_dereference_raw(mm->exe_file);
	rcu_assign_pointer(mm->exe_file, file ? get_file(file) : NULL);
	if (old) {
		pvas_allow_write(old);
		fput(old);
	}
}

static void pvas_set_args(struct mm_struct *mm, const struct pvas_partition *part)
{
	spin_lock(&mm->arg_lock);
	mm->arg_start = part->arg_start;
	mm->arg_end = part->arg_end;
	mm->env_start = part->env_start;
	mm->env_end = part->env_end;
	spin_unlock(&mm->arg_lock);
}

/* The reference moves: write access stays denied. Returns NULL if there is none. */
struct file *pvas_mm_take_exe(struct mm_struct *mm)
{
	struct file *exe;

	mmap_write_lock(mm);
	exe = rcu_dereference_raw(mm->exe_file);
	rcu_assign_pointer(mm->exe_file, NULL);
	mmap_write_unlock(mm);
	return exe;
}

void pvas_mm_give_back_exe(struct mm_struct *mm, struct file *exe)
{
	mmap_write_lock(mm);
	rcu_assign_pointer(mm->exe_file, exe);
	mmap_write_unlock(mm);
}

/* The partition's program goes with it. Atomic. */
void pvas_mm_drop_exe(struct pvas_partition *part)
{
	struct file *exe = pvas_task_take_exe(part);

	if (!exe)
		return;
	pvas_allow_write(exe);
	fput(exe);
}

/*
 * There is one exe link and one command line an mm: the first program's, as
 * long as it runs. (/proc/PID/exe of each task is right all the same, see
 * pvas_hook.c; the command line can't be.)
 */
void pvas_mm_show_program(struct pvas_partition *part, struct file *file)
{
	struct pvas_space *space = part->space;
	bool first;

	spin_lock(&space->lock);
	first = !space->exe_set;
	space->exe_set = true;
	spin_unlock(&space->lock);
	if (!first)
		return;
	/* fork copies the exe_file under this lock. */
	mmap_write_lock(space->mm);
	pvas_swap_exe(space->mm, file);
	mmap_write_unlock(space->mm);
	pvas_set_args(space->mm, part);
}

static struct pvas_partition *pvas_next_to_show(struct pvas_space *space)
{
	struct pvas_partition *part = NULL;
	u32 i;

	spin_lock(&space->lock);
	for (i = space->first; !part && i <= space->last; i++) {
		part = space->parts[i];
		if (part && part->state == PVAS_PART_RUNNING && part->arg_start)
			kref_get(&part->ref);
		else
			part = NULL;
	}
	space->exe_set = part;
	spin_unlock(&space->lock);
	return part;
}

/* The program shown is in the partition that goes: show a living task's, or none. */
static void pvas_pass_on_program(struct pvas_partition *gone)
{
	struct pvas_space *space = gone->space;
	struct pvas_partition *part;
	struct file *exe;

	if (pvas_mm_foreign(gone, READ_ONCE(space->mm->arg_start), 0))
		return;
	part = pvas_next_to_show(space);
	exe = part ? pvas_partition_exe(part) : NULL;
	mmap_write_lock(space->mm);
	pvas_swap_exe(space->mm, exe);
	mmap_write_unlock(space->mm);
	if (exe)
		fput(exe);
	if (part) {
		pvas_set_args(space->mm, part);
		pvas_partition_put(part);
	}
}

/*
 * The owner of an mm is who its memory is charged to: the creator's exit left
 * none. Exit passes it on among the living, but can miss one who just enters.
 */
bool pvas_mm_own(struct pvas_space *space, struct task_struct *tsk)
{
	struct mm_struct *mm = space->mm;
	bool ours;

	task_lock(tsk);
	ours = tsk->mm == mm;
	if (ours && !rcu_access_pointer(mm->owner))
		rcu_assign_pointer(mm->owner, tsk);
	task_unlock(tsk);
	return ours;
}

void pvas_mm_find_owner(struct pvas_space *space)
{
	struct task_struct *tsk;
	struct pvas_member *m;

	if (rcu_access_pointer(space->mm->owner))
		return;
	spin_lock(&space->lock);
	rcu_read_lock();
	list_for_each_entry(m, &space->members, list) {
		tsk = pid_task(m->pid, PIDTYPE_TGID);
		if (tsk && pvas_mm_own(space, tsk))
			break;
	}
	rcu_read_unlock();
	spin_unlock(&space->lock);
}

/*
 * Wait until the mmap lock looks free, without queueing for it. Short of
 * memory, faulting tasks hold it for reading; a writer in the queue then keeps
 * the OOM reaper out and the dying from getting past acct_collect(), and a
 * kernel thread on the mm makes them look like they would not free it. So as
 * long as the OOM killer may be at work, stay away from both. Under plain
 * contention queue up in the end, or we might wait for ever.
 *
 * False: the OOM killer struck. All of the mm goes, nothing is to be done.
 */
static bool pvas_wait_for_lock(struct pvas_space *space)
{
	int tries;

	for (tries = 0; tries < PVAS_LOCK_TRIES; tries++) {
		if (!rwsem_is_locked(&space->mm->mmap_lock))
			return true;
		if (pvas_task_struck_by_oom(space))
			return false;
		usleep_range(100, 2000);
	}
	return true;
}

/*
 * Where to stop so that no more than PVAS_SLICE is unmapped from @from on. Huge
 * pages are not cut, transparent ones need not be, hugetlbfs would not have it.
 * From an area with a userfaultfd monitor on, all goes at once: the kernel frees
 * the pages, and then waits for the monitor, perhaps for ever.
 */
static unsigned long pvas_slice_end(struct mm_struct *mm, unsigned long from, unsigned long end)
{
	unsigned long room = PVAS_SLICE, begin, to = end;
	struct vm_area_struct *vma;

	mmap_read_lock(mm);
	for (vma = find_vma_intersection(mm, from, end); vma;
	     vma = find_vma_intersection(mm, vma->vm_end, end)) {
		begin = max(vma->vm_start, from);
		if (userfaultfd_armed(vma))
			break;
		if (vma->vm_end - begin > room && !is_vm_hugetlb_page(vma)) {
			to = max(begin, ALIGN_DOWN(begin + room, PMD_SIZE));
			break;
		}
		room -= min(room, vma->vm_end - begin);
	}
	mmap_read_unlock(mm);
	return to;
}

/* What became of a partition's memory. */
enum pvas_unmapped {
	PVAS_UNMAPPED,		/* nothing is left of it */
	PVAS_UNMAP_FAILED,	/* something is, for as long as the mm lives */
	PVAS_UNMAP_NEEDLESS,	/* all of the mm goes soon */
};

/*
 * In slices, or a large task's end would hold up all others of the space at their
 * next mmap, and the OOM reaper.
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
		/* To cut a mapping takes memory. To unmap it whole does not. */
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
		/* Or we would have it again before who waits is awake. */
		if (mmap_lock_is_contended(space->mm))
			usleep_range(100, 200);
	} while (from < part->end && !pvas_task_struck_by_oom(space));
	if (from < part->end)
		return PVAS_UNMAP_NEEDLESS;
	return failed ? PVAS_UNMAP_FAILED : PVAS_UNMAPPED;
}

/*
 * When all tasks of a job end at once, one after the other: together they would
 * keep the processors busy with looking whether the mmap lock is free. Who gets no
 * further (by a userfaultfd monitor that doesn't answer) is not waited for.
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

	if (pvas_task_struck_by_oom(space) || !pvas_wait_for_lock(space))
		return PVAS_UNMAP_NEEDLESS;
	kthread_use_mm(space->mm);
	pvas_mm_publish(part, PVAS_PART_ENDING);
	pvas_pass_on_program(part);
	pvas_mm_find_owner(space);
	result = pvas_unmap_slices(part);
	if (result == PVAS_UNMAPPED)
		pvas_mm_publish(part, PVAS_PART_FREE);
	kthread_unuse_mm(space->mm);
	return result;
}

/* False: something is left that the next task there would see. */
static bool pvas_unmap(struct pvas_partition *part)
{
	struct pvas_space *space = part->space;
	bool turn = pvas_take_turn(space);
	enum pvas_unmapped result = PVAS_UNMAP_NEEDLESS;

	if (mmget_not_zero(space->mm)) {
		result = pvas_unmap_all(part);
		if (result == PVAS_UNMAP_NEEDLESS)
			/* Not here: the last one frees all pages. */
			pvas_mmput(space->mm);
		else
			mmput(space->mm);
	}
	if (turn)
		up(&space->reclaim);
	return result != PVAS_UNMAP_FAILED;
}

/**
 * pvas_mm_reclaim - free a partition
 * @part:	ENDING: its last member has left; or ARMED: nobody ever came
 *
 * Work item context: an exiting task has no mm any more, and one that was
 * killed could not take the mmap lock.
 */
void pvas_mm_reclaim(struct pvas_partition *part)
{
	struct pvas_space *space = part->space;
	bool over, clean = true;

	spin_lock(&space->lock);
	/* With the last partition of a closed space the whole mm goes. */
	over = !space->files && space->in_use == 1;
	if (over)
		space->dead = true;
	spin_unlock(&space->lock);
	if (part->state == PVAS_PART_ENDING && !over)
		clean = pvas_unmap(part);
	pvas_mm_drop_exe(part);
	pvas_partition_free(part, clean);
}

struct pvas_trim {
	struct callback_head work;
	struct pvas_partition *part;
};

/* Unmap what lies in task partitions other than @keep; reserved ones hold the vdso. */
static void pvas_trim(const struct pvas_space *space, u32 keep)
{
	unsigned int from, to, end = space->last + 1;

	for (from = space->first; from < end; from = to + 1) {
		from = find_next_zero_bit(space->reserved, end, from);
		to = find_next_bit(space->reserved, end, from);
		if (from <= keep && keep < to)
			to = keep > from ? keep : from;
		if (from < to)
			vm_munmap((unsigned long)from << space->shift,
				  (unsigned long)(to - from) << space->shift);
	}
}

static void pvas_trim_work(struct callback_head *work)
{
	struct pvas_trim *trim = container_of(work, struct pvas_trim, work);

	if (current->mm)
		pvas_trim(trim->part->space, trim->part->index);
	/* pvas_exit() waits with synchronize_rcu_tasks() until we have returned. */
	pvas_partition_put(trim->part);
	kfree(trim);
}

/*
 * A fork child got a copy of the mm, an ordinary process on its own. Its brk,
 * program and command line are its parent's and not the first task's, and the
 * other partitions (mapped, but not copied: see pvas_hook.c) are not its
 * business: they go before it runs. Atomic; nobody else uses the child's mm yet.
 */
void pvas_mm_fix_fork_child(struct pvas_partition *part, struct task_struct *child)
{
	struct pvas_trim *trim;

	child->mm->start_brk = part->heap;
	child->mm->brk = part->brk;
	child->mm->start_stack = part->stack;
	pvas_set_args(child->mm, part);
	if (part->exe)
		pvas_swap_exe(child->mm, part->exe);

	/* Without it the child keeps the list of all mappings, but none of their private pages. */
	trim = kmalloc(sizeof(*trim), GFP_ATOMIC);
	if (!trim)
		return;
	kref_get(&part->ref);
	trim->part = part;
	init_task_work(&trim->work, pvas_trim_work);
	if (task_work_add(child, &trim->work, TWA_RESUME)) {
		pvas_partition_put(part);
		kfree(trim);
	}
}
