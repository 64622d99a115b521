// SPDX-License-Identifier: LGPL-2.1-or-later
/* pvas_name_export, pvas_name_unexport: publish a pointer under a name. */
#include <errno.h>
#include <signal.h>

#include "private.h"
#include "pvas.h"
#include "rawsys.h"
#include "slot.h"

_Static_assert(PVAS_EXPORT_MAX == PVAS_AREA_SLOTS, "one slot a name");
_Static_assert(PVAS_NAME_MAX + 1 == sizeof(((struct pvas_slot *)0)->name), "and its NUL");

int pvas_name_set(struct pvas_name *n, const char *name)
{
	size_t len = strnlen(name, PVAS_NAME_MAX + 1);
	uint64_t hash = 14695981039346656037ULL;	/* FNV-1a, by words */
	int i;

	if (len < 1 || len > PVAS_NAME_MAX)
		return -EINVAL;
	memset(n->words, 0, sizeof(n->words));
	memcpy(n->words, name, len);
	for (i = 0; i < PVAS_NAME_WORDS; i++)
		hash = (hash ^ n->words[i]) * 1099511628211ULL;
	n->hash = hash >> 32;
	return 0;
}

/* ---- the lock of an area, between the threads of its owner ---- */

/* Does the holder of the lock still exist? It may have been a vfork child that was killed. */
static int holder_lives(uint64_t held)
{
	return pvas_raw2(__NR_kill, (uint32_t)held, 0) != -ESRCH;
}

static void lock(struct pvas_area *a, uint32_t gen)
{
	uint64_t mine = (uint64_t)gen << 32 | (uint32_t)pvas_raw0(__NR_gettid);
	uint64_t held = 0;
	int spins = 0;

	while (!__atomic_compare_exchange_n(&a->lock, &held, mine, 0, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		/* Held by an earlier task here, or by a thread that was killed. */
		int stale = held && (held >> 32 != gen || (++spins % 1024 == 0 &&
							   !holder_lives(held)));

		if (!stale) {
			held = 0;
			pvas_raw0(__NR_sched_yield);
		}
		/* If it is stale, @held is unchanged: the next exchange takes the lock over. */
	}
}

static void unlock(struct pvas_area *a)
{
	__atomic_store_n(&a->lock, 0, __ATOMIC_RELEASE);
}

/* ---- slots, under the lock ---- */

/* The slot of @n in @gen, or NULL. @room receives a slot for it, or NULL if all are in use. */
static struct pvas_slot *find(struct pvas_area *a, uint32_t gen, const struct pvas_name *n,
			      struct pvas_slot **room)
{
	unsigned int i;

	*room = NULL;
	for (i = 0; i < PVAS_AREA_SLOTS; i++) {
		struct pvas_slot *s = &a->slots[(n->hash + i) % PVAS_AREA_SLOTS];
		int state = pvas_slot_state(pvas_slot_tag(s), gen);

		if (state == PVAS_SLOT_LIVE && pvas_slot_has(s, n))
			return s;
		/* BUSY: left by a thread that was killed, because only the lock's holder writes. */
		if (state != PVAS_SLOT_LIVE && !*room)
			*room = s;
		if (state == PVAS_SLOT_FREE)
			break;
	}
	return NULL;
}

static void fill(struct pvas_slot *s, uint32_t gen, const struct pvas_name *n, const void *ptr)
{
	uint64_t busy = pvas_slot_next(s->tag, gen, PVAS_SLOT_BUSY);
	int i;

	__atomic_store_n(&s->tag, busy, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (i = 0; i < PVAS_NAME_WORDS; i++)
		__atomic_store_n(&s->name[i], n->words[i], __ATOMIC_RELAXED);
	__atomic_store_n(&s->ptr, (uint64_t)ptr, __ATOMIC_RELAXED);
	__atomic_store_n(&s->tag, pvas_slot_next(busy, gen, PVAS_SLOT_LIVE), __ATOMIC_RELEASE);
}

static int add(const struct pvas_self *self, const struct pvas_name *n, const void *ptr)
{
	struct pvas_area *a = pvas_header_area(self->header, self->index);
	struct pvas_slot *room;
	int err = 0;

	lock(a, self->gen);
	if (find(a, self->gen, n, &room))
		err = -EEXIST;
	else if (!room)
		err = -ENOSPC;
	else
		fill(room, self->gen, n, ptr);
	unlock(a);
	if (err)
		return err;
	pvas_eventcount_notify(&a->exports);
	pvas_eventcount_notify(&self->header->exports);
	return 0;
}

static int withdraw(const struct pvas_self *self, const struct pvas_name *n)
{
	struct pvas_area *a = pvas_header_area(self->header, self->index);
	struct pvas_slot *room, *s;

	lock(a, self->gen);
	s = find(a, self->gen, n, &room);
	if (s)
		__atomic_store_n(&s->tag, pvas_slot_next(s->tag, self->gen, PVAS_SLOT_GONE),
				 __ATOMIC_RELEASE);
	unlock(a);
	return s ? 0 : -ENOENT;
}

int pvas_export_as(const struct pvas_self *self, const char *name, const void *ptr)
{
	struct pvas_name n;
	int err = pvas_name_set(&n, name);

	return err ? err : add(self, &n, ptr);
}

int pvas_unexport_as(const struct pvas_self *self, const char *name)
{
	struct pvas_name n;
	int err = pvas_name_set(&n, name);

	return err ? err : withdraw(self, &n);
}

PVAS_PUBLIC int pvas_name_export(const char *name, const void *ptr)
{
	struct pvas_self self = pvas_self();

	return self.header ? pvas_export_as(&self, name, ptr) : -ESRCH;
}

PVAS_PUBLIC int pvas_name_unexport(const char *name)
{
	struct pvas_self self = pvas_self();

	return self.header ? pvas_unexport_as(&self, name) : -ESRCH;
}
