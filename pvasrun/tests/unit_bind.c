// SPDX-License-Identifier: GPL-2.0-only
/* The places of tasks, on synthetic machines of hwloc */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../bind.h"
#include "unit.h"

/* The sets of all ranks as "0-1 2-3 ...", or "none" */
static const char *sets_text(const struct places *places, unsigned int tasks)
{
	static char text[512];
	unsigned int rank;
	size_t used = 0;

	text[0] = '\0';
	for (rank = 0; rank < tasks; rank++) {
		hwloc_const_cpuset_t set = places_set(places, rank);
		char list[64] = "none";

		if (set)
			hwloc_bitmap_list_snprintf(list, sizeof(list), set);
		used += snprintf(text + used, sizeof(text) - used, "%s%s", rank ? " " : "", list);
	}
	return text;
}

static void test_machines(void)
{
	static const struct {
		const char *machine;
		enum bind_to how;
		unsigned int tasks;
		const char *sets;
	} cases[] = {
		{ "core:4 pu:1", BIND_DEFAULT, 4, "0 1 2 3" },
		{ "core:4 pu:2", BIND_DEFAULT, 4, "0-1 2-3 4-5 6-7" },
		{ "core:4 pu:2", BIND_DEFAULT, 2, "0-1 4-5" },
		{ "core:4 pu:1", BIND_DEFAULT, 3, "0 1 2" },
		{ "core:4 pu:1", BIND_DEFAULT, 5, "none none none none none" },
		{ "core:4 pu:1", BIND_CORE, 5, "0 0 1 2 3" },
		{ "core:2 pu:1", BIND_CORE, 6, "0 0 0 1 1 1" },
		{ "core:4 pu:1", BIND_NONE, 2, "none none" },
		{ "pu:3", BIND_CORE, 3, "0 1 2" },
		{ "node:2 core:2 pu:1", BIND_NUMA, 2, "0-1 2-3" },
		{ "node:2 core:2 pu:1", BIND_NUMA, 4, "0-1 0-1 2-3 2-3" },
		{ "node:2 core:2 pu:1", BIND_NUMA, 3, "0-1 0-1 2-3" },
		{ "node:4 core:1 pu:1", BIND_NUMA, 2, "0 2" },
		{ "node:2 core:4 pu:2", BIND_DEFAULT, 4, "0-1 4-5 8-9 12-13" },
		{ "core:2 pu:1", BIND_NUMA, 2, "0-1 0-1" },
	};
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		hwloc_topology_t topology;
		struct places places;

		hwloc_topology_init(&topology);
		hwloc_topology_set_synthetic(topology, cases[i].machine);
		hwloc_topology_load(topology);
		check_case(places_choose(&places, topology, cases[i].how, cases[i].tasks) == 0,
			   cases[i].machine);
		check_text(sets_text(&places, cases[i].tasks), cases[i].sets, cases[i].machine);
		places_free(&places);
		hwloc_topology_destroy(topology);
	}
}

static void test_mask(void)
{
	hwloc_topology_t topology;
	struct places places;
	cpu_set_t *mask;

	/* more processors than fit into a plain cpu_set_t */
	hwloc_topology_init(&topology);
	hwloc_topology_set_synthetic(topology, "core:1000 pu:2");
	hwloc_topology_load(topology);
	check(places_choose(&places, topology, BIND_CORE, 1000) == 0);
	check(places_mask(&places, 999, &mask) == 0);
	check(CPU_COUNT_S(places.cpu_set_size, mask) == 2);
	check(CPU_ISSET_S(1998, places.cpu_set_size, mask));
	check(CPU_ISSET_S(1999, places.cpu_set_size, mask));
	CPU_FREE(mask);
	places_free(&places);
	check(places_choose(&places, topology, BIND_NONE, 10) == 0);
	check(places_mask(&places, 3, &mask) == 0 && !mask);
	places_free(&places);
	hwloc_topology_destroy(topology);
}

/* Within the limits of taskset(1) */
static void test_this_machine(void)
{
	cpu_set_t before, one;
	struct places places;
	unsigned int cpu = 0;
	char text[16];

	sched_getaffinity(0, sizeof(before), &before);
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	check(places_init(&places, BIND_DEFAULT, 1) == 0);
	check(places.nr == 1 && places.how == BIND_CORE);
	snprintf(text, sizeof(text), "%u", cpu);
	check_text(sets_text(&places, 1), text, "the one processor allowed");
	places_free(&places);
	sched_setaffinity(0, sizeof(before), &before);
	check(places_init(&places, BIND_NONE, 1) == 0 && places.how == BIND_NONE);
	places_free(&places);
}

void test_bind(void)
{
	test_machines();
	test_mask();
	test_this_machine();
}
