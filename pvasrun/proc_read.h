/* SPDX-License-Identifier: GPL-2.0-only */
/* Files of /proc, see proc(5). */
#ifndef PVASRUN_PROC_READ_H
#define PVASRUN_PROC_READ_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

/*
 * Read the beginning of /proc/PID/@name into @text, as a string. By calls of the kernel only, as a
 * child needs it that ask_begin() has made. False: there is no such process, or it is not readable.
 */
static inline bool proc_read(pid_t pid, const char *name, char *text, size_t size)
{
	char path[48];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, text, size - 1);
	if (fd >= 0)
		close(fd);
	text[len < 0 ? 0 : len] = '\0';
	return len >= 0;
}

#endif
