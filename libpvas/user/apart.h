/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* User backend: files on servers are mapped by processes of their own, see apart.c. */
#ifndef PVAS_USER_APART_H
#define PVAS_USER_APART_H

#include "worker.h"

/* As mmap(2), for @m with a @tid */
int64_t user_apart_mmap(uint64_t at, const struct user_mmap *m, int flags);

/* Before that, until there are not too many. 0, or -ENFILE: too many wait already. */
int user_apart_wait(const struct user_request *r, uint64_t server);

/* Those that have ended since */
void user_apart_reap(struct user_space *u);
void user_apart_free(struct user_space *u);

#endif /* PVAS_USER_APART_H */
