/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Restartable sequences: cancel glibc's registration for this thread.
 *
 * While an area is registered, the kernel writes to it whenever the thread was
 * preempted, and kills the process if it can't.
 */
#ifndef PVAS_RSEQ_H
#define PVAS_RSEQ_H

#include <stddef.h>

#include "rawsys.h"

#define PVAS_RSEQ_UNREGISTER	1

/* Exported by glibc 2.35 and later. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));

static inline void pvas_rseq_unregister(void)
{
	const char *thread = pvas_thread_pointer();
	int len;

	if (!&__rseq_offset)
		return;
	/*
	 * The length must be that of the registration, which __rseq_size does not
	 * give (from 2.40 on it is the length of the part in use): try all.
	 */
	for (len = 32; len <= 256; len += 4)
		if (!pvas_raw4(__NR_rseq, thread + __rseq_offset, len, PVAS_RSEQ_UNREGISTER,
			       PVAS_RSEQ_SIGNATURE))
			return;
}

#endif /* PVAS_RSEQ_H */
