// SPDX-License-Identifier: GPL-2.0-only
/*
 * Freeing all memory of a space at once, when no process has its mm any more: see
 * pvas_space_vacates().
 */
#include <linux/sched/mm.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "pvas.h"

static void pvas_mmput_work(struct work_struct *work)
{
	struct pvas_space *space = container_of(work, struct pvas_space, mmput_work);

	pvas_mmput_here(space);
	pvas_space_put(space);
}

/*
 * The rest of a space that pvas_space_vacates() has closed, which can take for ever. Drops the
 * reference to the mm.
 */
void pvas_vacate_late(struct pvas_space *space)
{
	pvas_mmput_here(space);
	pvas_files_put(&space->left);
}

static void pvas_vacate_late_work(struct work_struct *work)
{
	struct pvas_space *space = container_of(work, struct pvas_space, vacate_late);

	pvas_vacate_late(space);
	pvas_space_put(space);
}

static void pvas_vacate_work(struct work_struct *work)
{
	struct pvas_space *space = container_of(work, struct pvas_space, vacate);

	pvas_unmap_space(space, &space->left);
	INIT_WORK(&space->vacate_late, pvas_vacate_late_work);
	queue_work(space->late_wq, &space->vacate_late);
}

/* After pvas_space_vacates(), where no partition is being reclaimed. Atomic. */
void pvas_vacate_start(struct pvas_space *space)
{
	pvas_space_get(space);
	INIT_WORK(&space->vacate, pvas_vacate_work);
	queue_work(space->wq, &space->vacate);
}

static void pvas_patience_work(struct work_struct *work)
{
	struct pvas_space *space = container_of(to_delayed_work(work), struct pvas_space, patience);
	bool vacate;

	spin_lock(&space->lock);
	vacate = pvas_space_vacates(space, false);
	spin_unlock(&space->lock);
	if (vacate)
		pvas_vacate_start(space);
	pvas_space_put(space);
}

void pvas_vacate_init(struct pvas_space *space)
{
	INIT_WORK(&space->mmput_work, pvas_mmput_work);
	INIT_DELAYED_WORK(&space->patience, pvas_patience_work);
}
