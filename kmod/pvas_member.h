/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Members, and their table: for the files that enter and remove processes, pvas_task.c,
 * pvas_leave.c and pvas_fork.c, and those that look at each of them.
 */
#ifndef PVAS_MEMBER_H
#define PVAS_MEMBER_H

#include <linux/hashtable.h>
#include <linux/spinlock.h>

#include "pvas.h"

/* Has a member the mm of its space? */
enum pvas_presence {
	PVAS_ABSENT,
	PVAS_COMING,		/* in pvas_space.coming */
	PVAS_JOINED,		/* in pvas_space.occupied */
};

/**
 * struct pvas_member - a process in a partition, or armed to be
 * @node:	in the hash of members
 * @armed_node:	in the hash of the armed
 * @list:	in space->members
 * @signal:	the key. It survives exec and the change of the group leader
 * @tsk:	a thread of the process, which may have exited. The reference keeps @signal
 *		from being freed and used for another process
 * @threads:	of the process that have the mm, but the kernel's; under pvas_members_lock
 * @presence:	see pvas_presence_set(); under space->lock
 * @entering:	exec is still building the task: hooks ignore it
 * @reclaims:	its leaving has started the reclaim of the partition
 * @switching:	it looks like a kernel thread, see pvas_signal.c; under its siglock
 * @held:	signals that were sent to it meanwhile; under its siglock
 * @previous:	in an exec that stays: the same process with the old program, which has left
 * @left_at:	in jiffies
 * @work:	runs after the process has left
 * @mnt_ns:	until then, its mount namespace, held: see pvas_member_leave()
 */
struct pvas_member {
	struct hlist_node node;
	struct hlist_node armed_node;
	struct list_head list;
	struct signal_struct *signal;
	struct task_struct *tsk;
	struct pvas_partition *part;
	struct pid *pid;
	int threads;
	enum pvas_presence presence;
	bool entering;
	bool reclaims;
	bool switching;
	struct list_head held;
	struct pvas_member *previous;
	unsigned long left_at;
	struct callback_head work;
	struct ns_common *mnt_ns;
	struct rcu_head rcu;
};

extern raw_spinlock_t pvas_members_lock;

void pvas_presence_set(struct pvas_member *m, enum pvas_presence now);	/* pvas_space.c */

/* Under RCU or pvas_members_lock. */
struct pvas_member *pvas_member_find(const struct signal_struct *sig);
struct pvas_member *pvas_armed_find(const struct signal_struct *sig);
bool pvas_is_armed(const struct signal_struct *sig);
bool pvas_is_known(const struct signal_struct *sig);

/* Under pvas_members_lock. To remove: hash_del_rcu() of the node. */
void pvas_member_hash(struct pvas_member *m);
void pvas_armed_hash(struct pvas_member *m);

struct pvas_member *pvas_member_alloc(struct pvas_space *space);
void pvas_member_init(struct pvas_member *m, struct pvas_partition *part,
		      struct task_struct *tsk);
void pvas_member_free(struct pvas_member *m);

#endif /* PVAS_MEMBER_H */
