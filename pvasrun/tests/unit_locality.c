// SPDX-License-Identifier: GPL-2.0-only
/* The locality of bound tasks, on synthetic machines of hwloc */
#include <stdlib.h>

#include "../pmix/locality.h"
#include "unit.h"

void test_locality(void)
{
	static const struct {
		const char *machine;
		const char *cpus;
		const char *text;
	} cases[] = {
		{ "pack:2 numa:1 l3:1 l2:2 l1:1 core:1 pu:2", "0-1", "SK0:L30:L20:L10:CR0:HT0-1:NM0" },
		{ "pack:2 numa:1 l3:1 l2:2 l1:1 core:1 pu:2", "2", "SK0:L30:L21:L11:CR1:HT2:NM0" },
		{ "pack:2 numa:1 l3:1 l2:2 l1:1 core:1 pu:2", "2-5",
		  "SK0-1:L30-1:L21-2:L11-2:CR1-2:HT2-5:NM0-1" },
		{ "pu:4", "3", "HT3:NM0" },
	};
	hwloc_topology_t topology;
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	char *text;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		hwloc_topology_init(&topology);
		check_case(!hwloc_topology_set_synthetic(topology, cases[i].machine),
			   cases[i].machine);
		hwloc_topology_load(topology);
		hwloc_bitmap_list_sscanf(set, cases[i].cpus);
		text = locality_of(topology, set);
		check_text(text, cases[i].text, cases[i].cpus);
		free(text);
		hwloc_topology_destroy(topology);
	}
	hwloc_bitmap_free(set);
}
