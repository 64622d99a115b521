// SPDX-License-Identifier: GPL-2.0-only
/*
 * O_NONBLOCK belongs to the open file description, which pvasrun shares with the user's
 * shell, so pipe or terminal are opened again through /proc. To poll() before a write
 * is not enough: a terminal is writable even if there is room for only one byte. If it
 * can't be opened (another user's terminal, after su), it is written byte by byte.
 */
#include "outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

void outlet_open(struct outlet *outlet, int fd)
{
	char path[40];
	struct stat st;

	*outlet = (struct outlet){ .fd = fd, .own = -1 };
	if (fstat(fd, &st) < 0)
		return;
	if (S_ISSOCK(st.st_mode)) {
		outlet->kind = OUTLET_SOCKET;
	} else if (S_ISFIFO(st.st_mode) || isatty(fd)) {
		outlet->kind = OUTLET_STREAM;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		outlet->own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	}
}

void outlet_close(struct outlet *outlet)
{
	if (outlet->own >= 0)
		close(outlet->own);
	outlet->own = -1;
}

static ssize_t write_after_poll(int fd, const char *bytes, size_t len)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };

	if (poll(&room, 1, 0) <= 0) {
		errno = EAGAIN;
		return -1;
	}
	return write(fd, bytes, isatty(fd) ? 1 : len);
}

ssize_t outlet_write(const struct outlet *outlet, const char *bytes, size_t len)
{
	if (len > PIPE_BUF)
		len = PIPE_BUF;
	if (outlet->own >= 0)
		return write(outlet->own, bytes, len);
	if (outlet->kind == OUTLET_SOCKET)
		return send(outlet->fd, bytes, len, MSG_DONTWAIT);
	if (outlet->kind == OUTLET_STREAM)
		return write_after_poll(outlet->fd, bytes, len);
	return write(outlet->fd, bytes, len);
}
