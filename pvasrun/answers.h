/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program, its interpreter or a folder of PATH can be on a file server that does not answer, one
 * in user space for example: then whoever asks about it waits for ever, whatever the signal.
 */
#ifndef PVASRUN_ANSWERS_H
#define PVASRUN_ANSWERS_H

#include "options.h"

/*
 * precheck_programs() and precheck_mpi() in a child. Until it has ended, a signal ends pvasrun,
 * and so does --timeout; and what it has found is all that pvasrun asks about the programs. The
 * servers of TMPDIR, --far-key, --far file: and PVAS_FAR_PLUGINS are asked, too, where used.
 * Returns pvasrun's exit status, after a message, or 0.
 */
int answers_wait(struct options *opt);

#endif
