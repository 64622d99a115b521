// SPDX-License-Identifier: GPL-2.0-only
#include "locality.h"

#include <stdio.h>
#include <stdlib.h>

static const struct {
	hwloc_obj_type_t type;
	const char *name;
} kinds[] = {
	{ HWLOC_OBJ_PACKAGE, "SK" }, { HWLOC_OBJ_L3CACHE, "L3" }, { HWLOC_OBJ_L2CACHE, "L2" },
	{ HWLOC_OBJ_L1CACHE, "L1" }, { HWLOC_OBJ_CORE, "CR" }, { HWLOC_OBJ_PU, "HT" },
	{ HWLOC_OBJ_NUMANODE, "NM" },
};

#define NR_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* "0-1,4": the objects of one type that @set intersects; NULL if there are none */
static char *intersecting(hwloc_topology_t topology, hwloc_obj_type_t type,
			  hwloc_const_cpuset_t set)
{
	hwloc_bitmap_t which = hwloc_bitmap_alloc();
	hwloc_obj_t obj = NULL;
	char *text = NULL;

	while (which && (obj = hwloc_get_next_obj_by_type(topology, type, obj)))
		if (hwloc_bitmap_intersects(obj->cpuset, set))
			hwloc_bitmap_set(which, obj->logical_index);
	if (which && !hwloc_bitmap_iszero(which) && hwloc_bitmap_list_asprintf(&text, which) < 0)
		text = NULL;
	hwloc_bitmap_free(which);
	return text;
}

char *locality_of(hwloc_topology_t topology, hwloc_const_cpuset_t set)
{
	char *text = NULL, *part;
	size_t len, i;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	for (i = 0; i < NR_KINDS; i++) {
		part = intersecting(topology, kinds[i].type, set);
		if (part)
			fprintf(out, "%s%s%s", ftell(out) ? ":" : "", kinds[i].name, part);
		free(part);
	}
	fclose(out);
	return text;
}
