/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A job's directory for files that MPI libraries make: below $TMPDIR, for this
 * user only, and removed with all that is in it when the job is over.
 */
#ifndef PVASRUN_SCRATCH_H
#define PVASRUN_SCRATCH_H

#include <limits.h>
#include <stddef.h>

struct scratch {
	char path[PATH_MAX];	/* empty: none */
	int lock;		/* held while the job lives */
};

/* Also removes those of jobs whose pvasrun was killed. -errno: a line is in @why */
int scratch_make(struct scratch *scratch, char *why, size_t len);
void scratch_remove(struct scratch *scratch);

#endif
