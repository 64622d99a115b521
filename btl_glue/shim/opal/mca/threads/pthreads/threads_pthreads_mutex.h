/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * opal/mca/threads/mutex.h includes this header, which Debian's libopenmpi-dev 5.0 lacks.
 * Open MPI's locks are those of pthreads; the rest is what its inline functions call.
 */
#ifndef BTL_PVAS_SHIM_MUTEX_H
#define BTL_PVAS_SHIM_MUTEX_H

#include <pthread.h>

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;

/* Locks that may be taken twice are not made by inline functions. */
#define opal_thread_internal_mutex_init(m, recursive) ((void)pthread_mutex_init(m, NULL))
#define opal_thread_internal_mutex_destroy(m) ((void)pthread_mutex_destroy(m))
#define opal_thread_internal_mutex_lock(m) ((void)pthread_mutex_lock(m))
#define opal_thread_internal_mutex_trylock(m) (pthread_mutex_trylock(m) != 0)
#define opal_thread_internal_mutex_unlock(m) ((void)pthread_mutex_unlock(m))
#define opal_thread_internal_cond_init(c) ((void)pthread_cond_init(c, NULL))
#define opal_thread_internal_cond_signal(c) ((void)pthread_cond_signal(c))
#define opal_thread_internal_cond_destroy(c) ((void)pthread_cond_destroy(c))

#endif /* BTL_PVAS_SHIM_MUTEX_H */
