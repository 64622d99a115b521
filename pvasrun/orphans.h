/* SPDX-License-Identifier: GPL-2.0-only */
/* Processes that outlive the task that started them: daemons, background jobs. */
#ifndef PVASRUN_ORPHANS_H
#define PVASRUN_ORPHANS_H

#include "launch.h"

/* Before the first task: have such processes become pvasrun's children, if they matter. */
void orphans_watch(struct run *run);

/*
 * All tasks have ended: warn of those left, wait for them or kill them (--orphans).
 * Returns the signal that the user interrupted the waiting with, 0 if none.
 */
int orphans_end(struct run *run);

#endif
