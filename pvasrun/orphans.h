/* SPDX-License-Identifier: GPL-2.0-only */
/* Processes that outlive the task that started them: daemons, background jobs. */
#ifndef PVASRUN_ORPHANS_H
#define PVASRUN_ORPHANS_H

#include "event.h"
#include "job.h"

struct subreaper {
	struct loop *loop;
	struct job *job;
	bool adopts;		/* pvasrun is their subreaper */
	bool mixed;		/* pvasrun had children before the job */
	int64_t patience;	/* milliseconds to wait for answers about processes */
	int64_t look_at;	/* the next look through all processes is not due before */
	bool blind;		/* /proc doesn't tell which children it has */
};

/*
 * Before the first task: make such processes pvasrun's children, if --orphans or the
 * backend (@user_backend) requires it.
 */
void orphans_open(struct subreaper *orphans, struct loop *loop, struct job *job, bool user_backend);

/*
 * After all tasks have ended: warn of orphans, wait for them or kill them (--orphans).
 * Returns the signal by which the user interrupted this, or 0.
 */
int orphans_end(struct subreaper *orphans);

#endif
