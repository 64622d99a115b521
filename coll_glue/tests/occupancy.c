// SPDX-License-Identifier: LGPL-2.1-or-later
/* When do ranks outnumber their processors, as one of them sees it? No MPI. */
#include <stdio.h>
#include <stdlib.h>

#include "../processors.h"

/* The ranks' processors, from one to another; the first rank is the one that asks. */
struct rank {
	int first, last;
};

static int check(const char *what, int expected, int nr, const struct rank *ranks)
{
	static struct mca_coll_pvas_occupancy occupancy;
	static mca_coll_pvas_mask mask;
	int i, k, found;

	for (i = 0; i < nr; i++) {
		memset(mask, 0, sizeof(mask));
		for (k = ranks[i].first; k <= ranks[i].last; k++)
			CPU_SET_S(k, sizeof(mask), (cpu_set_t *)mask);
		if (i)
			mca_coll_pvas_occupancy_add(&occupancy, mask);
		else
			mca_coll_pvas_occupancy_begin(&occupancy, mask);
	}
	found = mca_coll_pvas_occupancy_outnumbers(&occupancy);
	if (found != expected)
		printf("%s: %d, not %d\n", what, found, expected);
	return found != expected;
}

#define CHECK(what, expected, ...)						\
	check(what, expected, sizeof((struct rank[]){ __VA_ARGS__ }) / sizeof(struct rank),	\
	      (struct rank[]){ __VA_ARGS__ })

int main(void)
{
	int bad = 0;

	bad += CHECK("alone", 0, { 5, 5 });
	bad += CHECK("a processor each", 0, { 0, 0 }, { 1, 1 });
	bad += CHECK("both on one", 1, { 1, 1 }, { 1, 1 });
	bad += CHECK("four on two", 1, { 0, 1 }, { 0, 1 }, { 0, 1 }, { 0, 1 });
	bad += CHECK("four on four", 0, { 0, 3 }, { 0, 3 }, { 0, 3 }, { 0, 3 });
	bad += CHECK("the fourth is bound", 0, { 0, 3 }, { 0, 3 }, { 0, 3 }, { 2, 2 });
	bad += CHECK("two share ours", 1, { 2, 2 }, { 2, 2 }, { 0, 7 }, { 0, 7 });
	bad += CHECK("two others share one", 0, { 0, 7 }, { 2, 2 }, { 2, 2 }, { 3, 3 });
	bad += CHECK("three on two of eight", 1, { 6, 7 }, { 6, 6 }, { 7, 7 }, { 0, 5 });
	bad += CHECK("high numbers", 1, { 8000, 8001 }, { 8001, 8001 }, { 8000, 8000 });
	return bad != 0;
}
