// SPDX-License-Identifier: GPL-2.0-only
/*
 * The children of a process in a space. One that shares the mm (vfork, posix_spawn) is a
 * guest: a member, too, of its parent's partition. One with a copy of the mm is an
 * ordinary process, whose copy is reduced to its parent's partition.
 */
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "pvas.h"
#include "pvas_member.h"

struct pvas_trim {
	struct callback_head work;
	struct pvas_partition *part;
};

/* The child itself has changed no file of others, so it has nothing to write back. */
static void pvas_trim_range(unsigned long from, unsigned long end)
{
	pvas_unmap_remote(NULL, current->mm, from, end, true);
	vm_munmap(from, end - from);
}

/* Unmaps all task partitions but @own. Reserved ones hold the vdso. */
static void pvas_trim(const struct pvas_space *space, u32 own)
{
	unsigned int from, to, end = space->last + 1;

	for (from = space->first; from < end; from = to + 1) {
		from = find_next_zero_bit(space->reserved, end, from);
		to = find_next_bit(space->reserved, end, from);
		if (from <= own && own < to)
			to = own;
		if (from < to)
			pvas_trim_range((unsigned long)from << space->shift,
					(unsigned long)to << space->shift);
	}
}

static void pvas_trim_work(struct callback_head *work)
{
	struct pvas_trim *trim = container_of(work, struct pvas_trim, work);
	struct pvas_partition *part = trim->part;

	if (current->mm)
		pvas_trim(part->space, part->index);
	kfree(trim);
	/*
	 * pvas_exit() waits with synchronize_rcu_tasks() until we have returned, which must
	 * not sleep from here on.
	 */
	pvas_partition_put(part);
}

/*
 * The child has a copy of the mm: give it its parent's brk, program and command line
 * instead of the first task's. The other partitions are mapped, but their pages were
 * not copied (see pvas_on_copy()); they are unmapped before the child runs in user
 * mode. Atomic; nothing else uses the child's mm yet.
 */
static void pvas_fix_copy(struct pvas_partition *part, struct task_struct *child)
{
	struct pvas_trim *trim;

	child->mm->start_brk = part->layout.heap;
	child->mm->brk = part->brk;
	child->mm->start_stack = part->layout.stack;
	pvas_exe_set_args(child->mm, part);
	if (part->exe)
		pvas_exe_swap(child->mm, part->exe);

	trim = kmalloc(sizeof(*trim), GFP_ATOMIC);
	if (!trim) {
		/* It must not run with mappings of others, from which pages are missing. */
		send_sig(SIGKILL, child, 1);
		return;
	}
	kref_get(&part->ref);
	trim->part = part;
	init_task_work(&trim->work, pvas_trim_work);
	if (task_work_add(child, &trim->work, TWA_RESUME)) {
		pvas_partition_put(part);
		kfree(trim);
	}
}

static void pvas_add_guest(struct pvas_partition *part, struct task_struct *child)
{
	struct pvas_space *space = part->space;
	struct pvas_member *m = kzalloc(sizeof(*m), GFP_ATOMIC);
	bool killed;

	if (!m) {
		/* If it ran without being counted, its partition could be freed under it. */
		send_sig(SIGKILL, child, 1);
		return;
	}
	kref_get(&part->ref);
	pvas_member_init(m, part, child);

	spin_lock(&space->lock);
	WRITE_ONCE(part->members, part->members + 1);
	list_add_tail(&m->list, &space->members);
	pvas_presence_set(m, PVAS_JOINED);
	/* pvas_space_kill() may have run before the child was on the list. */
	killed = space->killed;
	raw_spin_lock(&pvas_members_lock);
	pvas_member_hash(m);
	raw_spin_unlock(&pvas_members_lock);
	spin_unlock(&space->lock);
	if (killed)
		send_sig(SIGKILL, child, 1);
}

/* Tracepoint sched_process_fork: the child exists and has not run yet. */
void pvas_task_on_fork(struct task_struct *parent, struct task_struct *child)
{
	struct pvas_partition *part;
	struct pvas_member *m;

	if (!pvas_mm_may_be_space(parent->mm))
		return;
	rcu_read_lock();
	m = pvas_member_find(parent->signal);
	rcu_read_unlock();
	/* The parent is current, so its membership and its partition stay. */
	if (!m)
		return;
	if (child->signal == parent->signal) {
		raw_spin_lock(&pvas_members_lock);
		m->threads++;
		raw_spin_unlock(&pvas_members_lock);
		return;
	}
	part = m->part;
	if (child->mm == part->space->mm)
		pvas_add_guest(part, child);
	else if (child->mm)
		pvas_fix_copy(part, child);
}
