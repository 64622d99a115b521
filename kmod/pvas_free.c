// SPDX-License-Identifier: GPL-2.0-only
/*
 * The work queues on which spaces and their mm are freed: the last reference can be
 * dropped in atomic context or by a process of another user, and freeing terabytes
 * of mappings takes seconds.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
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

struct pvas_call {
	struct work_struct work;
	void (*fn)(struct pvas_space *space);
	struct pvas_space *space;
};

static void pvas_call_work(struct work_struct *work)
{
	struct pvas_call *call = container_of(work, struct pvas_call, work);

	call->fn(call->space);
}

/*
 * Has a worker call @fn(@space), and waits for it. For what takes locks of the whole
 * machine, such as the making of work queues: the caller's cgroup can starve the caller
 * while it holds them, and all other processes would wait.
 */
void pvas_free_call(void (*fn)(struct pvas_space *space), struct pvas_space *space)
{
	struct pvas_call call = { .fn = fn, .space = space };

	INIT_WORK_ONSTACK(&call.work, pvas_call_work);
	queue_work(pvas_free_wq, &call.work);
	flush_work(&call.work);
	destroy_work_on_stack(&call.work);
}

/*
 * mmput() of a space's mm for contexts that must not sleep or take long. On the space's
 * own queue: the last one waits for what the user has mapped, perhaps for ever. One work
 * item is enough: whoever has the last reference has it alone.
 */
void pvas_mmput(struct pvas_space *space)
{
	if (atomic_fetch_add_unless(&space->mm->mm_users, -1, 1) != 1)
		return;
	pvas_space_get(space);
	queue_work(space->late_wq, &space->mmput_work);
}
