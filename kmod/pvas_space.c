// SPDX-License-Identifier: GPL-2.0-only
/* Spaces: the table of all, lookup, and when a space ends. */
#include <linux/hashtable.h>
#include <linux/mm.h>
#include <linux/sched/coredump.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/xarray.h>

#include "pvas.h"
#include "pvas_member.h"

#define PVAS_IDLE_PAGES	(PVAS_IDLE_MAX >> PAGE_SHIFT)

static DEFINE_XARRAY_ALLOC1(pvas_spaces);
static u32 pvas_next_id = 1;

/* The same by their mm: other users' spaces must not make a hook slower. */
static DEFINE_HASHTABLE(pvas_by_mm, 10);
static DEFINE_SPINLOCK(pvas_by_mm_lock);

/* Reserves space->id. Lookups do not see the space before pvas_space_publish(). */
int pvas_space_reserve_id(struct pvas_space *space)
{
	int err = xa_alloc_cyclic(&pvas_spaces, &space->id, NULL, XA_LIMIT(1, INT_MAX),
				  &pvas_next_id, GFP_KERNEL);

	return err < 0 ? err : 0;
}

void pvas_space_release_id(struct pvas_space *space)
{
	xa_release(&pvas_spaces, space->id);
}

/* Atomic: the entry was allocated by pvas_space_reserve_id(). */
void pvas_space_publish(struct pvas_space *space)
{
	xa_store(&pvas_spaces, space->id, space, GFP_NOWAIT);
	spin_lock(&pvas_by_mm_lock);
	hash_add_rcu(pvas_by_mm, &space->by_mm, (unsigned long)space->mm);
	spin_unlock(&pvas_by_mm_lock);
}

static void pvas_space_release(struct kref *ref)
{
	struct pvas_space *space = container_of(ref, struct pvas_space, ref);

	xa_erase(&pvas_spaces, space->id);
	spin_lock(&pvas_by_mm_lock);
	hash_del_rcu(&space->by_mm);
	spin_unlock(&pvas_by_mm_lock);
	/*
	 * From a work item: the caller may be the task work of a dying task, which
	 * would return into a module that this put allows to be removed.
	 */
	pvas_free_queue(&space->free_work);
}

struct pvas_space *pvas_space_get(struct pvas_space *space)
{
	kref_get(&space->ref);
	return space;
}

void pvas_space_put(struct pvas_space *space)
{
	if (space)
		kref_put(&space->ref, pvas_space_release);
}

struct pvas_space *pvas_space_find(u32 id)
{
	struct pvas_space *space;

	xa_lock(&pvas_spaces);
	space = xa_load(&pvas_spaces, id);
	if (space && !kref_get_unless_zero(&space->ref))
		space = NULL;
	xa_unlock(&pvas_spaces);
	return space;
}

/* Iterates over all spaces: the first with an id >= *id, with a reference. Sets *id to its id. */
struct pvas_space *pvas_space_next(u32 *id)
{
	struct pvas_space *space;
	unsigned long i = *id;

	xa_lock(&pvas_spaces);
	for (space = xa_find(&pvas_spaces, &i, UINT_MAX, XA_PRESENT); space;
	     space = xa_find_after(&pvas_spaces, &i, UINT_MAX, XA_PRESENT))
		if (kref_get_unless_zero(&space->ref))
			break;
	xa_unlock(&pvas_spaces);
	if (space)
		*id = i;
	return space;
}

unsigned int pvas_space_count(struct user_namespace *ns)
{
	struct pvas_space *space;
	unsigned int n = 0;
	u32 id;

	for (id = 1; (space = pvas_space_next(&id)); id++) {
		n += space->cred->user_ns == ns;
		pvas_space_put(space);
	}
	return n;
}

/* Under RCU: the space with this mm, or NULL. Atomic. */
static struct pvas_space *pvas_space_of(const struct mm_struct *mm)
{
	struct pvas_space *space;

	if (!pvas_mm_may_be_space(mm))
		return NULL;
	hash_for_each_possible_rcu(pvas_by_mm, space, by_mm, (unsigned long)mm)
		if (space->mm == mm)
			return space;
	return NULL;
}

/* Is @mm a space's? Also of one that has ended, until its memory is freed. Atomic. */
bool pvas_space_has_mm(const struct mm_struct *mm)
{
	bool found;

	rcu_read_lock();
	found = pvas_space_of(mm);
	rcu_read_unlock();
	return found;
}

/* Pages of a space, with those of its page tables. */
static unsigned long pvas_mm_pages(struct mm_struct *mm)
{
	return pvas_mm_counted(mm, MM_FILEPAGES) + pvas_mm_counted(mm, MM_ANONPAGES) +
	       pvas_mm_counted(mm, MM_SHMEMPAGES) + pvas_mm_counted(mm, MM_SWAPENTS) +
	       (mm_pgtables_bytes(mm) >> PAGE_SHIFT);
}

/*
 * Is it more than a space without processes may have? The OOM killer would find no
 * process that owns it. Atomic.
 */
bool pvas_space_is_large(struct mm_struct *mm)
{
	return pvas_mm_pages(mm) > PVAS_IDLE_PAGES;
}

/* The shift of @mm's partitions, or 0 if @mm is not a space that tasks can be in. Atomic. */
u32 pvas_space_shift_of(const struct mm_struct *mm)
{
	const struct pvas_space *space;
	u32 shift = 0;

	rcu_read_lock();
	space = pvas_space_of(mm);
	if (space && READ_ONCE(space->pinned) && !READ_ONCE(space->oom))
		shift = space->shift;
	rcu_read_unlock();
	return shift;
}

/*
 * Must an access by another process fail, as through a /proc/PID/mem file that is still open? To
 * an mm without an owner, which no process has, it would add memory that is charged to nobody.
 * A reader can add to it, too, but no more than PVAS_IDLE_MAX. Atomic.
 */
bool pvas_space_refuses(struct mm_struct *mm, bool write)
{
	return !rcu_access_pointer(mm->owner) && pvas_space_has_mm(mm) &&
	       (write || pvas_space_is_large(mm));
}

/* Can a task still enter? Reliable under space->lock, otherwise a hint. */
bool pvas_space_is_open(const struct pvas_space *space)
{
	return space->pinned && !space->dead &&
	       (space->files || (space->key_len && space->in_use));
}

/* Sends SIGKILL to all members and closes the space. */
void pvas_space_kill(struct pvas_space *space)
{
	struct pvas_member *m;

	spin_lock(&space->lock);
	space->killed = true;
	/* Nobody may enter any more, not even through other open files. */
	WRITE_ONCE(space->dead, true);
	list_for_each_entry(m, &space->members, list)
		kill_pid(m->pid, SIGKILL, 1);
	spin_unlock(&space->lock);
}

/* A file is closed or DESTROY was called. Consumes the file's reference. */
void pvas_space_unbind(struct pvas_space *space)
{
	bool kill;

	spin_lock(&space->lock);
	space->files--;
	kill = !space->files && (space->flags & PVAS_CREATE_KILL_ON_CLOSE);
	spin_unlock(&space->lock);
	if (kill)
		pvas_space_kill(space);
	/* The closing process need not be the owner, and must not wait for the owner's memory. */
	if (pvas_space_is_over(space))
		pvas_mmput(space);
	pvas_space_put(space);
}

/* ---- who has memory of it ---- */

static void pvas_space_stop_waiting(struct pvas_space *space)
{
	/* Not the last reference: the caller has one. */
	if (cancel_delayed_work(&space->patience))
		pvas_space_put(space);
}

/* A member gets the mm, lets go of it, or is about to get it. Under space->lock. */
void pvas_presence_set(struct pvas_member *m, enum pvas_presence now)
{
	struct pvas_space *space = m->part->space;

	lockdep_assert_held(&space->lock);
	space->occupied += (now == PVAS_JOINED) - (m->presence == PVAS_JOINED);
	space->coming += (now == PVAS_COMING) - (m->presence == PVAS_COMING);
	m->presence = now;
	if (space->occupied || !space->coming)
		pvas_space_stop_waiting(space);
}

/*
 * A process is on its way: give it as much time as an exit has. It may never get the mm, and would
 * keep a space that nobody is in. Under space->lock.
 */
static bool pvas_space_waits(struct pvas_space *space)
{
	unsigned long wait = max_t(unsigned long, pvas_reclaim_wait(), HZ);

	if (!space->coming)
		return false;
	if (queue_delayed_work(space->wq, &space->patience, wait))
		pvas_space_get(space);
	return true;
}

/**
 * pvas_space_vacates - must all memory of a space be freed now?
 * @space:	that a process has left, or of which a partition is unmapped
 * @patient:	not as long as a process is about to get the mm
 *
 * It must if its tasks have filled partition 0 and left: the OOM killer would find no process
 * that owns this memory. And after an OOM kill, which leaves all partitions as they are: then no
 * process gets the mm any more.
 *
 * Under space->lock.
 *
 * Return: true, once, if this is so. The caller then has a reference to the mm, and frees
 * all that is in it.
 */
bool pvas_space_vacates(struct pvas_space *space, bool patient)
{
	bool vacate;

	lockdep_assert_held(&space->lock);
	if (space->vacated || space->occupied)
		return false;
	if (!space->oom &&
	    (!pvas_space_is_large(space->mm) || (patient && pvas_space_waits(space))))
		return false;
	space->vacated = true;
	/* If it is over, only work that waits for the user may still hold the mm. */
	vacate = space->pinned || mmget_not_zero(space->mm);
	WRITE_ONCE(space->pinned, false);
	WRITE_ONCE(space->dead, true);
	return vacate;
}

/* A partition is unmapped. Returns what pvas_space_vacates() does. */
bool pvas_space_leave(struct pvas_space *space)
{
	bool vacate;

	spin_lock(&space->lock);
	space->occupied--;
	vacate = pvas_space_vacates(space, true);
	spin_unlock(&space->lock);
	return vacate;
}

/**
 * pvas_space_is_over - can no task enter any more?
 * @space:	a file of it was closed, or a partition of it freed
 *
 * Return: true once, and the caller then drops the pin of the mm.
 */
bool pvas_space_is_over(struct pvas_space *space)
{
	bool unpin;

	spin_lock(&space->lock);
	unpin = space->pinned && !space->in_use && !space->files;
	/* Then the last process to leave does it, which may be the creator. */
	if (space->oom && space->occupied)
		unpin = false;
	if (unpin) {
		WRITE_ONCE(space->pinned, false);
		WRITE_ONCE(space->dead, true);
	}
	spin_unlock(&space->lock);
	return unpin;
}
