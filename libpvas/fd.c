// SPDX-License-Identifier: LGPL-2.1-or-later
/* Descriptors that are not 0, 1 or 2, although a program may have closed these. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "private.h"

int pvas_fd_above_standard(int fd)
{
	int high, err;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	err = -errno;
	close(fd);
	return high < 0 ? err : high;
}
