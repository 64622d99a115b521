// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the table of partitions in the space header, which tasks read.
 */
#include "user.h"

/* As the module does: @state last on entry and first on leaving. */
void user_publish(struct user_space *u, struct user_part *p, uint32_t state)
{
	struct pvas_part *entry = &u->table[p - u->parts];

	if (state != PVAS_PART_RUNNING)
		__atomic_store_n(&entry->state, state, __ATOMIC_SEQ_CST);
	__atomic_store_n(&entry->gen, p->gen, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->pid, state == PVAS_PART_RUNNING ? p->pid : 0, __ATOMIC_RELAXED);
	if (state == PVAS_PART_RUNNING)
		__atomic_store_n(&entry->state, state, __ATOMIC_RELEASE);
}
