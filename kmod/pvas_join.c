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

static unsigned int pvas_cgroup_kill_seq(void)
{
	unsigned int seq;

	rcu_read_lock();
	seq = READ_ONCE(task_dfl_cgroup(current)->kill_seq);
	rcu_read_unlock();
	return seq;
}

/*
 * As long as PF_KTHREAD was set, cgroup.kill and the cgroup freezer have left out this
 * process. This does the same afterwards.
 */
static void pvas_catch_up_with_cgroup(unsigned int kill_seq)
{
	struct sighand_struct *sighand = rcu_dereference_protected(current->sighand, true);
	bool freeze;

	rcu_read_lock();
	freeze = test_bit(CGRP_FREEZE, &task_dfl_cgroup(current)->flags);
	rcu_read_unlock();
	if (pvas_cgroup_kill_seq() != kill_seq)
		send_sig(SIGKILL, current, 1);
	if (!freeze)
		return;
	spin_lock_irq(&sighand->siglock);
	if (!(current->jobctl & JOBCTL_TRAP_FREEZE)) {
		current->jobctl |= JOBCTL_TRAP_FREEZE;
		set_thread_flag(TIF_SIGPENDING);
	}
	spin_unlock_irq(&sighand->siglock);
}

/*
 * kthread_use_mm() changes the mm of a thread, and keeps membarrier, lazy TLB and the CPU
 * mask of the mm right in every kernel version. It requires a kernel thread, so the task
 * has PF_KTHREAD set for these few instructions. A task holds mm_users where a kernel
 * thread holds mm_count: hence the extra mmgrab() and mmdrop() in the caller.
 */
static void pvas_switch_mm(struct mm_struct *fresh, struct mm_struct *mm)
{
	unsigned int kill_seq;

	preempt_disable();
	kill_seq = pvas_cgroup_kill_seq();
	current->flags |= PF_KTHREAD;
	kthread_unuse_mm(fresh);
	kthread_use_mm(mm);
	current->flags &= ~PF_KTHREAD;
	preempt_enable();
	pvas_catch_up_with_cgroup(kill_seq);
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
	int err;

	if (!mmget_not_zero(mm))
		return -ESRCH;
	/* As in exec_mmap(): readers of mm and credentials together take this lock. */
	err = down_write_killable(&current->signal->exec_update_lock);
	if (err)
		goto err_mm;
	err = -ESRCH;
	if (pvas_oom_was_here(space))
		goto err_lock;

	mmgrab(fresh);
	pvas_switch_mm(fresh, mm);
	mmdrop(mm);

	err = pvas_owner_join(space);
	RCU_INIT_POINTER(fresh->owner, NULL);
	up_write(&current->signal->exec_update_lock);
	mmput(fresh);
	/* If the OOM reaper was faster, page faults in this mm fail. */
	return err ?: pvas_oom_was_here(space) ? -ESRCH : 0;

err_lock:
	up_write(&current->signal->exec_update_lock);
err_mm:
	mmput(mm);
	return err;
}
