/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether a process waits in the kernel, in a call that only a fatal signal can end. */
#ifndef PVAS_TESTS_BLOCKED_H
#define PVAS_TESTS_BLOCKED_H

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* This file can be read while an execve() is under way, others can't. */
static inline int is_blocked(pid_t pid)
{
	char path[32], text[1024] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	fd = open(path, O_RDONLY);
	if (read(fd, text, sizeof(text) - 1) <= 0)
		text[0] = 0;
	close(fd);
	return strstr(text, "\nState:\tD") != NULL;
}

#endif
