/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A job's directories for files that MPI libraries make: for this user only,
 * and removed with all that is in them when the job is over.
 */
#ifndef PVASRUN_SCRATCH_H
#define PVASRUN_SCRATCH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct scratch {
	char path[PATH_MAX];
	bool made;
	int lock;		/* held while the job lives */
};

/*
 * Make one of a name that nobody can guess. @parent: NULL is $TMPDIR, or /tmp.
 * Also removes those of jobs whose pvasrun was killed. -errno: a line is in @why
 */
int scratch_make(struct scratch *scratch, const char *parent, char *why, size_t len);
void scratch_remove(struct scratch *scratch);

#endif
