// SPDX-License-Identifier: LGPL-2.1-or-later
/* Who am I: find the space header, if the caller is a task. */
#include <errno.h>
#include <stdbool.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>

#include "private.h"
#include "pvas.h"
#include "rawsys.h"

/* Longest wait for a header to be published */
#define PUBLISH_MS 5000

/* getauxval() is a search; what it finds holds for the life of the program. */
static const struct pvas_start *find_start(void)
{
	static const struct pvas_start *found;
	const struct pvas_start *s = __atomic_load_n(&found, __ATOMIC_RELAXED);
	int saved = errno;

	if (s)
		return s;
	s = (const struct pvas_start *)getauxval(AT_PVAS);
	errno = saved;
	__atomic_store_n(&found, s, __ATOMIC_RELAXED);
	return s;
}

static bool published(const struct pvas_header *h)
{
	return __atomic_load_n(&h->magic, __ATOMIC_ACQUIRE) == PVAS_HEADER_MAGIC;
}

/*
 * Who joins a space by its key may run before the process that made it has
 * published the header. The module says that we run there; in a fork child it
 * doesn't, since the table is wiped as the header is. Time is short, unless the
 * maker was killed just then.
 */
static bool wait_published(const struct pvas_header *h, const struct pvas_start *s)
{
	const struct pvas_part *part = (const struct pvas_part *)s->table + s->index;
	const struct timespec ms = { .tv_nsec = 1000000 };
	int left = PUBLISH_MS;

	while (!published(h)) {
		if (__atomic_load_n(&part->state, __ATOMIC_ACQUIRE) != PVAS_PART_RUNNING ||
		    part->gen != s->gen || left-- == 0)
			return false;
		pvas_raw2(__NR_nanosleep, &ms, NULL);
	}
	return true;
}

/*
 * A fork child has the stack of its parent, hence its pvas_start too; but the
 * header is wiped on fork and reads zero there. A vfork child sees all that
 * its parent sees, and counts as its parent.
 */
struct pvas_me pvas_me(void)
{
	const struct pvas_start *s = find_start();
	struct pvas_me me = { NULL, 0, 0 };
	struct pvas_header *h;

	if (!s || s->table < PVAS_HEADER_TABLE)
		return me;
	h = (struct pvas_header *)(s->table - PVAS_HEADER_TABLE);
	if ((!published(h) && !wait_published(h, s)) || h->version != PVAS_HEADER_VERSION)
		return me;
	me.header = h;
	me.index = s->index;
	me.gen = s->gen;
	return me;
}

PVAS_PUBLIC int pvas_self(void)
{
	struct pvas_me me = pvas_me();

	return me.header ? (int)me.index : -ESRCH;
}

PVAS_PUBLIC uint32_t pvas_space_id(void)
{
	struct pvas_me me = pvas_me();

	return me.header ? me.header->id : 0;
}
