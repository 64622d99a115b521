// SPDX-License-Identifier: GPL-2.0-only
/* Where ranks of MPI programs call. */
#include "listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

/* All ranks may call before the first is answered. */
#define BACKLOG 4096

static int failed(int fd)
{
	int err = -errno;

	close(fd);
	return err;
}

int listen_here(int *port)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(at);
	int fd;

	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, BACKLOG) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		return failed(fd);
	*port = ntohs(at.sin_port);
	return fd;
}

/* Questions and answers are short, and somebody waits for each. */
static void no_delay(int fd)
{
	int yes = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

void hang_up_at_once(int fd)
{
	const struct linger now = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

/* Every user of this machine can call. */
static void choose(struct callers *callers, int *taken, int nr)
{
	bool ours[CALLERS_AT_ONCE];
	int i;

	callers_check(callers, taken, ours, nr);
	for (i = 0; i < nr; i++) {
		if (ours[i]) {
			no_delay(taken[i]);
			continue;
		}
		hang_up_at_once(taken[i]);
		taken[i] = -1;
	}
}

int accept_here(int fd, struct callers *callers, int *taken, int nr)
{
	/* one look into the list is dear, and does for many */
	int i, at_once = callers->netlink < 0 ? CALLERS_AT_ONCE : 1;

	if (at_once > nr)
		at_once = nr;
	for (i = 0; i < at_once; i++) {
		taken[i] = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (taken[i] < 0)
			break;
	}
	if (!i)
		return -errno;
	choose(callers, taken, i);
	return i;
}
