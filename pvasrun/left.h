/* SPDX-License-Identifier: GPL-2.0-only */
/* Ranks whose program has left the space by execve(): pvasrun --verbose reports them. */
#ifndef PVASRUN_LEFT_H
#define PVASRUN_LEFT_H

#include "job.h"
#include "space.h"

struct left {
	struct job *job;
	const struct job_space *space;
	int64_t at;		/* when to look again; 0: never */
	int64_t pause;
	int64_t for_names;	/* ms that are left to wait for names of programs, */
	int64_t for_files;	/* and for answers about the files */
};

/* All tasks are started. */
void left_begin(struct left *left, struct job *job, const struct job_space *space);

/* Reports them if it is time for that. Returns when to call again, @until at the latest (or -1). */
int64_t left_report(struct left *left, int64_t now, int64_t until);

#endif
