/* SPDX-License-Identifier: GPL-2.0-only */
/* Far memory of the job: the options --ram and --far, and the pager, which libpvasfar has. */
#ifndef PVASRUN_FAR_H
#define PVASRUN_FAR_H

#include "env.h"
#include "event.h"
#include "job.h"
#include "options.h"

/*
 * Before the space is made: load the pager, and check the options. Returns pvasrun's exit
 * status, 0 on success and for a job without --ram.
 */
int far_prepare(const struct options *opt);

/* The pager could not be started: why, or NULL. */
const char *far_failure(void);

/* The tasks' variables, with the module. 0 or -errno */
int far_env(struct env *env);

/* From now on the job ends if the pager has lost a page. 0 or -errno */
int far_watch(struct loop *loop, struct job *job);

/* With --verbose: what the pager did. While the space exists. */
void far_report(void);

/* End the memory servers that were started for this job. The space is gone. */
void far_end(void);

#endif
