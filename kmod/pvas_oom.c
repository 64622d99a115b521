// SPDX-License-Identifier: GPL-2.0-only
/*
 * The OOM killer chooses one process and kills all that share its mm: so all tasks of
 * a space. The space then ends at once, and with the last of them all of its memory is
 * freed, or the OOM killer would go on to the next process until the kernel panics.
 *
 * Until then the space keeps its pin of the mm: see pvas_space_vacates(). Otherwise the
 * last task would free the mm in its exit_mm(), where it waits for a file server that
 * does not answer, with the memory of all tasks still to be unmapped.
 */
#include <linux/sched.h>
#include <linux/sched/coredump.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "pvas.h"
#include "pvas_member.h"

/* Closes the space. Under space->lock. */
static void pvas_oom_close(struct pvas_space *space)
{
	WRITE_ONCE(space->dead, true);
	WRITE_ONCE(space->oom, true);
}

/**
 * pvas_oom_has_chosen - has the OOM killer chosen this member?
 * @m:		the member, which is on the list
 *
 * The exit status does not tell: a process that is already exiting gets a mark, but no
 * SIGKILL, if all others with its mm are exiting, too.
 */
static bool pvas_oom_has_chosen(const struct pvas_member *m)
{
	return READ_ONCE(m->signal->oom_mm) == m->part->space->mm;
}

/**
 * pvas_oom_on_leave - a member leaves the list
 * @m:		the member, which has let go of the mm: nobody chooses it any more
 *
 * Under space->lock, so that whoever looks finds the member or the end of its space.
 */
void pvas_oom_on_leave(const struct pvas_member *m)
{
	if (pvas_oom_has_chosen(m))
		pvas_oom_close(m->part->space);
}

/**
 * pvas_oom_has_victim - has the OOM killer chosen one of the tasks?
 * @space:	whose tasks to look at
 *
 * If so, the space ends. Each member on the list holds its signal_struct.
 */
bool pvas_oom_has_victim(struct pvas_space *space)
{
	struct pvas_member *m;
	bool found, vacate = false;

	spin_lock(&space->lock);
	/* The second comes later than the mark, and stays. */
	found = space->oom || pvas_mm_has_flag(space->mm, MMF_OOM_REAP_QUEUED);
	list_for_each_entry(m, &space->members, list) {
		if (found)
			break;
		found = pvas_oom_has_chosen(m);
	}
	if (found) {
		pvas_oom_close(space);
		/* Of those that still have the mm, the last one does it. */
		vacate = pvas_space_vacates(space, true);
	}
	spin_unlock(&space->lock);
	if (vacate)
		pvas_vacate_start(space);
	return found;
}

/*
 * The OOM killer marks only the process that it has chosen. Looking for the mark in all
 * members when each of them exits would take quadratic time, so it is done for the last
 * process of a partition, and otherwise once per jiffy.
 */
static bool pvas_oom_should_scan(const struct task_struct *tsk,
				     const struct pvas_partition *part)
{
	struct pvas_space *space = part->space;
	unsigned long now = jiffies;

	if (READ_ONCE(tsk->signal->oom_mm) || READ_ONCE(part->members) <= 1)
		return true;
	if (READ_ONCE(space->oom_scanned) == now)
		return false;
	WRITE_ONCE(space->oom_scanned, now);
	return true;
}

/* A task exits. Was the OOM killer the reason? Then the space ends. Atomic. */
void pvas_oom_on_exit(const struct task_struct *tsk, const struct pvas_partition *part)
{
	bool killed = (tsk->exit_code & 0x7f) == SIGKILL;

	if ((killed || READ_ONCE(tsk->signal->oom_mm)) && pvas_oom_should_scan(tsk, part))
		pvas_oom_has_victim(part->space);
}

/**
 * pvas_oom_wait - wait until the memory of an ended space is free
 * @space:	the space, in the exit of one of its processes
 * @timeout:	in jiffies
 *
 * The OOM killer kills nobody else while it sees a victim whose mm still has its pages.
 * These go when the last task has left, so the victim must not be reaped before.
 */
void pvas_oom_wait(const struct pvas_space *space, unsigned long timeout)
{
	const struct mm_struct *mm = space->mm;
	unsigned long end = jiffies + timeout;

	if (!READ_ONCE(space->oom))
		return;

	while (!pvas_mm_has_flag(mm, MMF_OOM_SKIP) && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
}

/**
 * pvas_oom_was_here - has the OOM killer taken the memory of a space?
 * @space:	that a process is about to enter, or has just entered
 *
 * The OOM killer has not killed a process that entered after it looked, or that was a
 * kernel thread at that moment, and it does not look at this mm again.
 */
bool pvas_oom_was_here(struct pvas_space *space)
{
	const struct mm_struct *mm = space->mm;

	return pvas_mm_has_flag(mm, MMF_OOM_SKIP) || pvas_mm_has_flag(mm, MMF_UNSTABLE) ||
	       pvas_oom_has_victim(space);
}
