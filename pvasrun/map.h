/* SPDX-License-Identifier: GPL-2.0-only */
/* --map: the partition, process and processors of each rank. */
#ifndef PVASRUN_MAP_H
#define PVASRUN_MAP_H

#include "bind.h"
#include "job.h"
#include "space.h"

void map_print(const struct job *job, const struct job_space *space, const struct places *places);

#endif
