// SPDX-License-Identifier: GPL-2.0-only
/*
 * The work queue on which spaces and their mm are freed: the last reference can be
 * dropped in atomic context or by a process of another user, and freeing terabytes
 * of mappings takes seconds.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "pvas.h"

/* No work item on it waits for user space. */
static struct workqueue_struct *pvas_free_wq;

int pvas_free_init(void)
{
	pvas_free_wq = alloc_workqueue("pvas_free", WQ_UNBOUND, 0);
	return pvas_free_wq ? 0 : -ENOMEM;
}

void pvas_free_exit(void)
{
	destroy_workqueue(pvas_free_wq);
}

/* Atomic. */
void pvas_free_queue(struct work_struct *work)
{
	queue_work(pvas_free_wq, work);
}

struct pvas_mmput {
	struct work_struct work;
	struct mm_struct *mm;
};

static void pvas_mmput_work(struct work_struct *work)
{
	struct pvas_mmput *put = container_of(work, struct pvas_mmput, work);
	struct mm_struct *mm = put->mm;

	kfree(put);
	mmput(mm);
}

/*
 * mmput() for contexts that must not sleep or take long. mmput_async() runs on system_wq,
 * where all other work of that CPU would wait for the seconds that a large mm takes.
 */
void pvas_mmput(struct mm_struct *mm)
{
	struct pvas_mmput *put;

	/* Not the last reference: nothing is freed. */
	if (atomic_fetch_add_unless(&mm->mm_users, -1, 1) != 1)
		return;
	put = kmalloc(sizeof(*put), GFP_ATOMIC | __GFP_NOWARN);
	if (!put) {
		mmput_async(mm);
		return;
	}
	INIT_WORK(&put->work, pvas_mmput_work);
	put->mm = mm;
	pvas_free_queue(&put->work);
}
