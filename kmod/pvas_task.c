// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a process enters a space: SPAWN arms it, and its exec makes it a member. The
 * creator is a member from CREATE on.
 */
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "pvas.h"
#include "pvas_member.h"

static int pvas_pick_index(struct pvas_space *space, u32 *index, bool any)
{
	u32 i = any ? space->first : *index;

	lockdep_assert_held(&space->lock);
	if (!pvas_space_is_open(space))
		return -ENOENT;
	if (!any) {
		if (i < space->first || i > space->last || test_bit(i, space->reserved))
			return -EINVAL;
		return space->parts[i] ? -EBUSY : 0;
	}
	while (i <= space->last && (space->parts[i] || test_bit(i, space->reserved)))
		i++;
	if (i > space->last)
		return -ENOSPC;
	*index = i;
	return 0;
}

static int pvas_arm_locked(struct pvas_space *space, struct pvas_member *m, u32 *index, bool any)
{
	struct pvas_partition *part = m->part;
	int err;

	lockdep_assert_held(&space->lock);
	lockdep_assert_held(&pvas_members_lock);
	if (pvas_armed_find(m->signal))
		return -EALREADY;
	err = pvas_pick_index(space, index, any);
	if (err)
		return err;
	part->index = *index;
	part->gen = ++space->gen;
	part->base = (unsigned long)*index << space->shift;
	part->end = part->base + (1UL << space->shift);
	space->parts[*index] = part;
	space->in_use++;
	list_add_tail(&m->list, &space->members);
	pvas_armed_hash(m);
	return 0;
}

/**
 * pvas_task_arm - let the caller's next exec enter a space
 * @space:	the space; the caller has checked the permission
 * @index:	the partition to take; with @any, receives the one chosen
 * @any:	take the lowest free one
 *
 * Waits for an exec of another thread.
 */
int pvas_task_arm(struct pvas_space *space, u32 *index, bool any)
{
	struct mutex *exec = &current->signal->cred_guard_mutex;
	struct pvas_member *m = pvas_member_alloc(space);
	int err;

	if (!m)
		return -ENOMEM;
	/*
	 * An exec of another thread may have found the process not armed; it must not get its
	 * program's rights and be armed. It ends this thread if it succeeds.
	 */
	err = mutex_lock_interruptible(exec) ? -ERESTARTNOINTR : 0;
	if (!err) {
		spin_lock(&space->lock);
		raw_spin_lock(&pvas_members_lock);
		err = pvas_arm_locked(space, m, index, any);
		raw_spin_unlock(&pvas_members_lock);
		spin_unlock(&space->lock);
		mutex_unlock(exec);
	}
	if (err)
		pvas_member_free(m);
	return err;
}

/**
 * pvas_task_creator_alloc - prepare the creator's membership
 * @space:	not published yet
 *
 * The creator is a member of an empty partition: so nothing that it maps from now on is
 * within its bounds, its vfork children are guests, and it is seen if the OOM killer
 * chooses it.
 *
 * Return: for pvas_task_creator_add(), or NULL.
 */
struct pvas_member *pvas_task_creator_alloc(struct pvas_space *space)
{
	struct pvas_member *m = pvas_member_alloc(space);
	const struct mm_struct *mm = current->mm;
	struct pvas_partition *part;

	if (!m)
		return NULL;
	part = m->part;
	part->state = PVAS_PART_RESERVED;
	/* For the fork children of the creator. */
	part->layout.heap = mm->start_brk;
	part->brk = mm->brk;
	part->layout.stack = mm->start_stack;
	part->arg_start = mm->arg_start;
	part->arg_end = mm->arg_end;
	part->env_start = mm->env_start;
	part->env_end = mm->env_end;
	return m;
}

/*
 * Before the space is published: an entering task must find the creator in it. @exe: the
 * creator's program; the partition takes over the reference.
 */
void pvas_task_creator_add(struct pvas_member *m, struct file *exe)
{
	struct pvas_space *space = m->part->space;

	spin_lock(&space->lock);
	list_add_tail(&m->list, &space->members);
	space->has_creator = true;
	pvas_presence_set(m, PVAS_JOINED);
	raw_spin_lock(&pvas_members_lock);
	m->part->exe = exe;
	pvas_member_hash(m);
	raw_spin_unlock(&pvas_members_lock);
	spin_unlock(&space->lock);
}

/* Undoes pvas_task_creator_add(). Returns the creator's program, with the reference. */
struct file *pvas_task_creator_remove(struct pvas_member *m)
{
	struct pvas_space *space = m->part->space;
	struct file *exe;

	spin_lock(&space->lock);
	list_del(&m->list);
	space->has_creator = false;
	pvas_presence_set(m, PVAS_ABSENT);
	raw_spin_lock(&pvas_members_lock);
	exe = m->part->exe;
	m->part->exe = NULL;
	hash_del_rcu(&m->node);
	raw_spin_unlock(&pvas_members_lock);
	spin_unlock(&space->lock);
	pvas_member_free(m);
	return exe;
}

/*
 * The partition that the caller is armed for, with a reference, or NULL. Another thread
 * may disarm it before exec is past de_thread(): pvas_task_enter() checks again.
 */
struct pvas_partition *pvas_task_armed(void)
{
	struct pvas_partition *part = NULL;
	struct pvas_member *m;

	if (!pvas_is_armed(current->signal))
		return NULL;
	raw_spin_lock(&pvas_members_lock);
	m = pvas_armed_find(current->signal);
	if (m) {
		part = m->part;
		kref_get(&part->ref);
	}
	raw_spin_unlock(&pvas_members_lock);
	return part;
}

/**
 * pvas_task_enter - make the armed caller a member, whose calls are not bounded yet
 * @part:	from pvas_task_armed()
 * @exe:	the program: the partition takes over the reference and the denial of writing
 *
 * Return: false if another thread has disarmed the process in between, or the space has
 * ended.
 */
bool pvas_task_enter(struct pvas_partition *part, struct file *exe)
{
	struct pvas_space *space = part->space;
	struct pvas_member *m;
	bool may;

	spin_lock(&space->lock);
	raw_spin_lock(&pvas_members_lock);
	m = pvas_armed_find(current->signal);
	may = m && m->part == part && !space->dead;
	if (may) {
		hash_del_rcu(&m->armed_node);
		m->threads = 1;
		m->entering = true;
		part->exe = exe;
		pvas_presence_set(m, PVAS_COMING);
		pvas_member_hash(m);
	}
	raw_spin_unlock(&pvas_members_lock);
	spin_unlock(&space->lock);
	return may;
}

/**
 * pvas_task_join - the caller, a member, is about to get the mm
 * @space:	its space
 *
 * Only with this its partition has something to unmap.
 *
 * Return: false if the memory of the space is being freed
 */
bool pvas_task_join(struct pvas_space *space)
{
	struct pvas_member *m;
	bool may;

	spin_lock(&space->lock);
	raw_spin_lock(&pvas_members_lock);
	m = pvas_member_find(current->signal);
	may = !space->vacated && !space->oom;
	if (may) {
		m->part->state = PVAS_PART_RUNNING;
		pvas_presence_set(m, PVAS_JOINED);
	}
	raw_spin_unlock(&pvas_members_lock);
	spin_unlock(&space->lock);
	return may;
}

/* The task is complete: from now on its calls are bounded. */
void pvas_task_entered(void)
{
	struct pvas_member *m;

	raw_spin_lock(&pvas_members_lock);
	m = pvas_member_find(current->signal);
	WRITE_ONCE(m->entering, false);
	raw_spin_unlock(&pvas_members_lock);
}
