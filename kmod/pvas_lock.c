// SPDX-License-Identifier: GPL-2.0-only
/*
 * mmap_lock for the workers. Page faults hold it for reading while they wait, for memory or for a
 * file server that perhaps never answers, and a writer that waits behind them keeps all others
 * from it: the OOM reaper, which then gives up, and peers that are killed (acct_collect()).
 *
 * The kernel counts on it that such a writer is a process that is killed, too, and then no longer
 * waits. So a worker tries without waiting, then waits for a short time, which is enough if the
 * faults are only many; and if it is not, it tries again, ever more seldom. It is SIGKILL that
 * ends the wait, because nothing else does in vm_munmap(). But once that has the lock, SIGKILL
 * would end waits that are for others, such as for the server of a file that is unmapped. So the
 * hook at its begin decides: either the wait was over before, and nothing is unmapped, or no
 * SIGKILL comes.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/sched/coredump.h>
#include <linux/sched/signal.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

#include "pvas.h"
#include "pvas_hook.h"

/* About a second */
#define PVAS_LOCK_TRIES		500
/* Then, between two waits, 1.5 s, and up to 12 s */
#define PVAS_LOCK_LATER_TRIES	20
#define PVAS_LOCK_ROUNDS	3U
#define PVAS_LOCK_WAIT		(HZ / 10)

enum pvas_wait_state {
	PVAS_WAITS,
	PVAS_WAIT_OVER,		/* SIGKILL comes */
	PVAS_WAIT_HAS_LOCK,
};

struct pvas_wait {
	struct list_head list;
	struct timer_list timer;
	struct task_struct *worker;
	atomic_t state;
};

/* All that wait, for the hook; under the lock. */
static LIST_HEAD(pvas_waits);
static DEFINE_RAW_SPINLOCK(pvas_waits_lock);

/* The first who decides is right. */
static bool pvas_wait_decide(struct pvas_wait *wait, enum pvas_wait_state state)
{
	return atomic_cmpxchg(&wait->state, PVAS_WAITS, state) == PVAS_WAITS;
}

static void pvas_wait_is_over(struct timer_list *timer)
{
	struct pvas_wait *wait = container_of(timer, struct pvas_wait, timer);

	if (pvas_wait_decide(wait, PVAS_WAIT_OVER))
		send_sig(SIGKILL, wait->worker, 1);
}

/* From here to pvas_wait_end() the caller waits for no killable lock for longer. */
static void pvas_wait_begin(struct pvas_wait *wait)
{
	wait->worker = current;
	atomic_set(&wait->state, PVAS_WAITS);
	raw_spin_lock(&pvas_waits_lock);
	list_add(&wait->list, &pvas_waits);
	raw_spin_unlock(&pvas_waits_lock);
	allow_kernel_signal(SIGKILL);
	timer_setup_on_stack(&wait->timer, pvas_wait_is_over, 0);
	mod_timer(&wait->timer, jiffies + PVAS_LOCK_WAIT);
}

static void pvas_wait_end(struct pvas_wait *wait)
{
	timer_delete_sync(&wait->timer);
	pvas_timer_destroy_on_stack(&wait->timer);
	disallow_signal(SIGKILL);
	flush_signals(current);
	raw_spin_lock(&pvas_waits_lock);
	list_del(&wait->list);
	raw_spin_unlock(&pvas_waits_lock);
}

static struct pvas_wait *pvas_wait_of(const struct task_struct *worker)
{
	struct pvas_wait *wait, *found = NULL;

	raw_spin_lock(&pvas_waits_lock);
	list_for_each_entry(wait, &pvas_waits, list)
		if (wait->worker == worker)
			found = wait;
	raw_spin_unlock(&pvas_waits_lock);
	return found;
}

static long pvas_stub_eintr(void)
{
	return -EINTR;
}

/**
 * pvas_check_worker_unmap - a process that is no task unmaps something
 * @regs:	the arguments of munmap
 *
 * If it is a worker in pvas_munmap(), it has the lock. Without a list of userfaultfds, it does not
 * wait for their monitors, which may be other processes': by a call that began before the space
 * was made, these can still register areas at any later time.
 *
 * Return: the stub to go to, or NULL
 */
void *pvas_check_worker_unmap(struct pt_regs *regs)
{
	struct pvas_wait *wait = current->flags & PF_KTHREAD ? pvas_wait_of(current) : NULL;

	if (!wait)
		return NULL;
	PVAS_MUNMAP_UFFDS(regs) = 0;
	return pvas_wait_decide(wait, PVAS_WAIT_HAS_LOCK) ? NULL : pvas_stub_eintr;
}

static bool pvas_looks_free(struct mm_struct *mm)
{
	return !rwsem_is_locked(&mm->mmap_lock);
}

/*
 * Tries for a time that is the longer, the more often the caller has waited in vain. Returns
 * false if the caller may wait now.
 */
static bool pvas_lock_try(struct pvas_space *space, bool (*try)(struct mm_struct *mm),
			  unsigned int round)
{
	unsigned int early = round ? 0 : PVAS_LOCK_TRIES, late = 0;
	bool victim;

	if (round)
		late = PVAS_LOCK_LATER_TRIES << min(round - 1, PVAS_LOCK_ROUNDS);
	do {
		if (try(space->mm))
			return true;
		/* Also closes the space. The OOM reaper only tries, and not for long. */
		victim = pvas_oom_has_victim(space) && !pvas_mm_has_flag(space->mm, MMF_OOM_SKIP);
		if (early) {
			early--;
			usleep_range(100, 2000);
		} else {
			late -= late > 0;
			usleep_range(50000, 100000);
		}
	} while (early || late || victim);
	return false;
}

/* In a kernel thread, as all of these. */
void pvas_lock_read(struct pvas_space *space)
{
	struct pvas_wait wait;
	unsigned int round;
	int err;

	for (round = 0; !pvas_lock_try(space, mmap_read_trylock, round); round++) {
		pvas_wait_begin(&wait);
		err = mmap_read_lock_killable(space->mm);
		pvas_wait_end(&wait);
		if (!err)
			break;
	}
}

void pvas_lock_write(struct pvas_space *space)
{
	struct pvas_wait wait;
	unsigned int round;
	int err = -EINTR;

	for (round = 0; err; round++) {
		pvas_lock_try(space, pvas_looks_free, round);
		pvas_wait_begin(&wait);
		err = mmap_write_lock_killable(space->mm);
		pvas_wait_end(&wait);
	}
}

/*
 * Can the end of an area wait for the user? The vm_ops->close() of a FUSE file waits for
 * the server, and holds mmap_lock meanwhile.
 */
bool pvas_area_is_slow(const struct vm_area_struct *vma)
{
	return vma->vm_ops && vma->vm_ops->close && !pvas_file_is_memory(vma->vm_file);
}

/*
 * Only for the call, because the OOM killer believes an exiting task that it frees memory if no
 * kernel thread uses the mm.
 */
static int pvas_munmap_now(struct pvas_space *space, unsigned long from, unsigned long len)
{
	int err;

	kthread_use_mm(space->mm);
	err = vm_munmap(from, len);
	kthread_unuse_mm(space->mm);
	return err;
}

/**
 * pvas_munmap - vm_munmap() by a kernel thread
 * @space:	the space
 * @from:	as for vm_munmap()
 * @len:	the same
 *
 * Return: 0 or -ENOMEM
 */
int pvas_munmap(struct pvas_space *space, unsigned long from, unsigned long len)
{
	struct pvas_wait wait;
	unsigned int round;
	int err = -EINTR;

	for (round = 0; err == -EINTR; round++) {
		pvas_lock_try(space, pvas_looks_free, round);
		pvas_wait_begin(&wait);
		err = pvas_munmap_now(space, from, len);
		pvas_wait_end(&wait);
	}
	return err;
}
