/* SPDX-License-Identifier: GPL-2.0-only */
/* The processors and the memory policy of each task. */
#ifndef PVASRUN_BIND_H
#define PVASRUN_BIND_H

#include <hwloc.h>
#include <sched.h>
#include <stdbool.h>

#include "options.h"

/* Places for tasks: cores or NUMA nodes, in the machine's order */
struct places {
	enum bind_to how;		/* BIND_CORE, BIND_NUMA or BIND_NONE */
	hwloc_cpuset_t *sets;
	unsigned int nr;
	unsigned int tasks;
	size_t cpu_set_size;		/* for sched_setaffinity() */
};

/* Memory policy, ready for set_mempolicy() */
struct memory {
	int mode;		/* MPOL_*, or -1: keep the inherited policy */
	const unsigned long *nodes;
	unsigned long max_node;
};

/* Within the processors that pvasrun itself may use */
int places_init(struct places *places, enum bind_to how, unsigned int tasks);
void places_free(struct places *places);

/* The same for a given topology, which the caller frees. */
int places_choose(struct places *places, hwloc_topology_t topology, enum bind_to how,
		  unsigned int tasks);

/* The processors of a rank, NULL if it is not bound */
hwloc_const_cpuset_t places_set(const struct places *places, unsigned int rank);

/* The same for sched_setaffinity(); to be freed with CPU_FREE() */
int places_mask(const struct places *places, unsigned int rank, cpu_set_t **mask);

/* Are there more tasks than processors that pvasrun may use? */
bool places_oversubscribed(unsigned int tasks);

int memory_init(struct memory *memory, enum mem_bind how);

#endif
