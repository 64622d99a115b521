// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a process leaves a space: by its exit, by an exec, or by SPAWN_CANCEL. With the
 * last member of a partition the partition is reclaimed, and that member's exit waits
 * for it: when the parent's waitpid() returns, the partition is free.
 */
#include <linux/file.h>
#include <linux/moduleparam.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "pvas.h"
#include "pvas_member.h"

static unsigned int pvas_reclaim_wait_ms = 10000;
module_param_named(reclaim_wait_ms, pvas_reclaim_wait_ms, uint, 0644);
MODULE_PARM_DESC(reclaim_wait_ms,
		 "longest time a task's exit waits for its partition to be freed (default 10000)");

/* In jiffies. */
unsigned long pvas_reclaim_wait(void)
{
	return msecs_to_jiffies(READ_ONCE(pvas_reclaim_wait_ms));
}

/* The creator, whose partition is empty: there is nothing to reclaim. Atomic. */
static void pvas_creator_left(struct pvas_partition *part)
{
	struct pvas_space *space = part->space;
	struct file *exe = pvas_exe_release(part);

	if (exe)
		fput(exe);
	/* A task that entered while the creator let go of the mm may have to own it now. */
	pvas_owner_find(space);
}

/* Starts the reclaim if that was the last member. Atomic. */
static void pvas_member_unlink(struct pvas_member *m)
{
	struct pvas_partition *part = m->part;
	struct pvas_space *space = part->space;
	bool last, vacate;

	spin_lock(&space->lock);
	pvas_oom_on_leave(m);
	list_del(&m->list);
	m->left_at = jiffies;
	WRITE_ONCE(part->members, part->members - 1);
	last = !part->members;
	m->reclaims = last && part->state != PVAS_PART_RESERVED;
	/* Under the same lock: pvas_is_quiet() sees it as one step. */
	if (m->reclaims)
		atomic_inc(&space->early);
	/* An armed process that never entered leaves nothing to unmap. */
	if (last && part->state == PVAS_PART_RUNNING) {
		part->state = PVAS_PART_ENDING;
		space->occupied++;
	}
	if (last && part->state == PVAS_PART_RESERVED)
		space->has_creator = false;
	pvas_presence_set(m, PVAS_ABSENT);
	/* The creator, too, may have touched more than a space without processes may have. */
	vacate = pvas_space_vacates(space, true);
	spin_unlock(&space->lock);
	if (m->reclaims)
		pvas_reclaim_start(part);
	else if (last)
		pvas_creator_left(part);
	if (vacate)
		pvas_vacate_start(space);
}

static unsigned long pvas_until(unsigned long end)
{
	unsigned long now = jiffies;

	return time_before(now, end) ? end - now : 0;
}

/*
 * Runs in the context of the process, after it has let go of the mm. The wait for the
 * reclaim has a limit, because a userfaultfd monitor or a FUSE server that does not
 * answer can block the unmapping: the partition then stays busy, and the process ends.
 */
static void pvas_member_left(struct callback_head *work)
{
	struct pvas_member *m = container_of(work, struct pvas_member, work);
	struct pvas_partition *part = m->part;
	unsigned long end = m->left_at + pvas_reclaim_wait();

	/*
	 * The work item drops its own reference last, and with it perhaps the space. After an OOM
	 * kill, and if the partition has ended already, it goes on with what can take for ever.
	 * Not ->next: another worker clears that when the task's next program ends before it runs.
	 */
	if (m->reclaims && wait_for_completion_timeout(&part->reclaimed, pvas_until(end)) &&
	    !(part->vacates && part->space->oom) && !part->ended)
		flush_work(&part->finish);
	pvas_oom_wait(part->space, pvas_until(end));
	pvas_ns_put(m->mnt_ns);
	pvas_member_free(m);
}

/*
 * The wait for the reclaim of a member that has left, from task work. Atomic.
 *
 * Until then the process keeps its mount namespace, which exit would give up before: if the
 * workers that release its files had the last references to mounts, these would wait for
 * others, see pvas_mnt_ns_number().
 */
void pvas_member_wait_later(struct pvas_member *m, enum task_work_notify_mode notify)
{
	init_task_work(&m->work, pvas_member_left);
	/* Too late in exit for task work: no wait for the reclaim. */
	if (task_work_add(current, &m->work, notify))
		pvas_member_free(m);
	else
		m->mnt_ns = pvas_mnt_ns_get();
}

/*
 * Atomic. The wait for the reclaim comes later. Not the reclaim: exit closes the files before,
 * and a FUSE server that does not answer can block that.
 */
static void pvas_member_leave(struct pvas_member *m, enum task_work_notify_mode notify)
{
	pvas_member_unlink(m);
	pvas_member_wait_later(m, notify);
}

static struct pvas_member *pvas_take_armed(struct signal_struct *sig)
{
	struct pvas_member *m;

	if (!pvas_is_armed(sig))
		return NULL;
	raw_spin_lock(&pvas_members_lock);
	m = pvas_armed_find(sig);
	if (m)
		hash_del_rcu(&m->armed_node);
	raw_spin_unlock(&pvas_members_lock);
	return m;
}

/* SPAWN_CANCEL: when it returns, the index is free. */
int pvas_task_disarm(void)
{
	struct pvas_member *m = pvas_take_armed(current->signal);

	if (!m)
		return -ENOENT;
	pvas_member_unlink(m);
	pvas_member_left(&m->work);
	return 0;
}

/* Removes the member of a whole process from the table. */
static struct pvas_member *pvas_take_member(struct signal_struct *sig)
{
	struct pvas_member *m;

	raw_spin_lock(&pvas_members_lock);
	m = pvas_member_find(sig);
	if (m)
		hash_del_rcu(&m->node);
	raw_spin_unlock(&pvas_members_lock);
	return m;
}

/*
 * Does another thread of @tsk's process still have the mm? Threads that the kernel
 * creates in a process (io_uring, vhost) are not counted in pvas_member.threads, because
 * the fork tracepoint does not see them, and can be the last. Of two threads that exit
 * at the same time, the second to take pvas_members_lock sees the other without mm.
 */
static bool pvas_has_others(struct task_struct *tsk, const struct mm_struct *mm)
{
	struct task_struct *other;
	bool has = false;

	lockdep_assert_held(&pvas_members_lock);
	rcu_read_lock();
	for_each_thread(tsk, other) {
		has = other != tsk && READ_ONCE(other->mm) == mm;
		if (has)
			break;
	}
	rcu_read_unlock();
	return has;
}

/* A thread has let go of the mm. Returns the member if it was its last thread. */
static struct pvas_member *pvas_take_thread(struct task_struct *tsk)
{
	struct pvas_member *m;

	raw_spin_lock(&pvas_members_lock);
	m = pvas_member_find(tsk->signal);
	if (m && !pvas_is_kernel_worker(tsk))
		m->threads--;
	if (m && (m->threads > 0 || pvas_has_others(tsk, m->part->space->mm)))
		m = NULL;
	if (m)
		hash_del_rcu(&m->node);
	raw_spin_unlock(&pvas_members_lock);
	return m;
}

/*
 * If the caller has another mm than its space's, it leaves: in an exec out of it, or in one that
 * has failed before it got that mm. Its tracer can keep it in its exit. Atomic.
 */
void pvas_task_leave_if_out(void)
{
	struct pvas_member *m;
	bool out;

	rcu_read_lock();
	m = pvas_member_find(current->signal);
	out = m && current->mm != m->part->space->mm;
	rcu_read_unlock();
	if (!out)
		return;
	m = pvas_take_member(current->signal);
	if (!m)
		return;
	pvas_owner_find(m->part->space);
	pvas_member_leave(m, TWA_RESUME);
}

/*
 * In an exec that stays, see pvas_stay.c: puts the member that the process becomes in the place of
 * the one that it is, and returns this. NULL if the exec does not stay, or the space has ended.
 */
static struct pvas_member *pvas_replace_member(void)
{
	struct pvas_member *old, *next = NULL;
	struct pvas_space *space;

	rcu_read_lock();
	old = pvas_member_find(current->signal);
	/* Not a vfork child of the process that does. */
	if (old && old->part->pid == task_tgid(current))
		next = READ_ONCE(old->part->successor);
	rcu_read_unlock();
	if (!next)
		return NULL;
	/* Nobody else ends the caller's membership. */
	space = old->part->space;
	spin_lock(&space->lock);
	if (space->dead) {
		spin_unlock(&space->lock);
		return NULL;
	}
	raw_spin_lock(&pvas_members_lock);
	hash_del_rcu(&old->node);
	pvas_member_hash(next);
	raw_spin_unlock(&pvas_members_lock);
	WRITE_ONCE(old->part->next, next->part);
	next->part->gen = ++space->gen;
	next->previous = old;
	next->entering = true;
	space->in_use++;
	pvas_presence_set(next, PVAS_COMING);
	list_add_tail(&next->list, &space->members);
	spin_unlock(&space->lock);
	return old;
}

/*
 * In an exec, which has just replaced the mm. Whether it stays or not, the old program leaves here:
 * if it were a member until the new one is loaded, a file server that does not answer could keep
 * its partition's memory, and no process would have that. Atomic.
 */
void pvas_task_on_new_mm(void)
{
	struct pvas_member *old = pvas_replace_member();

	if (old) {
		pvas_owner_find(old->part->space);
		pvas_member_unlink(old);
	} else {
		pvas_task_leave_if_out();
	}
}

/*
 * Tracepoint sched_process_exec. A process that entered is not armed any more; any other has not
 * used it, and the new program did not ask for it.
 */
void pvas_task_on_exec(struct task_struct *tsk)
{
	struct pvas_member *m = pvas_take_armed(tsk->signal);

	if (m)
		pvas_member_leave(m, TWA_RESUME);
}

/*
 * After exit_mm(), for each thread, see pvas_event.c. A thread that the kernel created can be
 * the last of its process.
 */
void pvas_task_on_exit(struct task_struct *tsk)
{
	struct pvas_partition *part;
	struct pvas_member *m;

	if (!atomic_read(&tsk->signal->live)) {
		m = pvas_take_armed(tsk->signal);
		if (m)
			pvas_member_leave(m, TWA_NONE);
	}

	part = pvas_partition_get_of(tsk->signal);
	if (!part)
		return;
	pvas_oom_on_exit(tsk, part);
	pvas_owner_find(part->space);
	m = pvas_take_thread(tsk);
	if (m)
		pvas_member_leave(m, TWA_NONE);
	pvas_partition_put(part);
}
