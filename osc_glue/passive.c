// SPDX-License-Identifier: LGPL-2.1-or-later
/* Passive target: locks, and the calls inside of their epochs. */
#include "osc_pvas.h"

/* Polls for which a shared lock lets one go first who waits for the exclusive one; with yields */
#define COURTESY 1000
#define COURTESY_YIELDS 16

#define HOLDER_SHIFT 32

/* ---- the lock of a target ---- */

static void acquire_shared(struct mca_osc_pvas_module *m, struct mca_osc_pvas_state *state)
{
	const unsigned int most = mca_osc_pvas_component.yield ? COURTESY_YIELDS : COURTESY;
	unsigned int polls = 0;
	uint64_t before;

	while (mca_osc_pvas_load(&state->wanted) && polls < most)
		mca_osc_pvas_pause(m, &polls);
	for (;;) {
		before = __atomic_fetch_add(&state->lock, 1, __ATOMIC_SEQ_CST);
		if (!(before >> HOLDER_SHIFT))
			return;
		__atomic_fetch_sub(&state->lock, 1, __ATOMIC_SEQ_CST);
		mca_osc_pvas_wait_until(m, !(mca_osc_pvas_load(&state->lock) >> HOLDER_SHIFT));
	}
}

static uint64_t exclusive(const struct mca_osc_pvas_module *m)
{
	return (uint64_t)(m->rank + 1) << HOLDER_SHIFT;
}

static bool try_exclusive(struct mca_osc_pvas_module *m, struct mca_osc_pvas_state *state)
{
	uint64_t none = 0;

	return __atomic_compare_exchange_n(&state->lock, &none, exclusive(m), false,
					   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static void acquire_exclusive(struct mca_osc_pvas_module *m, struct mca_osc_pvas_state *state)
{
	unsigned int polls = 0;

	if (try_exclusive(m, state))
		return;
	do {
		__atomic_store_n(&state->wanted, 1, __ATOMIC_RELAXED);
		while (mca_osc_pvas_load(&state->lock))
			mca_osc_pvas_pause(m, &polls);
	} while (!try_exclusive(m, state));
	__atomic_store_n(&state->wanted, 0, __ATOMIC_RELAXED);
}

/* Also completes all accesses: an atomic instruction is a fence. */
static void release(struct mca_osc_pvas_module *m, struct mca_osc_pvas_target *target)
{
	switch (target->access) {
	case MCA_OSC_PVAS_SHARED:
	case MCA_OSC_PVAS_ALL_SHARED:
		__atomic_fetch_sub(&target->state->lock, 1, __ATOMIC_SEQ_CST);
		break;
	case MCA_OSC_PVAS_EXCLUSIVE:
		__atomic_fetch_sub(&target->state->lock, exclusive(m), __ATOMIC_SEQ_CST);
		break;
	default:
		mca_osc_pvas_complete_all();
	}
	__atomic_store_n(&target->access, MCA_OSC_PVAS_NONE, __ATOMIC_RELEASE);
}

/* Nobody unlocks, or needs to, what a task held that has ended: the job ends. */
static void check_alive(struct mca_osc_pvas_module *m, int rank)
{
	if (!mca_osc_pvas_alive(&m->targets[rank]))
		mca_osc_pvas_end_job(m, rank);
}

/* False: another thread has it, or is getting it. */
static bool claim(struct mca_osc_pvas_target *target)
{
	uint8_t none = MCA_OSC_PVAS_NONE;

	return __atomic_compare_exchange_n(&target->access, &none, MCA_OSC_PVAS_BUSY, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void grant(struct mca_osc_pvas_target *target, enum mca_osc_pvas_access access)
{
	__atomic_store_n(&target->access, access, __ATOMIC_RELEASE);
}

/* ---- one target ---- */

int mca_osc_pvas_lock(int type, int rank, int assertion, ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);
	struct mca_osc_pvas_target *target = &m->targets[rank];

	if (m->fence == MCA_OSC_PVAS_USED || m->lock_all || m->nr_started >= 0 || !claim(target))
		return OMPI_ERR_RMA_SYNC;
	check_alive(m, rank);
	m->fence = MCA_OSC_PVAS_CLOSED;
	if (assertion & MPI_MODE_NOCHECK) {
		grant(target, MCA_OSC_PVAS_UNCHECKED);
	} else if (type == MPI_LOCK_EXCLUSIVE) {
		acquire_exclusive(m, target->state);
		grant(target, MCA_OSC_PVAS_EXCLUSIVE);
	} else {
		acquire_shared(m, target->state);
		grant(target, MCA_OSC_PVAS_SHARED);
	}
	__atomic_fetch_add(&m->nr_locks, 1, __ATOMIC_RELAXED);
	mca_osc_pvas_count(locks, 1);
	return OMPI_SUCCESS;
}

int mca_osc_pvas_unlock(int rank, ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);
	struct mca_osc_pvas_target *target = &m->targets[rank];

	if (target->access < MCA_OSC_PVAS_SHARED || target->access > MCA_OSC_PVAS_UNCHECKED)
		return OMPI_ERR_RMA_SYNC;
	check_alive(m, rank);
	release(m, target);
	__atomic_fetch_sub(&m->nr_locks, 1, __ATOMIC_RELAXED);
	mca_osc_pvas_poll(m);
	return OMPI_SUCCESS;
}

/* ---- all targets ---- */

static void lock_now(struct mca_osc_pvas_module *m, struct mca_osc_pvas_target *target)
{
	if (!claim(target)) {
		mca_osc_pvas_wait_until(m, mca_osc_pvas_load(&target->access) !=
					   MCA_OSC_PVAS_BUSY);
		return;
	}
	if (m->lock_all == MCA_OSC_PVAS_LOCK_ALL_UNCHECKED) {
		grant(target, MCA_OSC_PVAS_ALL_UNCHECKED);
		return;
	}
	check_alive(m, target - m->targets);
	acquire_shared(m, target->state);
	mca_osc_pvas_count(locks, 1);
	grant(target, MCA_OSC_PVAS_ALL_SHARED);
}

int mca_osc_pvas_lock_all(int assertion, ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);
	int i;

	if (m->fence == MCA_OSC_PVAS_USED || m->lock_all || m->nr_locks || m->nr_started >= 0)
		return OMPI_ERR_RMA_SYNC;
	m->fence = MCA_OSC_PVAS_CLOSED;
	m->lock_all = assertion & MPI_MODE_NOCHECK ? MCA_OSC_PVAS_LOCK_ALL_UNCHECKED :
						     MCA_OSC_PVAS_LOCK_ALL;
	lock_now(m, &m->targets[m->rank]);
	for (i = 0; m->flavor == MPI_WIN_FLAVOR_SHARED && i < m->size; i++)
		if (i != m->rank)
			lock_now(m, &m->targets[i]);
	return OMPI_SUCCESS;
}

int mca_osc_pvas_unlock_all(ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);
	int i;

	if (!m->lock_all)
		return OMPI_ERR_RMA_SYNC;
	for (i = 0; i < m->size; i++) {
		if (m->targets[i].access < MCA_OSC_PVAS_ALL_SHARED)
			continue;
		check_alive(m, i);
		release(m, &m->targets[i]);
	}
	m->lock_all = MCA_OSC_PVAS_NO_LOCK_ALL;
	mca_osc_pvas_poll(m);
	return OMPI_SUCCESS;
}

/* An access to a target that is neither locked nor started */
int mca_osc_pvas_begin_access(struct mca_osc_pvas_module *m, struct mca_osc_pvas_target *target)
{
	if (m->lock_all) {
		lock_now(m, target);
		return OMPI_SUCCESS;
	}
	if (m->fence == MCA_OSC_PVAS_CLOSED)
		return OMPI_ERR_RMA_SYNC;
	m->fence = MCA_OSC_PVAS_USED;
	return OMPI_SUCCESS;
}

/* ---- inside an epoch ---- */

int mca_osc_pvas_sync(ompi_win_t *win)
{
	/* Also for the program's own stores */
	mca_osc_pvas_complete_all();
	mca_osc_pvas_poll(mca_osc_pvas_module_of(win));
	return OMPI_SUCCESS;
}

/*
 * Also MPI_Win_flush_local(): the origin's buffer is free, and data are at the target. Open MPI
 * hands MPI_PROC_NULL on, for which there is nothing to complete.
 */
int mca_osc_pvas_flush(int rank, ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);

	if (!m->lock_all && rank != MPI_PROC_NULL &&
	    m->targets[rank].access < MCA_OSC_PVAS_SHARED)
		return OMPI_ERR_RMA_SYNC;
	mca_osc_pvas_complete(m);
	mca_osc_pvas_poll(m);
	return OMPI_SUCCESS;
}

int mca_osc_pvas_flush_all(ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);

	if (!m->lock_all && !m->nr_locks)
		return OMPI_ERR_RMA_SYNC;
	mca_osc_pvas_complete(m);
	mca_osc_pvas_poll(m);
	return OMPI_SUCCESS;
}
