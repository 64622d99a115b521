/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Of the failures of a job's ranks, the one that caused the others. A rank that sees a peer end
 * too early ends because of that, and pvasrun can know of its end first.
 */
#ifndef PVASRUN_CAUSE_H
#define PVASRUN_CAUSE_H

#include "job.h"

/*
 * A rank has failed. Returns whether that is reported later, when it is known, or a second is
 * over, that no peer has ended before it or is ending.
 */
bool cause_seek(struct job *job, const struct failure *failure);

/* Do what is due at @now. */
void cause_look(struct job *job, int64_t now);

/* The job ends for another reason: report the failure now, as it came first. */
void cause_settle(struct job *job);

/*
 * @rank says that it aborts, perhaps because it has seen a peer end: wait for those that are
 * ending, so that they are known before it.
 */
void cause_reap_ending(struct job *job, unsigned int rank);

#endif
