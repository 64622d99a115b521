// SPDX-License-Identifier: GPL-2.0-only
/*
 * poll() before a read is not enough where others read the same pipe or terminal. What
 * blocks all the same is a terminal of another user that isn't pvasrun's own.
 */
#include "inlet.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reopen.h"

void inlet_open(struct inlet *inlet, int fd)
{
	struct stat st;

	*inlet = (struct inlet){ .fd = fd, .own = -1, .pipe = { -1, -1 } };
	inlet->own = reopen_nonblocking(fd, O_RDONLY);
	if (inlet->own < 0 && !fstat(fd, &st) && S_ISFIFO(st.st_mode) &&
	    pipe2(inlet->pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		inlet->pipe[0] = inlet->pipe[1] = -1;
}

void inlet_close(struct inlet *inlet)
{
	int *fds[] = { &inlet->own, &inlet->pipe[0], &inlet->pipe[1] };
	size_t i;

	for (i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

ssize_t inlet_read(const struct inlet *inlet, char *bytes, size_t len)
{
	ssize_t n;

	if (inlet->own >= 0)
		return read(inlet->own, bytes, len);
	if (inlet->pipe[0] >= 0) {
		n = splice(inlet->fd, NULL, inlet->pipe[1], NULL, len, SPLICE_F_NONBLOCK);
		return n > 0 ? read(inlet->pipe[0], bytes, n) : n;
	}
	n = recv(inlet->fd, bytes, len, MSG_DONTWAIT);
	return n < 0 && errno == ENOTSOCK ? read(inlet->fd, bytes, len) : n;
}
