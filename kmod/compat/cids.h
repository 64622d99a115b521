/* SPDX-License-Identifier: GPL-2.0-only */
/* The concurrency ids (rseq(2)) of an mm, for compat.h. */
#ifndef PVAS_COMPAT_CIDS_H
#define PVAS_COMPAT_CIDS_H

#if PVAS_IS_7_2
#include <linux/cpumask.h>
#include <linux/irq_work.h>
#endif

/*
 * 7.2 counts the tasks that use the concurrency ids (rseq(2)) of an mm, and takes an mm without
 * any for ended: it forgets which ids processors own. If a task entered such a space, the kernel
 * could search for a free id for ever, with interrupts off. So a space has as many users more as
 * there are processors, as long as its mm lives. Then the first task makes all ids the
 * processors', and there they stay: the kernel changes that as threads come and go, and a task
 * that enters in between would break it. Nor does it queue work any more for which the last
 * user must wait. The caller is the only task with @mm; pvas_cid_release() undoes it.
 */
#if PVAS_IS_7_2 && defined(CONFIG_SCHED_MM_CID)
#define PVAS_HAVE_CID_USERS	1

static inline void pvas_cid_keep(struct mm_struct *mm)
{
	struct mm_mm_cid *mc = &mm->mm_cid;

	mutex_lock(&mc->mutex);
	raw_spin_lock_irq(&mc->lock);
	mc->users += num_possible_cpus();
	cpumask_copy(mm_cpus_allowed(mm), cpu_possible_mask);
	WRITE_ONCE(mc->nr_cpus_allowed, num_possible_cpus());
	raw_spin_unlock_irq(&mc->lock);
	mutex_unlock(&mc->mutex);
	irq_work_sync(&mc->irq_work);
	cancel_work_sync(&mc->work);
}

static inline void pvas_cid_release(struct mm_struct *mm)
{
	struct mm_mm_cid *mc = &mm->mm_cid;

	mutex_lock(&mc->mutex);
	raw_spin_lock_irq(&mc->lock);
	mc->users -= num_possible_cpus();
	raw_spin_unlock_irq(&mc->lock);
	mutex_unlock(&mc->mutex);
}

/* After an exec into a space: the caller's id comes when it runs again after another task. */
static inline bool pvas_cid_is_missing(void)
{
	return current->mm_cid.active && READ_ONCE(current->mm_cid.cid) == MM_CID_UNSET;
}
#else
#define PVAS_HAVE_CID_USERS	0
static inline void pvas_cid_keep(struct mm_struct *mm) { }
static inline void pvas_cid_release(struct mm_struct *mm) { }
static inline bool pvas_cid_is_missing(void) { return false; }
#endif

#endif /* PVAS_COMPAT_CIDS_H */
