// SPDX-License-Identifier: LGPL-2.1-or-later
/* pvas_name_import, pvas_name_import_wait: look up a name that a task exports. */
#include <errno.h>

#include "clock.h"
#include "private.h"
#include "pvas.h"
#include "slot.h"

/* A waiter checks that often whether the other task still exists. */
#define SLICE_MS 50

/* Try one slot: 1: found; 0: another name; -EAGAIN: it changed meanwhile. */
static int try_slot(const struct pvas_slot *s, uint64_t tag, const struct pvas_name *n,
		    void **ptr)
{
	uint64_t value;
	int hit;

	hit = pvas_slot_has(s, n);
	value = __atomic_load_n(&s->ptr, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&s->tag, __ATOMIC_RELAXED) != tag)
		return -EAGAIN;
	if (hit)
		*ptr = (void *)value;
	return hit;
}

static int search(const struct pvas_area *a, uint32_t gen, const struct pvas_name *n, void **ptr)
{
	unsigned int i;
	uint64_t tag;
	int ret;

	for (i = 0; i < PVAS_AREA_SLOTS; i++) {
		const struct pvas_slot *s = &a->slots[(n->hash + i) % PVAS_AREA_SLOTS];

		do {
			tag = pvas_slot_tag(s);
			ret = 0;
			if (pvas_slot_state(tag, gen) == PVAS_SLOT_LIVE)
				ret = try_slot(s, tag, n, ptr);
		} while (ret == -EAGAIN);
		if (ret)
			return 0;
		if (pvas_slot_state(tag, gen) == PVAS_SLOT_FREE)
			break;
	}
	return -ENOENT;
}

/* Search one partition; @part receives its entry as read before the search. */
static int import_from(const struct pvas_header *h, uint32_t index, const struct pvas_name *n,
		       struct pvas_part *part, void **ptr)
{
	pvas_partition_read(h, index, part);
	if (part->state != PVAS_PART_RUNNING)
		return -ENOENT;
	return search(pvas_header_area(h, index), part->gen, n, ptr) ? -ENOENT : (int)index;
}

static int import_any(const struct pvas_header *h, const struct pvas_name *n, void **ptr)
{
	struct pvas_part part;
	uint32_t i;
	int ret;

	for (i = h->first; i <= h->last && i < h->entries; i++) {
		ret = import_from(h, i, n, &part, ptr);
		if (ret >= 0)
			return ret;
	}
	return -ENOENT;
}

static int check(const struct pvas_self *self, unsigned int index)
{
	if (index == PVAS_ANY)
		return 0;
	if (index < self->header->first || index > self->header->last ||
	    index >= self->header->entries)
		return -EINVAL;
	return 0;
}

int pvas_import_as(const struct pvas_self *self, unsigned int index, const char *name, void **ptr)
{
	struct pvas_part part;
	struct pvas_name n;

	if (check(self, index) || pvas_name_set(&n, name))
		return -EINVAL;
	if (index == PVAS_ANY)
		return import_any(self->header, &n, ptr);
	return import_from(self->header, index, &n, &part, ptr);
}

/*
 * Has the task ended that the caller waits for? @gen is the first generation that was
 * seen in the partition; one that was never taken (gen 0) may still get its task.
 */
static int owner_dead(const struct pvas_part *part, uint32_t *gen)
{
	if (!*gen)
		*gen = part->gen;
	if (!*gen)
		return 0;
	return part->gen != *gen || part->state == PVAS_PART_FREE ||
	       part->state == PVAS_PART_ENDING;
}

static int slice(int64_t deadline)
{
	int64_t left;

	if (deadline < 0)
		return SLICE_MS;
	left = deadline - now_ms();
	return left < SLICE_MS ? (int)left : SLICE_MS;
}

int pvas_import_wait_as(const struct pvas_self *self, unsigned int index, const char *name,
			int timeout_ms, void **ptr)
{
	int64_t deadline = timeout_ms < 0 ? -1 : now_ms() + timeout_ms;
	struct pvas_header *h = self->header;
	struct pvas_eventcount *exports = &h->exports;
	struct pvas_part part;
	struct pvas_name n;
	uint32_t gen = 0, seq;
	int ret, ms;

	if (check(self, index) || pvas_name_set(&n, name))
		return -EINVAL;
	if (index != PVAS_ANY)
		exports = &pvas_header_area(h, index)->exports;
	for (;;) {
		/* Read before the search: a later export changes @seq. */
		seq = __atomic_load_n(&exports->seq, __ATOMIC_SEQ_CST);
		if (index == PVAS_ANY)
			ret = import_any(h, &n, ptr);
		else
			ret = import_from(h, index, &n, &part, ptr);
		if (ret != -ENOENT)
			return ret;
		if (index != PVAS_ANY && owner_dead(&part, &gen))
			return -EOWNERDEAD;
		ms = slice(deadline);
		if (ms <= 0)
			return -ETIMEDOUT;
		pvas_eventcount_wait(exports, seq, ms);
	}
}

PVAS_PUBLIC int pvas_name_import(unsigned int index, const char *name, void **ptr)
{
	struct pvas_self self = pvas_self();

	return self.header ? pvas_import_as(&self, index, name, ptr) : -ESRCH;
}

PVAS_PUBLIC int pvas_name_import_wait(unsigned int index, const char *name, int timeout_ms,
				      void **ptr)
{
	struct pvas_self self = pvas_self();

	return self.header ? pvas_import_wait_as(&self, index, name, timeout_ms, ptr) : -ESRCH;
}
