// SPDX-License-Identifier: GPL-2.0-only
/*
 * libpmix serves only clients of its TCP port. It runs in this process, and symbols of
 * the program take precedence over those of libc in all libraries. So listen() here
 * replaces its socket by a pipe, and accept() reads from the pipe the number of a
 * descriptor: one end of a socket pair. Without a port, nobody else can connect.
 */
#include "handoff.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
	int ends[2];		/* of the pipe; the first is moved to @listener */
	bool armed;		/* the next listen() is libpmix's */
	int listener;		/* the descriptor that libpmix accepts from */
} pipe_to_server = { .ends = { -1, -1 }, .listener = -1 };

int interposed_listen(int fd, int backlog) __asm__("listen");
int interposed_accept(int fd, struct sockaddr *from, socklen_t *len) __asm__("accept");

__attribute__((used))
int interposed_listen(int fd, int backlog)
{
	if (!pipe_to_server.armed)
		return syscall(SYS_listen, fd, backlog);
	pipe_to_server.armed = false;
	if (dup3(pipe_to_server.ends[0], fd, O_CLOEXEC) < 0)
		return -1;
	close(pipe_to_server.ends[0]);
	pipe_to_server.ends[0] = -1;
	pipe_to_server.listener = fd;
	return 0;
}

__attribute__((used))
int interposed_accept(int fd, struct sockaddr *from, socklen_t *len)
{
	ssize_t n;
	int peer;

	if (fd < 0 || fd != pipe_to_server.listener)
		return accept4(fd, from, len, 0);
	n = read(fd, &peer, sizeof(peer));
	if (n == sizeof(peer))
		return peer;
	if (n >= 0)
		errno = EAGAIN;
	return -1;
}

int handoff_open(void)
{
	if (pipe2(pipe_to_server.ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	pipe_to_server.armed = true;
	return 0;
}

bool handoff_works(void)
{
	pipe_to_server.armed = false;
	return pipe_to_server.listener >= 0;
}

int handoff_connect(const char *first, size_t len)
{
	int ends[2], err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	errno = 0;
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 &&
	    write(ends[0], first, len) == (ssize_t)len &&
	    write(pipe_to_server.ends[1], &ends[1], sizeof(ends[1])) == sizeof(ends[1]))
		return ends[0];
	err = errno ? -errno : -EIO;
	close(ends[0]);
	close(ends[1]);
	return err;
}
