/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of members, for the files that enter and remove processes: pvas_task.c,
 * pvas_leave.c and pvas_fork.c.
 */
#ifndef PVAS_MEMBER_H
#define PVAS_MEMBER_H

#include <linux/hashtable.h>
#include <linux/spinlock.h>

#include "pvas.h"

extern raw_spinlock_t pvas_members_lock;

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
