// SPDX-License-Identifier: GPL-2.0-only
/*
 * After the point of no return: changing over from the mm that execve() made to that of
 * the space.
 */
#include <linux/cgroup.h>
#include <linux/kthread.h>
#include <linux/sched/jobctl.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "pvas.h"
#include "pvas_exec.h"
#include "pvas_hook.h"

/*
 * As long as PF_KTHREAD was set, cgroup.kill has left out this process. If it was moved to
 * another cgroup meanwhile, that one's number says nothing. Under RCU since @cgrp was read.
 */
static void pvas_catch_up_with_kill(struct cgroup *cgrp, unsigned int kill_seq)
{
	if (pvas_kill_seq(cgrp) != kill_seq)
		send_sig(SIGKILL, current, 1);
}

/*
 * The same for the freezer, as cgroup_freeze_task() does it. The freezer changes the flag first
 * and then takes siglock for each process: what is read under that lock is what it did or has yet
 * to do. An earlier freeze that nobody has come to obey yet may have been taken back.
 */
static void pvas_catch_up_with_freezer(void)
{
	struct sighand_struct *sighand = rcu_dereference_protected(current->sighand, true);

	spin_lock_irq(&sighand->siglock);
	rcu_read_lock();
	if (!test_bit(CGRP_FREEZE, &task_dfl_cgroup(current)->flags)) {
		current->jobctl &= ~JOBCTL_TRAP_FREEZE;
	} else if (!(current->jobctl & JOBCTL_TRAP_FREEZE)) {
		current->jobctl |= JOBCTL_TRAP_FREEZE;
		set_thread_flag(TIF_SIGPENDING);
	}
	rcu_read_unlock();
	spin_unlock_irq(&sighand->siglock);
}

/*
 * kthread_use_mm() changes the mm of a thread, and keeps membarrier, lazy TLB and the CPU
 * mask of the mm right in every kernel version. It requires a kernel thread, so the task
 * has PF_KTHREAD set for these few instructions. A task holds mm_users where a kernel
 * thread holds mm_count: hence the extra mmgrab() and mmdrop() in the caller.
 *
 * With PREEMPT_RT both functions take a lock that sleeps, so the task can be preempted as what
 * it seems to be, a kernel thread between two mm, and for as long as others keep the CPU. The
 * scheduler then does not save its FPU registers, of which begin_new_exec() has made the copy
 * in memory the valid one. Meanwhile it looks like a kernel thread to others: doc/reliability.md
 * says to whom. All that must not be missed is done again afterwards.
 */
static void pvas_switch_mm(struct mm_struct *fresh, struct mm_struct *mm)
{
	unsigned int kill_seq;
	struct cgroup *cgrp;

	pvas_before_switch();
	rcu_read_lock();
	pvas_preempt_disable_nort();
	cgrp = task_dfl_cgroup(current);
	kill_seq = pvas_kill_seq(cgrp);
	pvas_signals_hold();
	kthread_unuse_mm(fresh);
	pvas_between_switch();
	kthread_use_mm(mm);
	pvas_signals_release();
	pvas_preempt_enable_nort();
	pvas_catch_up_with_kill(cgrp, kill_seq);
	rcu_read_unlock();
	pvas_after_switch();
	pvas_catch_up_with_freezer();
}

/**
 * pvas_join - make the mm of a space the caller's
 * @space:	the space
 *
 * Return: 0, -ESRCH or -EINTR. On error the caller may or may not have the new mm; the
 * process then dies.
 */
int pvas_join(struct pvas_space *space)
{
	struct mm_struct *fresh = current->mm;
	struct mm_struct *mm = space->mm;
	bool empty = pvas_empty_mm_prepare();
	int err;

	if (!mmget_not_zero(mm))
		return -ESRCH;
	/* As in exec_mmap(): readers of mm and credentials together take this lock. */
	err = down_write_killable(&current->signal->exec_update_lock);
	if (err)
		goto err_mm;
	err = -ESRCH;
	if (pvas_oom_was_here(space) || !pvas_task_join(space))
		goto err_lock;

	mmgrab(fresh);
	pvas_switch_mm(fresh, mm);
	mmdrop(mm);

	err = pvas_owner_join(space);
	RCU_INIT_POINTER(fresh->owner, NULL);
	up_write(&current->signal->exec_update_lock);
	if (empty)
		pvas_empty_mm_keep(fresh);
	else
		mmput(fresh);
	/* If the OOM reaper was faster, page faults in this mm fail. */
	return err ?: pvas_oom_was_here(space) ? -ESRCH : 0;

err_lock:
	up_write(&current->signal->exec_update_lock);
err_mm:
	mmput(mm);
	return err;
}
