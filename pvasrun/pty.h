/* SPDX-License-Identifier: GPL-2.0-only */
/* Pseudo-terminals for the tasks' standard output (--pty). */
#ifndef PVASRUN_PTY_H
#define PVASRUN_PTY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "options.h"

/* After precheck_programs() */
bool pty_wanted(const struct options *opt);

/* @ends: to read from, and for a task to write to. 0 or -errno */
int pty_open(int ends[static 2]);

/*
 * As read(), from the first of them; -1 with EAGAIN, too, if there was only a change of its
 * state, and with ENODATA if that has lost output of those who write. The other one, if it is
 * not -1, ends a stop of the output.
 */
ssize_t pty_read(int end, int other_end, char *bytes, size_t len);

/*
 * Does it refuse what tasks write, as with another line discipline than the standard one? Each
 * change of that is one of its state, too, which comes a little before.
 */
bool pty_refuses(int end);

#endif
