/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How accumulates keep each other away: by an announcement, or by the target's lock for them. */
#ifndef OSC_PVAS_EXCLUDE_H
#define OSC_PVAS_EXCLUDE_H

#include "osc_pvas.h"

/*
 * An announcement that this rank uses an atomic instruction, on whichever target; it never waits
 * then. A rank that has the lock goes first.
 */
static inline void mca_osc_pvas_end_atomic(struct mca_osc_pvas_module *m)
{
	if (__builtin_expect(opal_using_threads(), 0))
		__atomic_fetch_sub(&m->own->busy, 1, __ATOMIC_RELEASE);
	else
		__atomic_store_n(&m->own->busy, 0, __ATOMIC_RELEASE);
}

/* Once is enough. Like @busy, it is stored before the lock is read, by the fence that follows. */
static inline void mca_osc_pvas_announce(struct mca_osc_pvas_target *target)
{
	__atomic_store_n(&target->state->atomics, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&target->announced, true, __ATOMIC_RELEASE);
}

static inline void mca_osc_pvas_begin_atomic(struct mca_osc_pvas_module *m,
					     struct mca_osc_pvas_target *target)
{
	struct mca_osc_pvas_state *state = target->state;

	if (__builtin_expect(!mca_osc_pvas_load(&target->announced), 0))
		mca_osc_pvas_announce(target);
	for (;;) {
		if (__builtin_expect(opal_using_threads(), 0))
			__atomic_fetch_add(&m->own->busy, 1, __ATOMIC_SEQ_CST);
		else
			__atomic_exchange_n(&m->own->busy, 1, __ATOMIC_SEQ_CST);
		if (__builtin_expect(!mca_osc_pvas_load(&state->acc_lock), 1))
			return;
		mca_osc_pvas_end_atomic(m);
		mca_osc_pvas_wait_until(m, !mca_osc_pvas_load(&state->acc_lock));
	}
}

static inline void mca_osc_pvas_lock_accumulates(struct mca_osc_pvas_module *m,
						 struct mca_osc_pvas_state *state)
{
	uint64_t *lock = &state->acc_lock, none = 0;

	mca_osc_pvas_count(locked_accumulates, 1);
	while (!__atomic_compare_exchange_n(lock, &none, m->rank + 1, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED)) {
		mca_osc_pvas_wait_until(m, !mca_osc_pvas_load(lock));
		none = 0;
	}
}

static inline void mca_osc_pvas_unlock_accumulates(struct mca_osc_pvas_state *state)
{
	__atomic_store_n(&state->acc_lock, 0, __ATOMIC_RELEASE);
}

/* For the holder of the lock: those that come later see it, and wait. */
static inline void mca_osc_pvas_wait_for_atomics(struct mca_osc_pvas_module *m)
{
	const struct mca_osc_pvas_target *rank = m->targets, *end = rank + m->size;

	for (; rank < end; rank++)
		mca_osc_pvas_wait_until(m, !mca_osc_pvas_load(&rank->state->busy));
}

#endif /* OSC_PVAS_EXCLUDE_H */
