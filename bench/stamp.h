/* SPDX-License-Identifier: GPL-2.0-only */
/* How one of many programs tells launch.c when it got somewhere. */
#ifndef STAMP_H
#define STAMP_H

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

/* Appends now, in seconds; one write of 8 bytes is not torn. Returns an exit status. */
static inline int stamp(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	struct timespec t;
	double now;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now = t.tv_sec + t.tv_nsec * 1e-9;
	if (fd < 0 || write(fd, &now, sizeof(now)) != sizeof(now))
		return 1;
	return close(fd) != 0;
}

#endif /* STAMP_H */
