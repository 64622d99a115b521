/* SPDX-License-Identifier: GPL-2.0-only */
/* The address space of the job. */
#ifndef PVASRUN_SPACE_H
#define PVASRUN_SPACE_H

#include <stdint.h>

#include "../libpvas/pvas.h"
#include "options.h"

struct job_space {
	struct pvas_space *space;
	unsigned int first;	/* the partition of rank 0 */
	unsigned int skipped;	/* partitions between those of tasks that can't be used */
	uint64_t partition_size;
};

/* Create it. Returns pvasrun's exit status, 0 on success. */
int space_open(struct job_space *space, const struct options *opt);
void space_close(struct job_space *space);

#endif
