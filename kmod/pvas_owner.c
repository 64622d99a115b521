// SPDX-License-Identifier: GPL-2.0-only
/*
 * The owner of an mm decides which memory cgroup is charged. The exit of the creator
 * leaves a space's mm without one, and the kernel, which gives it to another task at
 * the owner's exit or exec, can miss a task that enters at that moment. So the mm's owner
 * is looked for on both sides: by the task after it has the mm, and after each exit and
 * exec of a member. task_lock() orders the two: either the search finds the mm in the
 * task, or the task finds no owner.
 *
 * While an owner that has left the mm still searches, the mm has an owner, but none that
 * stays: a task that enters waits for the search, which may have passed it by.
 */
#include <linux/delay.h>
#include <linux/pid.h>
#include <linux/rculist.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include "pvas.h"
#include "pvas_member.h"

/* Makes @tsk the owner if there is none. False if @tsk does not use the mm. Atomic. */
bool pvas_owner_take(struct pvas_space *space, struct task_struct *tsk)
{
	struct mm_struct *mm = space->mm;
	bool uses;

	task_lock(tsk);
	uses = tsk->mm == mm;
	if (uses && !rcu_access_pointer(mm->owner))
		rcu_assign_pointer(mm->owner, tsk);
	task_unlock(tsk);
	return uses;
}

/* Has the mm an owner that uses it? */
static bool pvas_owner_stays(const struct mm_struct *mm)
{
	struct task_struct *owner;
	bool stays;

	rcu_read_lock();
	owner = rcu_dereference(mm->owner);
	stays = owner && READ_ONCE(owner->mm) == mm;
	rcu_read_unlock();
	return stays;
}

/**
 * pvas_owner_join - see to it that the mm that the caller has just got has an owner
 * @space:	the space
 *
 * Return: 0 or -EINTR.
 */
int pvas_owner_join(struct pvas_space *space)
{
	for (;;) {
		pvas_owner_take(space, current);
		/*
		 * Pairs with the lock that the search of mm_update_next_owner() takes after
		 * the owner has changed its mm: an owner that seems to stay finds the caller.
		 */
		smp_mb();
		if (pvas_owner_stays(space->mm))
			return 0;
		if (fatal_signal_pending(current))
			return -EINTR;
		usleep_range(20, 100);
	}
}

/* If the mm has no owner, make one of the members it. Atomic. */
void pvas_owner_find(struct pvas_space *space)
{
	struct task_struct *tsk;
	struct pvas_member *m;

	if (rcu_access_pointer(space->mm->owner))
		return;
	spin_lock(&space->lock);
	rcu_read_lock();
	list_for_each_entry(m, &space->members, list) {
		tsk = pid_task(m->pid, PIDTYPE_TGID);
		if (tsk && pvas_owner_take(space, tsk))
			break;
	}
	rcu_read_unlock();
	spin_unlock(&space->lock);
}
