/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* User backend: threads of the launcher that share less than threads usually do. */
#ifndef PVAS_USER_THREAD_H
#define PVAS_USER_THREAD_H

#include "user.h"

/* Has the caller the supervisor's descriptor table? 1, 0 or -errno. */
int user_thread_has_files(const struct user_space *u);

/*
 * The name of what the caller has of its own, or NULL. Sets @err to -errno if that is unknown.
 * @promised: it has its control groups in common with the others
 */
const char *user_thread_differs(const struct user_space *u, int promised, int *err);

#endif /* PVAS_USER_THREAD_H */
