// SPDX-License-Identifier: GPL-2.0-only
/*
 * Members, their partitions, and the tables in which a process is found. The lookup by
 * current->signal is the fast path of every hook.
 */
#include <linux/pid.h>
#include <linux/sched/coredump.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "pvas.h"
#include "pvas_member.h"

/* Both are read under RCU and changed under pvas_members_lock. */
static DEFINE_HASHTABLE(pvas_member_table, 10);
static DEFINE_HASHTABLE(pvas_armed_table, 10);
DEFINE_RAW_SPINLOCK(pvas_members_lock);

void pvas_member_hash(struct pvas_member *m)
{
	lockdep_assert_held(&pvas_members_lock);
	hash_add_rcu(pvas_member_table, &m->node, (unsigned long)m->signal);
}

void pvas_armed_hash(struct pvas_member *m)
{
	lockdep_assert_held(&pvas_members_lock);
	hash_add_rcu(pvas_armed_table, &m->armed_node, (unsigned long)m->signal);
}

struct pvas_member *pvas_member_find(const struct signal_struct *sig)
{
	struct pvas_member *m;

	hash_for_each_possible_rcu(pvas_member_table, m, node, (unsigned long)sig,
				   lockdep_is_held(&pvas_members_lock))
		if (m->signal == sig)
			return m;
	return NULL;
}

struct pvas_member *pvas_armed_find(const struct signal_struct *sig)
{
	struct pvas_member *m;

	hash_for_each_possible_rcu(pvas_armed_table, m, armed_node, (unsigned long)sig,
				   lockdep_is_held(&pvas_members_lock))
		if (m->signal == sig)
			return m;
	return NULL;
}

/*
 * Without the lock, because most processes are not. Only a process itself changes its
 * own entry, so it cannot miss a change.
 */
bool pvas_is_armed(const struct signal_struct *sig)
{
	bool armed;

	rcu_read_lock();
	armed = pvas_armed_find(sig);
	rcu_read_unlock();
	return armed;
}

/* Is it a member's, or an armed process's? The same. */
bool pvas_is_known(const struct signal_struct *sig)
{
	bool known;

	rcu_read_lock();
	known = pvas_member_find(sig) || pvas_armed_find(sig);
	rcu_read_unlock();
	return known;
}

static __always_inline struct pvas_partition *pvas_callers_partition(bool entering_too)
{
	struct pvas_partition *part = NULL;
	struct pvas_member *m;

	rcu_read_lock();
	m = pvas_member_find(current->signal);
	if (m && (entering_too || !READ_ONCE(m->entering)) && current->mm == m->part->space->mm)
		part = m->part;
	rcu_read_unlock();
	return part;
}

/**
 * pvas_find_partition - the partition of the caller, whose mm may be a space's
 *
 * The result is valid without a reference: only the caller's own exit or exec ends its
 * membership. In an exec out of the space the caller has a new mm already, whose mappings
 * are not bounded.
 */
struct pvas_partition *pvas_find_partition(void)
{
	return pvas_callers_partition(false);
}

/* The same, also for an exec that has not built the task yet, and may fail. */
struct pvas_partition *pvas_task_partition_entered(void)
{
	return pvas_mm_may_be_space(current->mm) ? pvas_callers_partition(true) : NULL;
}

bool pvas_task_has_exe(struct task_struct *tsk)
{
	struct pvas_member *m;
	bool has;

	rcu_read_lock();
	m = pvas_member_find(tsk->signal);
	has = m && READ_ONCE(m->part->exe);
	rcu_read_unlock();
	return has;
}

struct file *pvas_task_exe_get(struct task_struct *tsk)
{
	struct file *exe = NULL;
	struct pvas_member *m;

	raw_spin_lock(&pvas_members_lock);
	m = pvas_member_find(tsk->signal);
	if (m && m->part->exe)
		exe = get_file(m->part->exe);
	raw_spin_unlock(&pvas_members_lock);
	return exe;
}

/* The program of a partition, with a reference, or NULL. */
struct file *pvas_partition_exe(struct pvas_partition *part)
{
	struct file *exe;

	raw_spin_lock(&pvas_members_lock);
	exe = part->exe ? get_file(part->exe) : NULL;
	raw_spin_unlock(&pvas_members_lock);
	return exe;
}

/* The partition's own reference. */
struct file *pvas_partition_take_exe(struct pvas_partition *part)
{
	struct file *exe;

	raw_spin_lock(&pvas_members_lock);
	exe = part->exe;
	/* pvas_task_has_exe() looks without the lock. */
	WRITE_ONCE(part->exe, NULL);
	raw_spin_unlock(&pvas_members_lock);
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

/**
 * pvas_partition_get_of - the partition of a process, with a reference
 * @sig:	the process
 *
 * For a thread that has let go of the mm. One that the kernel created is not counted in
 * pvas_member.threads, so another one of the process may end the membership meanwhile.
 *
 * Return: the partition, or NULL if the process is in no space.
 */
struct pvas_partition *pvas_partition_get_of(const struct signal_struct *sig)
{
	struct pvas_partition *part = NULL;
	struct pvas_member *m;

	rcu_read_lock();
	m = pvas_member_find(sig);
	rcu_read_unlock();
	/* Most processes are in no space: their exits don't take the lock. */
	if (!m)
		return NULL;
	raw_spin_lock(&pvas_members_lock);
	m = pvas_member_find(sig);
	if (m) {
		part = m->part;
		kref_get(&part->ref);
	}
	raw_spin_unlock(&pvas_members_lock);
	return part;
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
	return part;
}

/* @tsk is a thread of the process; it holds the key, see struct pvas_member. */
void pvas_member_init(struct pvas_member *m, struct pvas_partition *part,
			     struct task_struct *tsk)
{
	m->part = part;
	m->tsk = get_task_struct(tsk);
	m->signal = tsk->signal;
	m->pid = get_pid(task_tgid(tsk));
	m->threads = 1;
	INIT_LIST_HEAD(&m->held);
}

/* The caller as the first member of a new partition, on no list yet. */
struct pvas_member *pvas_member_alloc(struct pvas_space *space)
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

void pvas_member_free(struct pvas_member *m)
{
	put_pid(m->pid);
	put_task_struct(m->tsk);
	pvas_partition_put(m->part);
	kfree_rcu(m, rcu);
}
