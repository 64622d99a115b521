/* SPDX-License-Identifier: GPL-2.0-only */
/* Remove the contents of a directory that other users may change at the same time. */
#ifndef PVASRUN_REMOVE_TREE_H
#define PVASRUN_REMOVE_TREE_H

#include <stdint.h>

/*
 * Open the directory @name in @at, not through a symbolic link. If it is this user's,
 * the owner's permissions are set first. A descriptor, or -errno.
 */
int open_own_directory(int at, const char *name);

/*
 * Remove all that is in @top, except on other file systems, and except @keep in @top itself,
 * which may be NULL. Gives up at @until.
 */
void empty_directory(int top, const char *keep, int64_t until);

/* rmdir() of @name in @at, if it is still the directory that @fd refers to. */
void remove_directory(int at, const char *name, int fd);

#endif
