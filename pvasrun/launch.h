/* SPDX-License-Identifier: GPL-2.0-only */
/* Starting the tasks. */
#ifndef PVASRUN_LAUNCH_H
#define PVASRUN_LAUNCH_H

#include <sys/resource.h>

#include "../libpvas/pvas.h"
#include "bind.h"
#include "event.h"
#include "input.h"
#include "job.h"
#include "mpi.h"
#include "output.h"
#include "signals.h"

/* All that a run consists of */
struct run {
	struct options *opt;
	struct loop loop;
	struct signals signals;
	struct job job;
	struct mpi mpi;
	struct places places;
	struct memory memory;
	struct output output;	/* used with --tag-output */
	struct input input;	/* used with --stdin all */
	struct rlimit files;	/* as pvasrun found it: precheck.c may raise it */
	struct pvas_space *space;
	unsigned int first;	/* the partition of rank 0 */
	unsigned int skipped;	/* partitions among the tasks' that can't be had */
	uint64_t partition_size;
	bool adopts;		/* orphans.c: what tasks leave running becomes our child */
	pid_t *before;		/* children we had before */
	unsigned int nr_before;
};

/* Make the space. Returns pvasrun's exit status, 0 if all is well. */
int space_open(struct run *run);

/*
 * Start all tasks. What goes wrong is said, and becomes the job's status: in
 * that case, or if one of them has failed already, fewer are started.
 */
void launch(struct run *run);

/* Print who lies where (--map). */
void map_print(const struct run *run);

#endif
