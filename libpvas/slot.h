/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Slots of the export areas: many readers, one writer at a time. Readers never wait
 * for a lock.
 *
 * A writer (the owner, under the area's lock) marks the slot BUSY, stores name
 * and pointer, and marks it LIVE; every step changes the version in the tag. A
 * reader uses what it has read only if the tag was the same before and after: a
 * sequence lock (H.-J. Boehm, "Can seqlocks get along with programming language
 * memory models?", MSPC 2012). All accesses are atomic, so the race is defined.
 */
#ifndef PVAS_SLOT_H
#define PVAS_SLOT_H

#include <string.h>

#include "header.h"
#include "private.h"

#define SLOT_STATE(tag)	((tag) & 3)

static inline uint64_t pvas_slot_tag(const struct pvas_slot *s)
{
	return __atomic_load_n(&s->tag, __ATOMIC_ACQUIRE);
}

/* The state in generation @gen; a slot of another generation is free. */
static inline int pvas_slot_state(uint64_t tag, uint32_t gen)
{
	return tag >> 32 == gen ? SLOT_STATE(tag) : PVAS_SLOT_FREE;
}

/* The tag after @tag: the next version, of @gen, in @state. */
static inline uint64_t pvas_slot_next(uint64_t tag, uint32_t gen, int state)
{
	return (uint64_t)gen << 32 | (((uint32_t)tag + 4) & ~3U) | state;
}

static inline int pvas_slot_has(const struct pvas_slot *s, const struct pvas_name *n)
{
	int i;

	for (i = 0; i < PVAS_NAME_WORDS; i++)
		if (__atomic_load_n(&s->name[i], __ATOMIC_RELAXED) != n->words[i])
			return 0;
	return 1;
}

#endif /* PVAS_SLOT_H */
