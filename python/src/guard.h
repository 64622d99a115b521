/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Access to the memory of a task that may end at any moment, after which its memory is
 * no longer there.
 *
 *	GUARDED(failed, *to = *from);
 *
 * sets @failed to 1 if the statement has touched memory of another task that has
 * ended, else to 0. The statement may only load and store: it can be left in the middle.
 *
 * Where Python or NumPy themselves read such memory, nothing can be left in the
 * middle: then a line on standard error says whose memory it was, and the signal
 * takes its course.
 */
#ifndef PVAS_PYTHON_GUARD_H
#define PVAS_PYTHON_GUARD_H

#include <setjmp.h>
#include <stddef.h>

/* Catch SIGSEGV, once; the handler that was there before is called for other faults. */
int guard_install(void);

/* initial-exec: a signal handler must not allocate it */
extern __thread sigjmp_buf *guard_jump __attribute__((tls_model("initial-exec")));

#define GUARDED(failed, statement) do {				\
	sigjmp_buf guard_here, *guard_outer = guard_jump;	\
								\
	(failed) = sigsetjmp(guard_here, 0);			\
	if (!(failed)) {					\
		guard_jump = &guard_here;			\
		__asm__ volatile("" ::: "memory");		\
		statement;					\
		__asm__ volatile("" ::: "memory");		\
	}							\
	guard_jump = guard_outer;				\
} while (0)

/* Copy from or to a peer's memory. 0, or -1: it has ended. */
int guard_copy(void *to, const void *from, size_t len);

#endif
