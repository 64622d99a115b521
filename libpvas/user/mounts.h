/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* User backend: whether a server answers for a file, see mounts.c. */
#ifndef PVAS_USER_MOUNTS_H
#define PVAS_USER_MOUNTS_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

struct statx;
struct user_space;

/* UNKNOWN: of another namespace, or of the kernel's own. SPECIAL: local, can't be unmarked */
enum user_mount_kind {
	USER_MOUNT_UNKNOWN, USER_MOUNT_FUSE, USER_MOUNT_SERVED, USER_MOUNT_LOCAL, USER_MOUNT_SPECIAL
};

struct user_mount {
	uint64_t id;
	enum user_mount_kind kind;
};

/**
 * struct user_mounts - the mounts of the launcher's namespace
 * @lock:	protects the others
 * @file:	the kernel's table, in the workers' table of descriptors, or NULL
 * @all:	as it was read, by number
 * @count:	of @all
 * @ended:	@file is not opened again
 */
struct user_mounts {
	pthread_mutex_t lock;
	FILE *file;
	struct user_mount *all;
	unsigned int count;
	int ended;
};

/* In the pool's thread, when there are workers that need not wait for it; and at its end */
void user_mounts_begin(struct user_space *u);
void user_mounts_end(struct user_space *u);

/* Of a file's status, which was asked for before */
enum user_mount_kind user_mounts_kind(struct user_space *u, const struct statx *st);

#endif /* PVAS_USER_MOUNTS_H */
