// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Looks at the processors that the ranks of this node may use: when a communicator is made, and
 * rarely while a rank waits, for ranks can be bound at any time, by others too.
 */
#include "processors.h"
#include "coll_pvas.h"

#define component mca_coll_pvas_component

/* Milliseconds between two looks, which take a system call for each rank */
#define INTERVAL 100

static bool is_due(void)
{
	struct timespec ts;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	now = ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
	if (now < component.next_look)
		return false;
	component.next_look = now + INTERVAL;
	return true;
}

/* The peers in our space that were looked up; a rank that has just ended is not counted. */
static void add_peers(struct mca_coll_pvas_occupancy *occupancy)
{
	const struct mca_coll_pvas_member *member;
	mca_coll_pvas_mask mask;
	unsigned int i;

	for (i = 0; i < component.nr_peers; i++) {
		member = &component.peers[i].member;
		if (member->index && mca_coll_pvas_member_alive(member) &&
		    mca_coll_pvas_get_mask(component.faults.table[member->index].pid, mask))
			mca_coll_pvas_occupancy_add(occupancy, mask);
	}
}

void mca_coll_pvas_look_at_processors(void)
{
	struct mca_coll_pvas_occupancy occupancy;
	mca_coll_pvas_mask mine;

	if (!component.look)
		return;
	OPAL_THREAD_LOCK(&component.lock);
	if (is_due() && mca_coll_pvas_get_mask(0, mine)) {
		mca_coll_pvas_occupancy_begin(&occupancy, mine);
		add_peers(&occupancy);
		component.yield = mca_coll_pvas_occupancy_outnumbers(&occupancy);
	}
	OPAL_THREAD_UNLOCK(&component.lock);
}
