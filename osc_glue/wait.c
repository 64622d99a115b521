// SPDX-License-Identifier: LGPL-2.1-or-later
/* Waiting for peers. A peer that has ended is reported: otherwise the wait would never end. */
#include "osc_pvas.h"

#include <sched.h>

#include "opal/runtime/opal_progress.h"

#define component mca_osc_pvas_component

/* Calls of opal_progress() between two looks at the clock; one that yields can take long */
#define CLOCK_INTERVAL 16

/* Calls after which a peer has probably lost its processor, even if there is one for each */
#define PATIENCE 200

/* Poll a few times, then let others work: peers may need Open MPI's progress in this rank. */
void mca_osc_pvas_pause(struct mca_osc_pvas_module *m, unsigned int *polls)
{
	const unsigned int spin = component.yield ? 1 : component.spin;
	unsigned int calls;

	__builtin_ia32_pause();
	if (++*polls % spin)
		return;
	calls = *polls / spin;
	mca_osc_pvas_count(waits, 1);
	opal_progress();
	if (component.yield || calls > PATIENCE)
		sched_yield();
	if (component.yield || calls % CLOCK_INTERVAL == 0)
		mca_osc_pvas_watch(m);
}

void mca_osc_pvas_poll_now(struct mca_osc_pvas_module *m)
{
	__atomic_store_n(&m->until_poll, component.poll_interval, __ATOMIC_RELAXED);
	opal_progress();
	if (component.yield)
		sched_yield();
	mca_osc_pvas_watch(m);
}

/*
 * A dissemination barrier: when a rank has heard in all rounds, all have arrived, and nobody
 * stores into its flags any more, so that the window can be freed. The caller's stores are
 * visible to all when they leave.
 */
void mca_osc_pvas_barrier(struct mca_osc_pvas_module *m)
{
	const uint64_t count = ++m->barriers;
	const struct mca_osc_pvas_target *to;
	int round, distance;

	mca_osc_pvas_complete_all();
	for (round = 0, distance = 1; distance < m->size; round++, distance *= 2) {
		to = &m->targets[(m->rank + distance) % m->size];
		if (!mca_osc_pvas_alive(to))
			mca_osc_pvas_end_job(m, (m->rank + distance) % m->size);
		__atomic_store_n(&to->state->arrived[round].count, count, __ATOMIC_RELEASE);
		mca_osc_pvas_wait_until(m, mca_osc_pvas_load(&m->own->arrived[round].count) >=
					   count);
	}
}
