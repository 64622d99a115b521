/* SPDX-License-Identifier: GPL-2.0-only */
/* What would fail later, found before anything is started. */
#ifndef PVASRUN_PRECHECK_H
#define PVASRUN_PRECHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"

/*
 * Each says what is wrong and what to do, and returns pvasrun's exit status:
 * 0 if all is well.
 */
int precheck_programs(struct options *opt);	/* also fills in app->path */
int precheck_limits(const struct options *opt);

/* A program's error as a status: 126 or 127 as a shell's, else 1 */
int precheck_status(int err);

/* How a limit on memory maps suits so many tasks */
enum maps_verdict { MAPS_FINE, MAPS_FEW_FOR_MPI, MAPS_FEW, MAPS_TOO_FEW };
enum maps_verdict precheck_maps(unsigned int tasks, uint64_t limit);

/*
 * The largest partitions of which @tasks fit: up to 64 GiB if only just, up to 8 TiB
 * if as many places stay free. Programs that reserve addresses by the terabyte
 * (JIT compilers, databases, garbage collectors) need room.
 */
uint64_t precheck_partition_size(unsigned int tasks);

/* Are @places partitions of @size enough, if the size is pvasrun's to choose? */
bool precheck_enough(uint64_t size, unsigned int places, unsigned int tasks);

#endif
