// SPDX-License-Identifier: GPL-2.0-only
/*
 * The program and the command line that /proc shows. An mm has one of each: a space's
 * describe the first task while it runs, and then another one. (/proc/PID/exe of each
 * task is right all the same, see pvas_on_exe_file(); the command line cannot be.)
 *
 * A partition's program has write access denied from exec to the end of its reclaim.
 */
#include <linux/file.h>
#include <linux/mm.h>

#include "pvas.h"

/* Write access to a file is denied as long as an mm names it. @file may be NULL. Atomic. */
void pvas_exe_swap(struct mm_struct *mm, struct file *file)
{
	struct file *old;

	if (file && pvas_deny_exe(file))
		return;
	old = rcu_dereference_raw(mm->exe_file);
	rcu_assign_pointer(mm->exe_file, file ? get_file(file) : NULL);
	if (old) {
		pvas_allow_exe(old);
		fput(old);
	}
}

void pvas_exe_set_args(struct mm_struct *mm, const struct pvas_partition *part)
{
	spin_lock(&mm->arg_lock);
	mm->arg_start = part->arg_start;
	mm->arg_end = part->arg_end;
	mm->env_start = part->env_start;
	mm->env_end = part->env_end;
	spin_unlock(&mm->arg_lock);
}

/* The reference and the denial of writing become the caller's. Returns NULL if there is none. */
struct file *pvas_exe_take(struct mm_struct *mm)
{
	struct file *exe;

	mmap_write_lock(mm);
	exe = rcu_dereference_raw(mm->exe_file);
	rcu_assign_pointer(mm->exe_file, NULL);
	mmap_write_unlock(mm);
	if (exe && pvas_exe_becomes_ours(exe)) {
		fput(exe);
		return NULL;
	}
	return exe;
}

void pvas_exe_give_back(struct mm_struct *mm, struct file *exe)
{
	if (exe)
		pvas_exe_was_ours(exe);
	mmap_write_lock(mm);
	rcu_assign_pointer(mm->exe_file, exe);
	mmap_write_unlock(mm);
}

/*
 * At the end of a space's mm, which would leave it to others, and late. Returns the file, if any,
 * to put. In a kernel thread.
 */
struct file *pvas_exe_take_last(struct pvas_space *space)
{
	struct file *exe;

	pvas_lock_write(space);
	exe = rcu_dereference_raw(space->mm->exe_file);
	rcu_assign_pointer(space->mm->exe_file, NULL);
	mmap_write_unlock(space->mm);
	if (exe)
		pvas_allow_exe(exe);
	return exe;
}

/* At the end of a partition. Returns the file, if any, to put. Atomic. */
struct file *pvas_exe_release(struct pvas_partition *part)
{
	struct file *exe = pvas_partition_take_exe(part);

	if (exe)
		pvas_allow_write(exe);
	return exe;
}

/* A task has entered: /proc shows it if it shows no other. */
void pvas_exe_show(struct pvas_partition *part, struct file *file)
{
	struct pvas_space *space = part->space;
	bool first;

	spin_lock(&space->lock);
	first = !space->exe_set;
	space->exe_set = true;
	spin_unlock(&space->lock);
	if (!first)
		return;
	/* fork copies the exe_file under this lock. If this fails, the task is being killed. */
	if (mmap_write_lock_killable(space->mm)) {
		spin_lock(&space->lock);
		space->exe_set = false;
		spin_unlock(&space->lock);
		return;
	}
	pvas_exe_swap(space->mm, file);
	mmap_write_unlock(space->mm);
	pvas_exe_set_args(space->mm, part);
}

/* A running task that /proc can show, with a reference, or NULL. */
static struct pvas_partition *pvas_exe_choose(struct pvas_space *space)
{
	struct pvas_partition *part = NULL;
	u32 i;

	spin_lock(&space->lock);
	for (i = space->first; !part && i <= space->last; i++) {
		part = space->parts[i];
		/* Written last: before, the exec is not done with the others. */
		if (part && part->state == PVAS_PART_RUNNING &&
		    smp_load_acquire(&part->env_end))
			kref_get(&part->ref);
		else
			part = NULL;
	}
	space->exe_set = part;
	spin_unlock(&space->lock);
	return part;
}

/*
 * Shows @part, whose reference it consumes, or none. Returns false if that has ended meanwhile:
 * its own pvas_exe_pass_on() has perhaps seen that it was not shown yet.
 */
static bool pvas_exe_pass_to(struct pvas_space *space, struct pvas_partition *part)
{
	struct file *exe = part ? pvas_partition_exe(part) : NULL;
	bool runs;

	pvas_lock_write(space);
	pvas_exe_swap(space->mm, exe);
	mmap_write_unlock(space->mm);
	/* The caller is a kernel thread. */
	if (exe)
		__fput_sync(exe);
	if (!part)
		return true;
	pvas_exe_set_args(space->mm, part);
	spin_lock(&space->lock);
	runs = part->state == PVAS_PART_RUNNING;
	spin_unlock(&space->lock);
	pvas_partition_put(part);
	return runs;
}

/* If /proc shows the task of this partition, show another one, or none. */
void pvas_exe_pass_on(struct pvas_partition *gone)
{
	if (pvas_mm_foreign(gone, READ_ONCE(gone->space->mm->arg_start), 0))
		return;
	while (!pvas_exe_pass_to(gone->space, pvas_exe_choose(gone->space)))
		;
}
