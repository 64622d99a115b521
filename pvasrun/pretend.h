/* SPDX-License-Identifier: GPL-2.0-only */
/* --pretend: tell MPI that the job has more nodes than this one. */
#ifndef PVASRUN_PRETEND_H
#define PVASRUN_PRETEND_H

#include "env.h"
#include "options.h"

/* Before any task is started: 0, or the exit status after a line about what is wrong */
int pretend_check(const struct options *opt);

/* Set the variables that the tasks need, after all others of MPI. 0 or -errno */
int pretend_env(const struct options *opt, struct env *env);

#endif
