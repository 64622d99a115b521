// SPDX-License-Identifier: LGPL-2.1-or-later
/* Find the space header, if the caller is a task. */
#include <errno.h>
#include <sys/auxv.h>

#include "private.h"
#include "pvas.h"

/* getauxval() searches each time, but its result never changes: keep it. */
static const struct pvas_start *find_start(void)
{
	static const struct pvas_start *found;
	const struct pvas_start *s = __atomic_load_n(&found, __ATOMIC_RELAXED);
	int saved = errno;

	if (s)
		return s;
	s = (const struct pvas_start *)getauxval(AT_PVAS);
	if (!s)
		pvas_warn_of_leaving();
	errno = saved;
	__atomic_store_n(&found, s, __ATOMIC_RELAXED);
	return s;
}

/*
 * A fork child has a copy of its parent's stack, and so of pvas_start; but there the
 * header, which is wiped on fork, reads as zeros. A vfork child shares its parent's
 * memory, and counts as its parent.
 */
struct pvas_self pvas_self(void)
{
	const struct pvas_start *s = find_start();
	struct pvas_self self = { NULL, 0, 0 };
	struct pvas_header *h;

	if (!s || s->table < PVAS_HEADER_TABLE)
		return self;
	h = (struct pvas_header *)(s->table - PVAS_HEADER_TABLE);
	if (__atomic_load_n(&h->magic, __ATOMIC_ACQUIRE) != PVAS_HEADER_MAGIC ||
	    h->version != PVAS_HEADER_VERSION)
		return self;
	self.header = h;
	self.index = s->index;
	self.gen = s->gen;
	return self;
}

PVAS_PUBLIC int pvas_task_get_index(void)
{
	struct pvas_self self = pvas_self();

	return self.header ? (int)self.index : -ESRCH;
}
