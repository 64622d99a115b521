/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Session directories: for the files that MPI libraries create during a job. They are
 * private to the user, and removed with their contents at the end of the job.
 */
#ifndef PVASRUN_SESSION_DIR_H
#define PVASRUN_SESSION_DIR_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct session_dir {
	char path[PATH_MAX];
	bool created;
	int lock;		/* a descriptor of the directory, locked during the job */
};

/*
 * Create one with an unpredictable name. @parent: NULL means $TMPDIR, or /tmp. Also
 * removes those that killed jobs of this user have left. -errno with a line in @why
 */
int session_dir_create(struct session_dir *dir, const char *parent, char *why, size_t len);
void session_dir_remove(struct session_dir *dir);

#endif
