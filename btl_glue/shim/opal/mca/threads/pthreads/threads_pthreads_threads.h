/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* As threads_pthreads_mutex.h, for opal/mca/threads/threads.h */
#ifndef BTL_PVAS_SHIM_THREADS_H
#define BTL_PVAS_SHIM_THREADS_H

#include <sched.h>

static inline void opal_thread_yield(void)
{
	sched_yield();
}

#endif /* BTL_PVAS_SHIM_THREADS_H */
