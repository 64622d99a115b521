/* SPDX-License-Identifier: GPL-2.0-only */
/* Pseudo-terminals for the tasks' standard output (--pty). */
#ifndef PVASRUN_PTY_H
#define PVASRUN_PTY_H

#include "options.h"

/* After precheck_programs() */
bool pty_wanted(const struct options *opt);

/* @ends: to read from, and for a task to write to. 0 or -errno */
int pty_open(int ends[static 2]);

#endif
