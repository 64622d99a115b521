// SPDX-License-Identifier: GPL-2.0-only
/*
 * Membership: which process lives in which partition.
 *
 * A process is armed by SPAWN, becomes a member by its exec, and leaves by its
 * exit or its next exec. A child that shares the mm (vfork, posix_spawn) is a
 * guest: a member too, of its parent's partition. The partition is reclaimed
 * when its last member has left, and the last member's exit waits for that:
 * when the parent's waitpid() returns, the partition is free.
 */
#include <linux/hashtable.h>
#include <linux/pid.h>
#include <linux/rculist.h>
#include <linux/sched/coredump.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "pvas.h"

/* Both are read under RCU and changed under pvas_members_lock. */
static DEFINE_HASHTABLE(pvas_members, 10);
static DEFINE_HASHTABLE(pvas_armed, 6);
static DEFINE_SPINLOCK(pvas_members_lock);

static struct pvas_member *pvas_find_member(const struct signal_struct *sig)
{
	struct pvas_member *m;

	hash_for_each_possible_rcu(pvas_members, m, node, (unsigned long)sig,
				   lockdep_is_held(&pvas_members_lock))
		if (m->signal == sig)
			return m;
	return NULL;
}

static struct pvas_member *pvas_find_armed(const struct signal_struct *sig)
{
	struct pvas_member *m;

	hash_for_each_possible_rcu(pvas_armed, m, armed_node, (unsigned long)sig,
				   lockdep_is_held(&pvas_members_lock))
		if (m->signal == sig)
			return m;
	return NULL;
}

/*
 * Without the lock: most processes are neither. A change for the caller's own
 * process is made by the process itself, so it does not miss one.
 */
static bool pvas_is_armed(const struct signal_struct *sig)
{
	bool armed;

	rcu_read_lock();
	armed = pvas_find_armed(sig);
	rcu_read_unlock();
	return armed;
}

static __always_inline struct pvas_partition *pvas_callers_partition(bool entering_too)
{
	struct pvas_partition *part = NULL;
	struct pvas_member *m;

	rcu_read_lock();
	m = pvas_find_member(current->signal);
	if (m && (entering_too || !READ_ONCE(m->entering)) && current->mm == m->part->space->mm)
		part = m->part;
	rcu_read_unlock();
	return part;
}

/**
 * pvas_task_partition - the partition the caller lives in
 *
 * The fast path of every hook. The result stays valid without a reference: the
 * caller's own membership ends only by the caller's own exit or exec. In the
 * middle of an exec out of the space the mm is another already, and what the
 * new program maps is not ours to bound.
 */
struct pvas_partition *pvas_task_partition(void)
{
	return pvas_callers_partition(false);
}

/* The same, but for an exec that is still building the task, and may fail, too. */
struct pvas_partition *pvas_task_partition_entered(void)
{
	return pvas_callers_partition(true);
}

bool pvas_task_has_exe(struct task_struct *tsk)
{
	struct pvas_member *m;
	bool has;

	rcu_read_lock();
	m = pvas_find_member(tsk->signal);
	has = m && READ_ONCE(m->part->exe);
	rcu_read_unlock();
	return has;
}

struct file *pvas_task_exe_get(struct task_struct *tsk)
{
	struct file *exe = NULL;
	struct pvas_member *m;

	spin_lock(&pvas_members_lock);
	m = pvas_find_member(tsk->signal);
	if (m && m->part->exe)
		exe = get_file(m->part->exe);
	spin_unlock(&pvas_members_lock);
	return exe;
}

static void pvas_partition_release(struct kref *ref)
{
	struct pvas_partition *part = container_of(ref, struct pvas_partition, ref);

	put_pid(part->pid);
	pvas_space_put(part->space);
	kfree_rcu(part, rcu);
}

void pvas_partition_put(struct pvas_partition *part)
{
	kref_put(&part->ref, pvas_partition_release);
}

/* @tsk is a thread of the process. It holds the key: see struct pvas_member. */
static void pvas_member_init(struct pvas_member *m, struct pvas_partition *part,
			     struct task_struct *tsk)
{
	m->part = part;
	m->tsk = get_task_struct(tsk);
	m->signal = tsk->signal;
	m->pid = get_pid(task_tgid(tsk));
	m->threads = 1;
}

static void pvas_member_free(struct pvas_member *m)
{
	put_pid(m->pid);
	put_task_struct(m->tsk);
	pvas_partition_put(m->part);
	kfree_rcu(m, rcu);
}

static void pvas_reclaim_work(struct work_struct *work)
{
	struct pvas_partition *part = container_of(work, struct pvas_partition, reclaim);

	pvas_mm_reclaim(part);
	complete_all(&part->reclaimed);
	pvas_partition_put(part);
}

/* Its last member has left, or its armed process never came. */
static void pvas_partition_end(struct pvas_partition *part)
{
	kref_get(&part->ref);
	/* Of the space's own: one that is held up there holds up no other space. */
	queue_work(part->space->wq, &part->reclaim);
}

/**
 * pvas_partition_free - forget the partition in the space
 * @part:	the partition
 * @reuse:	the index can be taken again. If not, something is still mapped there
 */
void pvas_partition_free(struct pvas_partition *part, bool reuse)
{
	struct pvas_space *space = part->space;

	spin_lock(&space->lock);
	space->occupied -= part->state != PVAS_PART_ARMED;
	if (reuse)
		part->state = PVAS_PART_FREE;
	else
		set_bit(part->index, space->reserved);
	space->parts[part->index] = NULL;
	space->in_use--;
	spin_unlock(&space->lock);
	/* Here, in the space's own queue: freeing pages takes its time. */
	if (pvas_space_is_over(space))
		mmput(space->mm);
}

static struct pvas_partition *pvas_partition_alloc(struct pvas_space *space)
{
	struct pvas_partition *part = kzalloc(sizeof(*part), GFP_KERNEL_ACCOUNT);

	if (!part)
		return NULL;
	kref_init(&part->ref);
	part->space = pvas_space_get(space);
	part->state = PVAS_PART_ARMED;
	part->pid = get_pid(task_tgid(current));
	mutex_init(&part->brk_lock);
	init_completion(&part->reclaimed);
	INIT_WORK(&part->reclaim, pvas_reclaim_work);
	return part;
}

/* For the caller, in a partition of its own, in no list yet. */
static struct pvas_member *pvas_member_alloc(struct pvas_space *space)
{
	struct pvas_member *m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	struct pvas_partition *part;

	if (!m)
		return NULL;
	part = pvas_partition_alloc(space);
	if (!part) {
		kfree(m);
		return NULL;
	}
	part->members = 1;
	pvas_member_init(m, part, current);
	return m;
}

static int pvas_pick_index(struct pvas_space *space, u32 *index, bool any)
{
	u32 i = any ? space->first : *index;

	lockdep_assert_held(&space->lock);
	if (!pvas_space_is_open(space))
		return -ENOENT;
	if (!any) {
		if (i < space->first || i > space->last || test_bit(i, space->reserved))
			return -EINVAL;
		return space->parts[i] ? -EBUSY : 0;
	}
	while (i <= space->last && (space->parts[i] || test_bit(i, space->reserved)))
		i++;
	if (i > space->last)
		return -ENOSPC;
	*index = i;
	return 0;
}

static int pvas_arm_locked(struct pvas_space *space, struct pvas_member *m, u32 *index, bool any)
{
	struct pvas_partition *part = m->part;
	int err;

	lockdep_assert_held(&space->lock);
	lockdep_assert_held(&pvas_members_lock);
	if (pvas_find_armed(m->signal))
		return -EALREADY;
	err = pvas_pick_index(space, index, any);
	if (err)
		return err;
	part->index = *index;
	part->gen = ++space->gen;
	part->base = (unsigned long)*index << space->shift;
	part->end = part->base + (1UL << space->shift);
	space->parts[*index] = part;
	space->in_use++;
	list_add_tail(&m->list, &space->members);
	hash_add_rcu(pvas_armed, &m->armed_node, (unsigned long)m->signal);
	return 0;
}

/**
 * pvas_task_arm - the caller's next exec enters @space
 * @space:	the space; the caller has checked that it may
 * @index:	the partition to take; with @any receives the one chosen
 * @any:	take the lowest free one
 */
int pvas_task_arm(struct pvas_space *space, u32 *index, bool any)
{
	struct pvas_member *m = pvas_member_alloc(space);
	int err;

	if (!m)
		return -ENOMEM;
	spin_lock(&space->lock);
	spin_lock(&pvas_members_lock);
	err = pvas_arm_locked(space, m, index, any);
	spin_unlock(&pvas_members_lock);
	spin_unlock(&space->lock);
	if (err)
		pvas_member_free(m);
	return err;
}

/**
 * pvas_task_creator_alloc - prepare the creator's membership
 * @space:	being made
 *
 * It is a member of an empty partition: nothing that it maps from now on is
 * inside, its children are guests, and the OOM killer's choice is seen.
 * Return: for pvas_task_creator_add() or pvas_task_creator_drop(), or NULL.
 */
struct pvas_member *pvas_task_creator_alloc(struct pvas_space *space)
{
	struct pvas_member *m = pvas_member_alloc(space);
	const struct mm_struct *mm = current->mm;
	struct pvas_partition *part;

	if (!m)
		return NULL;
	part = m->part;
	part->state = PVAS_PART_RESERVED;
	/* What a fork child of the creator is to have. */
	part->heap = mm->start_brk;
	part->brk = mm->brk;
	part->stack = mm->start_stack;
	part->arg_start = mm->arg_start;
	part->arg_end = mm->arg_end;
	part->env_start = mm->env_start;
	part->env_end = mm->env_end;
	return m;
}

void pvas_task_creator_drop(struct pvas_member *m)
{
	pvas_member_free(m);
}

/* @exe: the creator's program; its reference is the partition's from now on. */
void pvas_task_creator_add(struct pvas_member *m, struct file *exe)
{
	struct pvas_space *space = m->part->space;

	spin_lock(&space->lock);
	list_add_tail(&m->list, &space->members);
	space->has_creator = true;
	space->occupied++;
	spin_lock(&pvas_members_lock);
	m->part->exe = exe;
	hash_add_rcu(pvas_members, &m->node, (unsigned long)m->signal);
	spin_unlock(&pvas_members_lock);
	spin_unlock(&space->lock);
}

/*
 * The partition the caller is armed for, with a reference, or NULL. Another
 * thread may disarm before exec is past de_thread(): pvas_task_enter() looks
 * again.
 */
struct pvas_partition *pvas_task_armed(void)
{
	struct pvas_partition *part = NULL;
	struct pvas_member *m;

	if (!pvas_is_armed(current->signal))
		return NULL;
	spin_lock(&pvas_members_lock);
	m = pvas_find_armed(current->signal);
	if (m) {
		part = m->part;
		kref_get(&part->ref);
	}
	spin_unlock(&pvas_members_lock);
	return part;
}

/**
 * pvas_task_enter - armed becomes member, whose calls are not bounded yet
 * @part:	what pvas_task_armed() gave
 * @exe:	the program: its reference and denied write access are the
 *		partition's from now on
 *
 * Return: false if another thread has disarmed in between.
 */
bool pvas_task_enter(struct pvas_partition *part, struct file *exe)
{
	struct pvas_space *space = part->space;
	struct pvas_member *m;

	spin_lock(&space->lock);
	spin_lock(&pvas_members_lock);
	m = pvas_find_armed(current->signal);
	if (m && m->part == part) {
		hash_del_rcu(&m->armed_node);
		m->threads = 1;
		m->entering = true;
		part->exe = exe;
		part->state = PVAS_PART_RUNNING;
		space->occupied++;
		hash_add_rcu(pvas_members, &m->node, (unsigned long)m->signal);
	}
	spin_unlock(&pvas_members_lock);
	spin_unlock(&space->lock);
	return m && m->part == part;
}

/* The task is built: from now on its calls are bounded. */
void pvas_task_entered(void)
{
	struct pvas_member *m;

	spin_lock(&pvas_members_lock);
	m = pvas_find_member(current->signal);
	WRITE_ONCE(m->entering, false);
	spin_unlock(&pvas_members_lock);
}

/* The program of a partition, with a reference, or NULL if it is gone. */
struct file *pvas_partition_exe(struct pvas_partition *part)
{
	struct file *exe;

	spin_lock(&pvas_members_lock);
	exe = part->exe ? get_file(part->exe) : NULL;
	spin_unlock(&pvas_members_lock);
	return exe;
}

struct file *pvas_task_take_exe(struct pvas_partition *part)
{
	struct file *exe;

	spin_lock(&pvas_members_lock);
	exe = part->exe;
	part->exe = NULL;
	spin_unlock(&pvas_members_lock);
	return exe;
}

/*
 * True if that was the last one: then the reclaim is on its way. The creator's
 * partition is empty: there is nothing to reclaim. Atomic.
 */
static bool pvas_member_unlink(struct pvas_member *m)
{
	struct pvas_partition *part = m->part;
	struct pvas_space *space = part->space;
	bool last;

	spin_lock(&space->lock);
	list_del(&m->list);
	last = --part->members == 0;
	/* An armed one that never came leaves nothing to unmap. */
	if (last && part->state == PVAS_PART_RUNNING)
		part->state = PVAS_PART_ENDING;
	if (last && part->state == PVAS_PART_RESERVED) {
		space->has_creator = false;
		space->occupied--;
	}
	spin_unlock(&space->lock);
	if (!last)
		return false;
	if (part->state != PVAS_PART_RESERVED) {
		pvas_partition_end(part);
		return true;
	}
	pvas_mm_drop_exe(part);
	/* A task that was about to enter when the creator let go of the mm may own it now. */
	pvas_mm_find_owner(space);
	/* What it has touched since CREATE may be too much to be nobody's. */
	if (pvas_space_is_over(space))
		pvas_mmput(space->mm);
	return false;
}

/*
 * The OOM killer holds off as long as it sees a victim whose mm still has its
 * pages. The pages go with the last task's exit_mm(): a victim that is reaped
 * before that would send the killer to the next process.
 */
static void pvas_wait_for_oom(struct mm_struct *mm, unsigned long timeout)
{
	unsigned long end = jiffies + timeout;

	while (!test_bit(MMF_OOM_SKIP, &mm->flags) && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
}

/*
 * The process has let go of the mm: runs in its own context. It waits for the
 * reclaim, but not for ever: a userfaultfd monitor that doesn't answer can
 * hold up the unmapping. Then the partition stays busy, and the process goes.
 */
static void pvas_member_left(struct callback_head *work)
{
	struct pvas_member *m = container_of(work, struct pvas_member, work);
	unsigned long timeout = msecs_to_jiffies(READ_ONCE(pvas_reclaim_wait_ms));

	/* The work's own reference goes last: with it, the space may be gone. */
	if (pvas_member_unlink(m) && wait_for_completion_timeout(&m->part->reclaimed, timeout))
		flush_work(&m->part->reclaim);
	if (READ_ONCE(m->part->space->oom))
		pvas_wait_for_oom(m->part->space->mm, timeout);
	pvas_member_free(m);
}

/* Atomic. The wait for the reclaim comes later, from task work. */
static void pvas_member_leave(struct pvas_member *m, enum task_work_notify_mode notify)
{
	init_task_work(&m->work, pvas_member_left);
	if (!task_work_add(current, &m->work, notify))
		return;
	/* Too late in exit for task work: nobody waits then. */
	pvas_member_unlink(m);
	pvas_member_free(m);
}

static struct pvas_member *pvas_take_armed(struct signal_struct *sig)
{
	struct pvas_member *m;

	if (!pvas_is_armed(sig))
		return NULL;
	spin_lock(&pvas_members_lock);
	m = pvas_find_armed(sig);
	if (m)
		hash_del_rcu(&m->armed_node);
	spin_unlock(&pvas_members_lock);
	return m;
}

/* When it returns the index can be taken again. */
int pvas_task_disarm(void)
{
	struct pvas_member *m = pvas_take_armed(current->signal);

	if (!m)
		return -ENOENT;
	pvas_member_left(&m->work);
	return 0;
}

/* The whole process leaves. */
static struct pvas_member *pvas_take_member(struct signal_struct *sig)
{
	struct pvas_member *m;

	spin_lock(&pvas_members_lock);
	m = pvas_find_member(sig);
	if (m)
		hash_del_rcu(&m->node);
	spin_unlock(&pvas_members_lock);
	return m;
}

/*
 * Does another thread of @tsk's process still have the mm? Threads that the
 * kernel made for itself there (io_uring's, vhost's) are not counted in
 * pvas_member.threads, for they come without passing through fork; one may
 * outlive all others. Of two threads that end together the one that takes
 * pvas_members_lock last sees the other without mm.
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

/* A thread has let go of the mm. Returns the member if it was the last. */
static struct pvas_member *pvas_take_thread(struct task_struct *tsk)
{
	struct pvas_member *m;

	spin_lock(&pvas_members_lock);
	m = pvas_find_member(tsk->signal);
	if (m && !pvas_is_kernel_worker(tsk))
		m->threads--;
	if (m && (m->threads > 0 || pvas_has_others(tsk, m->part->space->mm)))
		m = NULL;
	if (m)
		hash_del_rcu(&m->node);
	spin_unlock(&pvas_members_lock);
	return m;
}

/* In the middle of an exec that enters a space: leave the one before, and wait. */
void pvas_task_leave_for_exec(void)
{
	struct pvas_member *m = pvas_take_member(current->signal);

	if (m)
		pvas_member_left(&m->work);
}

/* Tracepoint sched_process_exec: an exec that led out of the space. */
void pvas_task_on_exec(struct task_struct *tsk)
{
	struct pvas_member *m;
	bool out;

	rcu_read_lock();
	m = pvas_find_member(tsk->signal);
	out = m && tsk->mm != m->part->space->mm;
	rcu_read_unlock();
	if (!out)
		return;
	m = pvas_take_member(tsk->signal);
	if (m)
		pvas_member_leave(m, TWA_RESUME);
}

/**
 * pvas_task_struck_by_oom - has the OOM killer chosen one of the tasks?
 * @space:	of this space
 *
 * If so the space is given up at once, see pvas_space_oom(). A member in the
 * list holds its signal_struct.
 */
bool pvas_task_struck_by_oom(struct pvas_space *space)
{
	struct pvas_member *m;
	bool struck;

	spin_lock(&space->lock);
	struck = space->oom;
	list_for_each_entry(m, &space->members, list) {
		if (struck)
			break;
		struck = READ_ONCE(m->signal->oom_mm) == space->mm;
	}
	spin_unlock(&space->lock);
	if (struck)
		pvas_space_oom(space);
	return struck;
}

/*
 * The OOM killer marks one process and kills all that share its mm. To look through all
 * members for the mark at the end of each would cost their number squared, so it is done for
 * the last of a partition, and else once a jiffy.
 */
static bool pvas_should_look_for_oom(const struct task_struct *tsk,
				     const struct pvas_partition *part)
{
	struct pvas_space *space = part->space;
	unsigned long now = jiffies;

	if (READ_ONCE(tsk->signal->oom_mm) || READ_ONCE(part->members) <= 1)
		return true;
	if (READ_ONCE(space->oom_looked) == now)
		return false;
	WRITE_ONCE(space->oom_looked, now);
	return true;
}

/*
 * Tracepoint sched_process_exit: after exit_mm(), for each thread, those that the
 * kernel made for itself included: one of them may be the process's last.
 */
void pvas_task_on_exit(struct task_struct *tsk)
{
	struct pvas_member *m;

	if (!atomic_read(&tsk->signal->live)) {
		m = pvas_take_armed(tsk->signal);
		if (m)
			pvas_member_leave(m, TWA_NONE);
	}

	rcu_read_lock();
	m = pvas_find_member(tsk->signal);
	rcu_read_unlock();
	/* It stays while this thread, which is one of its own, is counted. */
	if (!m)
		return;
	if ((tsk->exit_code & 0x7f) == SIGKILL && pvas_should_look_for_oom(tsk, m->part))
		pvas_task_struck_by_oom(m->part->space);
	m = pvas_take_thread(tsk);
	if (m)
		pvas_member_leave(m, TWA_NONE);
}

static void pvas_add_guest(struct pvas_partition *part, struct task_struct *child)
{
	struct pvas_space *space = part->space;
	struct pvas_member *m = kzalloc(sizeof(*m), GFP_ATOMIC);
	bool doomed;

	if (!m) {
		/* It must not run uncounted: the partition could go from under it. */
		send_sig(SIGKILL, child, 1);
		return;
	}
	kref_get(&part->ref);
	pvas_member_init(m, part, child);

	spin_lock(&space->lock);
	part->members++;
	list_add_tail(&m->list, &space->members);
	/* Made while kill_all() ran: the loop there did not see it. */
	doomed = space->killed;
	spin_lock(&pvas_members_lock);
	hash_add_rcu(pvas_members, &m->node, (unsigned long)m->signal);
	spin_unlock(&pvas_members_lock);
	spin_unlock(&space->lock);
	if (doomed)
		send_sig(SIGKILL, child, 1);
}

/* Tracepoint sched_process_fork: the child exists and has not run yet. */
void pvas_task_on_fork(struct task_struct *parent, struct task_struct *child)
{
	struct pvas_partition *part;
	struct pvas_member *m;

	rcu_read_lock();
	m = pvas_find_member(parent->signal);
	rcu_read_unlock();
	/* The parent is the caller: its membership and the partition stay. */
	if (!m)
		return;
	if (child->signal == parent->signal) {
		spin_lock(&pvas_members_lock);
		m->threads++;
		spin_unlock(&pvas_members_lock);
		return;
	}
	part = m->part;
	if (child->mm == part->space->mm)
		pvas_add_guest(part, child);
	else if (child->mm)
		pvas_mm_fix_fork_child(part, child);
}

void pvas_task_kill_all(struct pvas_space *space)
{
	struct pvas_member *m;

	spin_lock(&space->lock);
	space->killed = true;
	/* It ends: nobody comes in any more, by the files of others neither. */
	space->dead = true;
	list_for_each_entry(m, &space->members, list)
		kill_pid(m->pid, SIGKILL, 1);
	spin_unlock(&space->lock);
}
