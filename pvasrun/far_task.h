/* SPDX-License-Identifier: GPL-2.0-only */
/* Far memory with the module, where each task has a pager of its own: see libpvas/far/task. */
#ifndef PVASRUN_FAR_TASK_H
#define PVASRUN_FAR_TASK_H

#include "env.h"
#include "options.h"

struct pvas_far_attr;

/* Find what the tasks preload, and the key of memory servers. pvasrun's exit status */
int far_task_prepare(const struct options *opt);

/* Tell the pager of each task, by variables, @attr: its share. 0 or -errno */
int far_task_env(struct env *env, const struct pvas_far_attr *attr, uint64_t threshold);

#endif
