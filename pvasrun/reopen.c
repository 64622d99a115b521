// SPDX-License-Identifier: GPL-2.0-only
/* See reopen.h. */
#include "reopen.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

mode_t descriptor_type(int fd)
{
	struct statx stx;
	struct stat st;

	if (!statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &stx))
		return stx.stx_mode & S_IFMT;
	/* some sandboxes refuse the newer call */
	return fstat(fd, &st) < 0 ? 0 : st.st_mode & S_IFMT;
}

bool is_terminal(int fd)
{
	return S_ISCHR(descriptor_type(fd)) && isatty(fd);
}

/* /dev/tty has another number than the terminal it stands for. */
static bool is_same_terminal(int a, int b)
{
	unsigned int device_a, device_b;

	return !ioctl(a, TIOCGDEV, &device_a) && !ioctl(b, TIOCGDEV, &device_b) &&
	       device_a == device_b;
}

/* Every process may open its controlling terminal, whoever owns it. */
static int open_controlling_terminal(int fd, int flags)
{
	int own = open("/dev/tty", flags);

	if (own >= 0 && !is_same_terminal(fd, own)) {
		close(own);
		own = -1;
	}
	return own;
}

/*
 * Has a FIFO a name in a file system that is on no block device, and perhaps on a server? That
 * would be asked when the FIFO is opened.
 */
static bool has_server(int fd, const char *path)
{
	static const char unnamed[] = "pipe:";
	char name[sizeof(unnamed) - 1];
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &stx) ||
	    stx.stx_dev_major)
		return false;
	return readlink(path, name, sizeof(name)) != sizeof(name) ||
	       memcmp(name, unnamed, sizeof(name));
}

void reopen_nonblocking(struct reopened *r, int fd, int access)
{
	int flags = access | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	const mode_t type = descriptor_type(fd);
	char path[40];

	*r = (struct reopened)REOPENED_NONE;
	if (!S_ISFIFO(type) && !is_terminal(fd))
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r->own = S_ISFIFO(type) && has_server(fd, path) ? -1 : open(path, flags);
	if (r->own < 0 && !S_ISFIFO(type))
		r->own = open_controlling_terminal(fd, flags);
	else if (r->own < 0 && pipe2(r->pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		r->pipe[0] = r->pipe[1] = -1;
}

void reopened_close(struct reopened *r)
{
	if (r->own >= 0)
		close(r->own);
	if (r->pipe[0] >= 0) {
		close(r->pipe[0]);
		close(r->pipe[1]);
	}
	*r = (struct reopened)REOPENED_NONE;
}
