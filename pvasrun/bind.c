// SPDX-License-Identifier: GPL-2.0-only
/* The processors and the memory policy of each task. */
#include "bind.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "report.h"

int places_choose(struct places *places, const char *sys, const struct cpu_sets *allowed,
		  enum bind_to how, unsigned int tasks)
{
	bool by_default = how == BIND_DEFAULT;
	int err;

	*places = (struct places){ .how = how, .tasks = tasks };
	if (by_default)
		places->how = BIND_CORE;
	if (places->how == BIND_NONE)
		return 0;
	err = places->how == BIND_NUMA ? machine_nodes(&places->sets, sys, allowed) :
					 machine_cores(&places->sets, sys, allowed);
	/* more tasks than cores: the scheduler balances better than fixed places */
	if (!err && by_default && tasks > places->sets.nr)
		places->how = BIND_NONE;
	if (err)
		places_free(places);
	return err;
}

bool places_oversubscribed(unsigned int tasks)
{
	cpu_set_t set;

	return !sched_getaffinity(0, sizeof(set), &set) && tasks > (unsigned int)CPU_COUNT(&set);
}

int places_init(struct places *places, enum bind_to how, unsigned int tasks)
{
	struct cpu_sets allowed;
	int err;

	*places = (struct places){ .how = BIND_NONE };
	if (how == BIND_NONE || (how == BIND_DEFAULT && places_oversubscribed(tasks)))
		return 0;
	err = machine_allowed(&allowed);
	if (!err)
		err = places_choose(places, MACHINE_SYS, &allowed, how, tasks);
	cpu_sets_free(&allowed);
	return err;
}

void places_free(struct places *places)
{
	cpu_sets_free(&places->sets);
	*places = (struct places){ .how = BIND_NONE };
}

/* Neighbouring ranks get neighbouring places, spread evenly over the whole machine. */
const cpu_set_t *places_set(const struct places *places, unsigned int rank)
{
	if (places->how == BIND_NONE)
		return NULL;
	return places->sets.sets[(uint64_t)rank * places->sets.nr / places->tasks];
}

char *places_text(const struct places *places, unsigned int rank)
{
	const cpu_set_t *set = places_set(places, rank);

	return set ? cpu_set_text(set, places->sets.size) : NULL;
}

/* ---- memory ---- */

static int get_allowed_nodes(struct memory *memory)
{
	int mode;

	memory->max_node = MEMORY_NODES + 1;
	return syscall(SYS_get_mempolicy, &mode, memory->nodes, memory->max_node, NULL,
		       MPOL_F_MEMS_ALLOWED) ? -errno : 0;
}

int memory_init(struct memory *memory, enum mem_bind how)
{
	int err;

	*memory = (struct memory){ .mode = -1 };
	if (how == MEM_NONE)
		return 0;
	err = get_allowed_nodes(memory);
	if (err == -ENOSYS || !machine_last_node(MACHINE_SYS)) {
		report_note("this machine has one memory node: --mem-bind changes nothing");
		return 0;
	}
	if (err)
		return err;
	if (how == MEM_LOCAL)
		memory->max_node = 0;
	memory->mode = how == MEM_LOCAL ? MPOL_LOCAL : MPOL_INTERLEAVE;
	return 0;
}

int memory_apply(const struct memory *memory)
{
	const unsigned long *nodes = memory->max_node ? memory->nodes : NULL;

	if (memory->mode < 0)
		return 0;
	return syscall(SYS_set_mempolicy, memory->mode, nodes, memory->max_node) ? -errno : 0;
}
