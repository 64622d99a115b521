/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* Opening a file whose path may be another user's choice. */
#ifndef PVAS_OPEN_REGULAR_H
#define PVAS_OPEN_REGULAR_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Opens a regular file for reading, and nothing else, not even for a moment: that starts a
 * watchdog, rewinds a tape, or lets the writer of a FIFO go on. Nor is the path looked up
 * twice: something else may be there by then. A descriptor; -EINVAL: no regular file; -errno
 */
static inline int open_regular(const char *path, struct stat *st)
{
	int at = open(path, O_PATH | O_CLOEXEC), fd = -1;
	char self[32];

	if (at < 0)
		return -errno;
	if (fstat(at, st)) {
		fd = -errno;
	} else if (!S_ISREG(st->st_mode)) {
		fd = -EINVAL;
	} else {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", at);
		fd = open(self, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			fd = -errno;
	}
	close(at);
	return fd;
}

#endif /* PVAS_OPEN_REGULAR_H */
