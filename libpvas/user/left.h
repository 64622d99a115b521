/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* User backend: programs that have left the space by execve(). In the supervisor. */
#ifndef PVAS_USER_LEFT_H
#define PVAS_USER_LEFT_H

#include "user.h"

void user_left_add(struct user_left *left, pid_t pid);

/* Is any of them alive? */
int user_left_any(struct user_left *left);

/* Wait until all have ended. */
void user_left_wait(const struct user_left *left);

#endif /* PVAS_USER_LEFT_H */
