// SPDX-License-Identifier: GPL-2.0-only
/*
 * stat(2) of a mount point, and an open() that is more than O_PATH, wait for the server of
 * the file system that is mounted there. openat2(2) can refuse to go there.
 */
#include "open_here.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include "linux_names.h"

int open_here(int at, const char *name)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS,
	};
	int fd = syscall(SYS_openat2, at, name, &how, sizeof(how));

	/* before Linux 5.6, or in a container whose filter does not know it */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = openat(at, name, how.flags);
	return fd < 0 ? -errno : fd;
}

bool is_here(int at, const char *name, int fd)
{
	struct stat opened, there;
	int path_fd = open_here(at, name);
	bool same;

	if (path_fd < 0)
		return false;
	same = !fstat(fd, &opened) && !fstat(path_fd, &there) &&
	       opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
	close(path_fd);
	return same;
}
