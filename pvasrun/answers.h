/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program, its interpreter or a folder of PATH can be on a file server that does not answer, one
 * in user space for example: then whoever asks about it waits for ever, whatever the signal.
 */
#ifndef PVASRUN_ANSWERS_H
#define PVASRUN_ANSWERS_H

#include "options.h"

/*
 * Before precheck_programs(): a child looks for the same first. Until it has, a signal ends
 * pvasrun, and so does --timeout. Returns pvasrun's exit status, after a message, or 0.
 */
int answers_wait(const struct options *opt);

#endif
