/* SPDX-License-Identifier: GPL-2.0-only */
/* The key by which processes that another launcher has started find their space. */
#ifndef PVASRUN_JOBKEY_H
#define PVASRUN_JOBKEY_H

#include <stddef.h>

#include "../libpvas/pvas.h"

struct jobkey {
	char key[PVAS_JOIN_KEY_MAX + 1];
	const char *named_by;	/* the variable that names the job */
	const char *secret_by;	/* the source of its secret: a variable, a directory, the keyring */
	char dir[256];
};

/*
 * All ranks of the job on this node get the same key, which no other process can guess.
 * -ENOENT: no launcher has set the name of a job; else the ranks can't agree on a
 * secret, and @why has a line.
 */
int jobkey_find(struct jobkey *found, char *why, size_t len);

#endif
