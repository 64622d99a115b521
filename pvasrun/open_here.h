/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Directories whose names are in a public directory. Another user may have made such a
 * directory, and mounted a file system on it that never answers, for instance by
 * fusermount3(1) where /etc/fuse.conf has user_allow_other.
 */
#ifndef PVASRUN_OPEN_HERE_H
#define PVASRUN_OPEN_HERE_H

#include <stdbool.h>

/*
 * An O_PATH descriptor of the directory @name in @at: no symbolic link, and on the same
 * mount, so that no other file system is asked. -EXDEV: on another; or -errno
 */
int open_here(int at, const char *name);

/* Does @name in @at still refer to the directory @fd? */
bool is_here(int at, const char *name, int fd);

#endif
