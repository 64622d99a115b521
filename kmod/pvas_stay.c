// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exec of a task that stays one: the new program takes over the partition.
 *
 * The new program gets a struct pvas_partition and a member of its own, as if it had been
 * armed for the same index. They take the place of those of the old program when the exec has
 * replaced the mm, see pvas_task_on_new_mm(). The old program then ends as any task does: other
 * tasks see it ending, its memory is freed by the same work item, and only then the exec goes on.
 * The index is never free in between.
 *
 * A program that can't be a task, or that has PVAS_EXEC=leave in its environment, leaves the
 * space: the other formats run it. All reasons are found before the point of no return.
 */
#include <linux/completion.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/unistd.h>

#include "pvas.h"
#include "pvas_member.h"
#include "pvas_stay.h"

#define PVAS_ENV_LEAVE		"PVAS_EXEC=leave"
/* How long the exec waits for vfork children that are still loading their programs. */
#define PVAS_GUESTS_WAIT	HZ
/* And when it can't leave any more, for those that a thread has made meanwhile. */
#define PVAS_LATE_GUESTS_WAIT	(10 * HZ)

/* Only asks what the user wants: so it does not matter that another thread can change it. */
static bool pvas_wants_to_leave(const struct linux_binprm *bprm)
{
	const struct pt_regs *regs = task_pt_regs(current);
	const u64 __user *envp = (const u64 __user *)(regs->orig_ax == __NR_execveat ?
						      regs->r10 : regs->dx);
	char var[sizeof(PVAS_ENV_LEAVE)];
	u64 at;
	int i;

	for (i = 0; i < bprm->envc; i++) {
		if (get_user(at, envp + i) || !at)
			break;
		if (strncpy_from_user(var, u64_to_user_ptr(at), sizeof(var)) == sizeof(var) - 1 &&
		    !strcmp(var, PVAS_ENV_LEAVE))
			return true;
	}
	return false;
}

/**
 * pvas_stay_begin - does the exec of the caller keep it in its space?
 * @bprm:	the exec
 *
 * Vfork children and the creator do not stay.
 *
 * Return: the member that the process would become, which is in no table yet; or NULL.
 */
struct pvas_member *pvas_stay_begin(const struct linux_binprm *bprm)
{
	const struct pvas_partition *old = pvas_task_partition();
	struct pvas_member *m;

	if (!old || READ_ONCE(old->state) != PVAS_PART_RUNNING || old->pid != task_tgid(current))
		return NULL;
	if (in_ia32_syscall() || pvas_wants_to_leave(bprm))
		return NULL;
	m = pvas_member_alloc(old->space);
	if (!m)
		return NULL;
	m->part->index = old->index;
	m->part->base = old->base;
	m->part->end = old->end;
	return m;
}

/* A vfork child is a member until its own program is loaded, a moment after its parent runs. */
static bool pvas_is_alone(const struct pvas_partition *part)
{
	unsigned long end = jiffies + PVAS_GUESTS_WAIT;

	while (READ_ONCE(part->members) > 1)
		if (time_after(jiffies, end) || schedule_timeout_killable(1) < 0 ||
		    fatal_signal_pending(current))
			return false;
	return true;
}

/* Its monitor may be one of the threads that the exec ends: then nobody would answer. */
static bool pvas_is_monitored(const struct pvas_partition *part)
{
	struct vm_area_struct *vma;
	VMA_ITERATOR(vmi, current->mm, part->base);
	bool found = false;

	if (mmap_read_lock_killable(current->mm))
		return true;
	for_each_vma_range(vmi, vma, part->end) {
		found = pvas_uffd_waits(vma);
		if (found)
			break;
	}
	mmap_read_unlock(current->mm);
	return found;
}

/* Before the point of no return, in addition to the checks of a program that enters. */
bool pvas_stay_may(struct pvas_member *m)
{
	struct pvas_partition *old = pvas_task_partition();

	WRITE_ONCE(old->successor, m);
	return pvas_caps_last() && pvas_is_alone(old) &&
	       !pvas_is_monitored(old);
}

/* The caller's, also in an exec that has an mm of its own by now. */
static struct pvas_partition *pvas_old_partition(void)
{
	struct pvas_partition *part = NULL;
	struct pvas_member *m;

	rcu_read_lock();
	m = pvas_member_find(current->signal);
	/* Valid without a reference: nobody else ends the caller's membership. */
	if (m)
		part = m->part;
	rcu_read_unlock();
	return part;
}

/**
 * pvas_stay_end - the exec is over
 * @m:		from pvas_stay_begin(). It is in the tables if it has replaced the old member, and
 *		otherwise freed: the exec has failed early, or leaves the space
 */
void pvas_stay_end(struct pvas_member *m)
{
	struct pvas_member *old = m->previous;
	struct pvas_partition *part;

	if (old) {
		m->previous = NULL;
		/* If the exec has failed, its exit waits for the partition, as any exit does. */
		pvas_member_wait_later(old, TWA_RESUME);
		return;
	}
	part = pvas_old_partition();
	if (part)
		WRITE_ONCE(part->successor, NULL);
	pvas_member_free(m);
}

/*
 * Waits for the end of the old program. A clone() that had begun before @successor was set may
 * have made a child that shares its memory. If it does not end soon, the caller is killed, and
 * the partition ends with the child. Otherwise there is no limit, unless the caller is killed.
 */
static int pvas_wait_for_old(struct pvas_partition *old)
{
	long left = wait_for_completion_killable_timeout(&old->reclaimed, PVAS_LATE_GUESTS_WAIT);

	if (!left && !READ_ONCE(old->members))
		left = wait_for_completion_killable(&old->reclaimed) ?: 1;
	if (left <= 0)
		return -EINTR;
	return old->unclean ? -ENOMEM : 0;
}

/**
 * pvas_stay_enter - past the point of no return: make the caller the task @m
 * @m:		from pvas_stay_begin()
 * @exe:	the program: the partition takes over the reference and the denial of writing,
 *		unless this returns -ESRCH
 *
 * Return: 0, -ESRCH if the space has ended, -EINTR if the caller is killed or another process
 * keeps the memory of the old program, -ENOMEM if that can't be unmapped.
 */
int pvas_stay_enter(struct pvas_member *m, struct file *exe)
{
	if (!m->previous)
		return -ESRCH;
	raw_spin_lock(&pvas_members_lock);
	m->part->exe = exe;
	raw_spin_unlock(&pvas_members_lock);
	return pvas_wait_for_old(m->previous->part);
}
