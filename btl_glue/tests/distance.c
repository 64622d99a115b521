// SPDX-License-Identifier: GPL-2.0-only
/*
 * The distance between each two processors of machines that hwloc makes up, from the strings
 * that pvasrun gives to Open MPI, by Open MPI's comparison, against hwloc's own answer.
 */
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "between.h"

static const struct {
	const char *machine;
	unsigned int distances;		/* that it has: a bit for each */
} machines[] = {
#define BIT(name) (1U << MCA_BTL_PVAS_##name)
	{ "package:2 l3:1 l2:2 core:1 pu:2", BIT(SAME_CORE) | BIT(SAME_L3) | BIT(FAR) },
	{ "package:2 l3:2 l2:2 core:2 pu:2",
	  BIT(SAME_CORE) | BIT(SAME_L2) | BIT(SAME_L3) | BIT(SAME_PACKAGE) | BIT(FAR) },
	{ "package:1 l3:4 core:2 pu:1", BIT(SAME_L3) | BIT(SAME_PACKAGE) },
	{ "package:4 core:4 pu:1", BIT(SAME_PACKAGE) | BIT(FAR) },
	{ "package:1 l2:2 core:4 pu:1", BIT(SAME_L2) | BIT(SAME_PACKAGE) },
	{ "numa:2 package:1 l3:1 core:2 pu:1", BIT(SAME_L3) | BIT(FAR) },
};

#define NR (sizeof(machines) / sizeof(machines[0]))

/* Of two processors, by the smallest object that has both */
static enum mca_btl_pvas_distance expected(hwloc_topology_t t, hwloc_obj_t a, hwloc_obj_t b)
{
	hwloc_obj_t both = hwloc_get_common_ancestor_obj(t, a, b);

	for (; both; both = both->parent) {
		if (both->type == HWLOC_OBJ_CORE)
			return MCA_BTL_PVAS_SAME_CORE;
		if (both->type == HWLOC_OBJ_L2CACHE)
			return MCA_BTL_PVAS_SAME_L2;
		if (both->type == HWLOC_OBJ_L3CACHE)
			return MCA_BTL_PVAS_SAME_L3;
		if (both->type == HWLOC_OBJ_PACKAGE)
			return MCA_BTL_PVAS_SAME_PACKAGE;
	}
	return MCA_BTL_PVAS_FAR;
}

/* Wrong pairs; the distances that there are, in *seen */
static unsigned int compare_all(hwloc_topology_t t, unsigned int *seen)
{
	const int nr = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PU);
	unsigned int wrong = 0;
	hwloc_obj_t a, b;
	int i, j;

	for (i = 0; i < nr; i++)
		for (j = 0; j < nr; j++) {
			a = hwloc_get_obj_by_type(t, HWLOC_OBJ_PU, i);
			b = hwloc_get_obj_by_type(t, HWLOC_OBJ_PU, j);
			if (i == j)
				continue;
			*seen |= 1U << between(t, a, b);
			wrong += between(t, a, b) != expected(t, a, b);
		}
	return wrong;
}

static int check_machine(unsigned int i)
{
	unsigned int seen = 0, wrong;
	hwloc_topology_t t;

	hwloc_topology_init(&t);
	if (hwloc_topology_set_synthetic(t, machines[i].machine) || hwloc_topology_load(t)) {
		printf("%s: hwloc refuses it\n", machines[i].machine);
		return 1;
	}
	wrong = compare_all(t, &seen);
	hwloc_topology_destroy(t);
	if (!wrong && seen == machines[i].distances)
		return 0;
	printf("%s: %u pairs are wrong; distances %#x, not %#x\n", machines[i].machine, wrong, seen,
	       machines[i].distances);
	return 1;
}

/* Two threads of a core do not share copies; ranks that share nothing known are FAR. */
static int check_limits(void)
{
	int bad = mca_btl_pvas_limits_of(MCA_BTL_PVAS_SAME_CORE)->share != 0;
	unsigned int i;

	for (i = MCA_BTL_PVAS_SAME_L2; i < MCA_BTL_PVAS_DISTANCES; i++)
		bad |= !mca_btl_pvas_limits_of(i)->share;
	for (i = 0; i < MCA_BTL_PVAS_DISTANCES; i++)
		bad |= mca_btl_pvas_limits_of(i)->copy < 128;
	bad |= mca_btl_pvas_distance(OPAL_PROC_ON_HOST | OPAL_PROC_ON_BOARD) != MCA_BTL_PVAS_FAR;
	return bad;
}

int main(void)
{
	int bad = check_limits();
	unsigned int i;

	for (i = 0; i < NR; i++)
		bad |= check_machine(i);
	return bad;
}
