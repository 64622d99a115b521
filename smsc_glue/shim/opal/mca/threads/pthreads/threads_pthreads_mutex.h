/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * opal/mca/threads/mutex.h includes this header, which Debian's libopenmpi-dev 5.0 lacks.
 * Open MPI's locks are those of pthreads; the rest is what its inline functions call.
 */
#ifndef SMSC_PVAS_SHIM_MUTEX_H
#define SMSC_PVAS_SHIM_MUTEX_H

#include <pthread.h>

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;

#define opal_thread_internal_mutex_lock(m) ((void)pthread_mutex_lock(m))
#define opal_thread_internal_mutex_trylock(m) (pthread_mutex_trylock(m) != 0)
#define opal_thread_internal_mutex_unlock(m) ((void)pthread_mutex_unlock(m))

#endif /* SMSC_PVAS_SHIM_MUTEX_H */
