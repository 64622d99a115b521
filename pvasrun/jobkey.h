/* SPDX-License-Identifier: GPL-2.0-only */
/* By which key do the processes that another launcher has started find each other? */
#ifndef PVASRUN_JOBKEY_H
#define PVASRUN_JOBKEY_H

#include <stddef.h>

#include "../libpvas/pvas.h"

struct jobkey {
	char key[PVAS_JOIN_KEY_MAX + 1];
	const char *named_by;	/* the variable that names the job */
	const char *secret_by;	/* where its secret is from: a variable or a directory */
	char dir[256];
};

/*
 * All ranks of the job on this node get the same, no other job and nobody who is
 * not of the job can know it. -ENOENT: no launcher names a job; else the ranks can't
 * agree on a secret: why is in @why.
 */
int jobkey_find(struct jobkey *found, char *why, size_t len);

#endif
