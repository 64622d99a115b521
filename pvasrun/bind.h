/* SPDX-License-Identifier: GPL-2.0-only */
/* Which processors and which memory each task gets. */
#ifndef PVASRUN_BIND_H
#define PVASRUN_BIND_H

#include <hwloc.h>
#include <sched.h>
#include <stdbool.h>

#include "options.h"

/* Where tasks can be put: cores or NUMA nodes, in the machine's order */
struct places {
	enum bind_to how;		/* BIND_CORE, BIND_NUMA or BIND_NONE */
	hwloc_cpuset_t *sets;
	unsigned int nr;
	unsigned int tasks;
	size_t cpu_set_size;		/* for sched_setaffinity() */
};

/* Memory policy, ready for set_mempolicy() */
struct memory {
	int mode;		/* MPOL_*, or -1: leave it as it is */
	const unsigned long *nodes;
	unsigned long max_node;
};

/* Decide for this machine, as pvasrun itself is allowed to use it. */
int places_init(struct places *places, enum bind_to how, unsigned int tasks);
void places_free(struct places *places);

/* The same for a given topology, which remains the caller's. */
int places_choose(struct places *places, hwloc_topology_t topology, enum bind_to how,
		  unsigned int tasks);

/* The set of rank, NULL if it isn't bound */
hwloc_const_cpuset_t places_set(const struct places *places, unsigned int rank);

/* The same as a mask for sched_setaffinity(); to be freed with CPU_FREE(). */
int places_mask(const struct places *places, unsigned int rank, cpu_set_t **mask);

int memory_init(struct memory *memory, enum mem_bind how);

#endif
