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

/* The creator, whose partition is empty: there is nothing to reclaim. Atomic. */
static void pvas_creator_left(struct pvas_partition *part)
{
	struct pvas_space *space = part->space;
	struct file *exe = pvas_exe_release(part);

	if (exe)
		fput(exe);
	/* A task that entered while the creator let go of the mm may have to own it now. */
	pvas_owner_find(space);
	/* It may have touched more since CREATE than a space without processes may have. */
	if (pvas_space_leave(space))
		pvas_vacate_start(space);
}

/* Starts the reclaim if that was the last member. Atomic. */
static void pvas_member_unlink(struct pvas_member *m)
{
	struct pvas_partition *part = m->part;
	struct pvas_space *space = part->space;
	bool last, unpin;

	spin_lock(&space->lock);
	unpin = pvas_oom_on_leave(m);
	list_del(&m->list);
	WRITE_ONCE(part->members, part->members - 1);
	last = !part->members;
	m->reclaims = last && part->state != PVAS_PART_RESERVED;
	/* Under the same lock: pvas_is_quiet() sees it as one step. */
	if (m->reclaims)
		atomic_inc(&space->early);
	/* An armed process that never entered leaves nothing to unmap. */
	if (last && part->state == PVAS_PART_RUNNING)
		part->state = PVAS_PART_ENDING;
	if (last && part->state == PVAS_PART_RESERVED)
		space->has_creator = false;
	spin_unlock(&space->lock);
	if (unpin)
		pvas_mmput(space);
	if (m->reclaims)
		pvas_reclaim_start(part);
	else if (last)
		pvas_creator_left(part);
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
	unsigned long timeout = msecs_to_jiffies(READ_ONCE(pvas_reclaim_wait_ms));

	/*
	 * The work item drops its own reference last, and with it perhaps the space. After an OOM
	 * kill it goes on with what can take for ever.
	 */
	if (m->reclaims && wait_for_completion_timeout(&part->reclaimed, timeout) &&
	    !(part->vacates && part->space->oom))
		flush_work(&part->finish);
	pvas_oom_wait(part->space, timeout);
	pvas_ns_put(m->mnt_ns);
	pvas_member_free(m);
}

/*
 * Atomic. The wait for the reclaim comes later, from task work. Not the reclaim: exit
 * closes the files before, and a FUSE server that does not answer can block that.
 *
 * Until then the process keeps its mount namespace, which exit would give up before: if the
 * workers that release its files had the last references to mounts, these would wait for
 * others, see pvas_mnt_ns_number().
 */
static void pvas_member_leave(struct pvas_member *m, enum task_work_notify_mode notify)
{
	pvas_member_unlink(m);
	init_task_work(&m->work, pvas_member_left);
	/* Too late in exit for task work: no wait for the reclaim. */
	if (task_work_add(current, &m->work, notify))
		pvas_member_free(m);
	else
		m->mnt_ns = pvas_mnt_ns_get();
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

/* In an exec that enters a space: leave the previous one, and wait for the reclaim. */
void pvas_task_leave_for_exec(void)
{
	struct pvas_member *m = pvas_take_member(current->signal);

	if (m) {
		pvas_member_unlink(m);
		pvas_member_left(&m->work);
	}
}

/**
 * pvas_member_end - in an exec that stays: end the old program
 * @m:		its member, no longer in the table
 *
 * Waits for its memory without the limit that an exit has, unless the caller is killed.
 *
 * Return: 0, -EINTR, or -ENOMEM if something in the partition can't be unmapped.
 */
int pvas_member_end(struct pvas_member *m)
{
	int err;

	pvas_member_unlink(m);
	err = wait_for_completion_killable(&m->part->reclaimed) ? -EINTR : 0;
	if (!err && m->part->unclean)
		err = -ENOMEM;
	pvas_member_free(m);
	return err;
}

/* If the caller is in an exec out of its space, it leaves. Atomic. */
static void pvas_leave_if_out(void)
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

/* Is the caller in an exec that stays in its space? See pvas_stay.c. */
static bool pvas_is_staying(void)
{
	const struct pvas_member *m;
	bool stays;

	rcu_read_lock();
	m = pvas_member_find(current->signal);
	/* Not a vfork child of the process that does. */
	stays = m && READ_ONCE(m->part->in_exec) && m->part->pid == task_tgid(current);
	rcu_read_unlock();
	return stays;
}

/*
 * In an exec, which has just replaced the mm. One out of the space leaves here: if it were a
 * member until its program is loaded, a file server that does not answer could keep its
 * partition's memory, and no process would have that. One that stays waits for no file from here
 * on, before it frees that memory.
 */
void pvas_task_on_new_mm(void)
{
	if (!pvas_is_staying())
		pvas_leave_if_out();
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
	pvas_leave_if_out();
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
