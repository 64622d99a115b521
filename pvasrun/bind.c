// SPDX-License-Identifier: GPL-2.0-only
/* The processors and the memory policy of each task. */
#include "bind.h"

#include <errno.h>
#include <numa.h>
#include <numaif.h>
#include <stdlib.h>

#include "linux_names.h"
#include "report.h"

#define PLUGINS_PATH "HWLOC_PLUGINS_PATH"

/* A virtual machine may not report cores: then use processors. */
static hwloc_obj_type_t place_type(hwloc_topology_t topology, enum bind_to how)
{
	if (how == BIND_NUMA)
		return HWLOC_OBJ_NUMANODE;
	if (hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0)
		return HWLOC_OBJ_CORE;
	return HWLOC_OBJ_PU;
}

/* NUMA nodes without processors (memory expanders) are no place for a task. */
static int collect(struct places *places, hwloc_topology_t topology, hwloc_obj_type_t type)
{
	hwloc_obj_t obj = NULL;
	int count = hwloc_get_nbobjs_by_type(topology, type);

	if (count <= 0)
		return -ENODEV;
	places->sets = calloc(count, sizeof(*places->sets));
	if (!places->sets)
		return -ENOMEM;
	while ((obj = hwloc_get_next_obj_by_type(topology, type, obj))) {
		hwloc_cpuset_t set;

		if (hwloc_bitmap_iszero(obj->cpuset))
			continue;
		set = hwloc_bitmap_dup(obj->cpuset);
		if (!set)
			return -ENOMEM;
		places->sets[places->nr++] = set;
	}
	return places->nr ? 0 : -ENODEV;
}

int places_choose(struct places *places, hwloc_topology_t topology, enum bind_to how,
		  unsigned int tasks)
{
	bool by_default = how == BIND_DEFAULT;
	int last, err;

	*places = (struct places){ .how = how, .tasks = tasks };
	if (by_default)
		places->how = BIND_CORE;
	if (places->how == BIND_NONE)
		return 0;
	last = hwloc_bitmap_last(hwloc_topology_get_complete_cpuset(topology));
	places->cpu_set_size = CPU_ALLOC_SIZE(last + 1);
	err = collect(places, topology, place_type(topology, places->how));
	/* more tasks than cores: the scheduler balances better than fixed places */
	if (!err && by_default && tasks > places->nr)
		places->how = BIND_NONE;
	if (err)
		places_free(places);
	return err;
}

/*
 * hwloc's plugins, loaded by the first hwloc_topology_init(), detect graphics cards and
 * the like. Their libraries take longer to load than everything else here, and with the
 * user backend would stay in the space.
 */
static int init_without_plugins(hwloc_topology_t *topology)
{
	bool ours = !getenv(PLUGINS_PATH) && !setenv(PLUGINS_PATH, "/dev/null", 1);
	int ret = hwloc_topology_init(topology);

	if (ours)
		unsetenv(PLUGINS_PATH);
	return ret;
}

/* To what taskset(1), a cpuset or a batch system allows; hwloc before 2.5 has no flag for it. */
static void restrict_topology(hwloc_topology_t topology)
{
	hwloc_cpuset_t allowed = hwloc_bitmap_alloc();

	if (allowed && !hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_STRICT))
		hwloc_topology_restrict(topology, allowed, 0);
	hwloc_bitmap_free(allowed);
}

static int load_topology(hwloc_topology_t *topology)
{
	if (init_without_plugins(topology) < 0)
		return -ENOMEM;
	hwloc_topology_set_flags(*topology, HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM);
	hwloc_topology_set_all_types_filter(*topology, HWLOC_TYPE_FILTER_KEEP_NONE);
	hwloc_topology_set_type_filter(*topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
	if (hwloc_topology_load(*topology) == 0) {
		restrict_topology(*topology);
		return 0;
	}
	hwloc_topology_destroy(*topology);
	return -ENODEV;
}

bool places_oversubscribed(unsigned int tasks)
{
	cpu_set_t set;

	return !sched_getaffinity(0, sizeof(set), &set) && tasks > (unsigned int)CPU_COUNT(&set);
}

int places_init(struct places *places, enum bind_to how, unsigned int tasks)
{
	hwloc_topology_t topology;
	int err;

	*places = (struct places){ .how = BIND_NONE };
	if (how == BIND_NONE || (how == BIND_DEFAULT && places_oversubscribed(tasks)))
		return 0;
	err = load_topology(&topology);
	if (err)
		return err;
	err = places_choose(places, topology, how, tasks);
	hwloc_topology_destroy(topology);
	return err;
}

void places_free(struct places *places)
{
	while (places->nr)
		hwloc_bitmap_free(places->sets[--places->nr]);
	free(places->sets);
	*places = (struct places){ .how = BIND_NONE };
}

/* Neighbouring ranks get neighbouring places, spread evenly over the whole machine. */
hwloc_const_cpuset_t places_set(const struct places *places, unsigned int rank)
{
	if (places->how == BIND_NONE)
		return NULL;
	return places->sets[(uint64_t)rank * places->nr / places->tasks];
}

int places_mask(const struct places *places, unsigned int rank, cpu_set_t **mask)
{
	hwloc_const_cpuset_t set = places_set(places, rank);
	unsigned int cpu;

	*mask = NULL;
	if (!set)
		return 0;
	*mask = CPU_ALLOC(places->cpu_set_size * 8);
	if (!*mask)
		return -ENOMEM;
	CPU_ZERO_S(places->cpu_set_size, *mask);
	hwloc_bitmap_foreach_begin(cpu, set)
		CPU_SET_S(cpu, places->cpu_set_size, *mask);
	hwloc_bitmap_foreach_end();
	return 0;
}

int memory_init(struct memory *memory, enum mem_bind how)
{
	struct bitmask *nodes;

	*memory = (struct memory){ .mode = -1 };
	if (how == MEM_NONE)
		return 0;
	if (numa_available() < 0 || numa_max_node() == 0) {
		report_note("this machine has one memory node: --mem-bind changes nothing");
		return 0;
	}
	if (how == MEM_LOCAL) {
		memory->mode = MPOL_LOCAL;
		return 0;
	}
	nodes = numa_get_mems_allowed();
	if (!nodes)
		return -ENOMEM;
	/* never freed: each task's setup() reads it */
	memory->mode = MPOL_INTERLEAVE;
	memory->nodes = nodes->maskp;
	memory->max_node = nodes->size + 1;
	return 0;
}
