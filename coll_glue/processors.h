/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Do ranks outnumber the processors that they are allowed to use? Then a rank that waits must
 * yield: the one that it waits for may need its processor.
 */
#ifndef COLL_PVAS_PROCESSORS_H
#define COLL_PVAS_PROCESSORS_H

#include <sched.h>
#include <stdbool.h>
#include <string.h>

/* The most processors of any kernel for x86-64 */
#define MCA_COLL_PVAS_PROCESSORS 8192

typedef unsigned long mca_coll_pvas_mask[MCA_COLL_PVAS_PROCESSORS / 8 / sizeof(unsigned long)];

/**
 * struct mca_coll_pvas_occupancy - the ranks of a node, as one of them sees them
 * @mine:	the processors of that rank
 * @all:	those of any rank
 * @ranks:	how many there are, with that one
 * @inside:	how many can only use processors of @mine
 */
struct mca_coll_pvas_occupancy {
	mca_coll_pvas_mask mine;
	mca_coll_pvas_mask all;
	int ranks;
	int inside;
};

static inline bool mca_coll_pvas_get_mask(int pid, mca_coll_pvas_mask mask)
{
	return !sched_getaffinity(pid, sizeof(mca_coll_pvas_mask), (cpu_set_t *)mask);
}

static inline int mca_coll_pvas_mask_count(const mca_coll_pvas_mask mask)
{
	return CPU_COUNT_S(sizeof(mca_coll_pvas_mask), (const cpu_set_t *)mask);
}

static inline void mca_coll_pvas_occupancy_begin(struct mca_coll_pvas_occupancy *c,
					     const mca_coll_pvas_mask mine)
{
	memcpy(c->mine, mine, sizeof(c->mine));
	memcpy(c->all, mine, sizeof(c->all));
	c->ranks = c->inside = 1;
}

/* Another rank */
static inline void mca_coll_pvas_occupancy_add(struct mca_coll_pvas_occupancy *c,
					   const mca_coll_pvas_mask mask)
{
	bool inside = true;
	size_t i;

	for (i = 0; i < sizeof(c->all) / sizeof(c->all[0]); i++) {
		c->all[i] |= mask[i];
		inside = inside && !(mask[i] & ~c->mine[i]);
	}
	c->ranks++;
	c->inside += inside;
}

/* All ranks have too few processors, or those that share ours have. */
static inline bool mca_coll_pvas_occupancy_outnumbers(const struct mca_coll_pvas_occupancy *c)
{
	return c->ranks > mca_coll_pvas_mask_count(c->all) ||
	       c->inside > mca_coll_pvas_mask_count(c->mine);
}

#endif
