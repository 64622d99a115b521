/* SPDX-License-Identifier: GPL-2.0-only */
/* The processors and the memory policy of each task. */
#ifndef PVASRUN_BIND_H
#define PVASRUN_BIND_H

#include <sched.h>
#include <stdbool.h>

#include "machine.h"
#include "options.h"

/* Places for tasks: cores or NUMA nodes, in the machine's order */
struct places {
	enum bind_to how;		/* BIND_CORE, BIND_NUMA or BIND_NONE */
	struct cpu_sets sets;
	unsigned int tasks;
};

#define MEMORY_NODES	1024	/* the kernel's greatest number of nodes */

/* Memory policy, ready for memory_apply() */
struct memory {
	int mode;		/* MPOL_*, or -1: keep the inherited policy */
	unsigned long nodes[MEMORY_NODES / (8 * sizeof(long))];
	unsigned long max_node;
};

/* Within the processors that pvasrun itself may use */
int places_init(struct places *places, enum bind_to how, unsigned int tasks);
void places_free(struct places *places);

/* The same for a given machine */
int places_choose(struct places *places, const char *sys, const struct cpu_sets *allowed,
		  enum bind_to how, unsigned int tasks);

/* The processors of a rank, of @places->sets.size bytes; NULL if it is not bound */
const cpu_set_t *places_set(const struct places *places, unsigned int rank);

/* "0-1", to be freed; NULL if it is not bound, or if there is no memory */
char *places_text(const struct places *places, unsigned int rank);

/* Are there more tasks than processors that pvasrun may use? */
bool places_oversubscribed(unsigned int tasks);

int memory_init(struct memory *memory, enum mem_bind how);

/* For the calling thread, async-signal-safe. 0 or -errno */
int memory_apply(const struct memory *memory);

#endif
