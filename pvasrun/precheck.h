/* SPDX-License-Identifier: GPL-2.0-only */
/* Checks before any task is started. */
#ifndef PVASRUN_PRECHECK_H
#define PVASRUN_PRECHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"

/* Each prints an error and how to avoid it, and returns pvasrun's exit status or 0. */
int precheck_programs(struct options *opt);	/* also sets app->path */
int precheck_mpi(const struct options *opt);
int precheck_limits(struct options *opt);

/* The exit status for an error of execve(): 126 or 127 as in a shell, else 1 */
int precheck_status(int err);

/* Is a limit of memory maps high enough for @tasks? */
enum maps_verdict { MAPS_FINE, MAPS_FEW_FOR_MPI, MAPS_FEW, MAPS_TOO_FEW };
enum maps_verdict precheck_maps(unsigned int tasks, uint64_t limit);

/*
 * The largest partition size of which @tasks fit. More than 64 GiB, up to 8 TiB, only if
 * at least half of the partitions stay free. JIT compilers, databases and garbage
 * collectors reserve terabytes of addresses.
 */
uint64_t precheck_partition_size(unsigned int tasks);

/* Are @places partitions of @size enough by these rules? */
bool precheck_enough(uint64_t size, unsigned int places, unsigned int tasks);

#endif
