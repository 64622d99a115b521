/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The processors of this machine, from sysfs: hwloc, which knows more, takes longer to load
 * than a small job to start, and with the user backend would stay in the space.
 */
#ifndef PVASRUN_MACHINE_H
#define PVASRUN_MACHINE_H

#include <sched.h>

#define MACHINE_SYS "/sys/devices/system"

/* Sets of processors, of @size bytes each */
struct cpu_sets {
	cpu_set_t **sets;
	unsigned int nr;
	size_t size;
};

/* The processors that pvasrun may use: one set. 0 or -errno */
int machine_allowed(struct cpu_sets *to);

/*
 * The cores, or the NUMA nodes, of @allowed, without other processors, in the machine's order:
 * neighbours share a NUMA node, or at least a package. @sys: MACHINE_SYS, or a test's. Where the
 * kernel does not tell, each processor is a core, and all are one node. 0 or -errno
 */
int machine_cores(struct cpu_sets *to, const char *sys, const struct cpu_sets *allowed);
int machine_nodes(struct cpu_sets *to, const char *sys, const struct cpu_sets *allowed);

/* The highest number of a NUMA node that has memory; 0 if the kernel does not tell */
unsigned int machine_last_node(const char *sys);

void cpu_sets_free(struct cpu_sets *sets);

/* "0-3,8", to be freed; or NULL */
char *cpu_set_text(const cpu_set_t *set, size_t size);

#endif
