/* SPDX-License-Identifier: GPL-2.0-only */
/* How one of many programs tells launch.c when it got somewhere. */
#ifndef STAMP_H
#define STAMP_H

#include <fcntl.h>
#include <unistd.h>

#include "clock.h"

/* Appends now, in seconds; one write of 8 bytes is not torn. Returns an exit status. */
static inline int stamp(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	double now = now_ns() / 1e9;

	if (fd < 0 || write(fd, &now, sizeof(now)) != sizeof(now))
		return 1;
	return close(fd) != 0;
}

#endif /* STAMP_H */
