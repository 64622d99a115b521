/* SPDX-License-Identifier: GPL-2.0-only */
/* Removing a directory's contents, whatever others exchange in it meanwhile. */
#ifndef PVASRUN_EMPTY_H
#define PVASRUN_EMPTY_H

#include <stdint.h>

/*
 * Open the directory @name of @at, never by a symbolic link; one of this user's
 * is made accessible first. The descriptor, or -errno.
 */
int open_own_directory(int at, const char *name);

/* Remove what is in the directory @top, but nothing of another file system. Ends at @until. */
void empty_directory(int top, int64_t until);

/* rmdir() of @name in @at, if it still is the directory that @fd was opened for. */
void remove_directory(int at, const char *name, int fd);

#endif
