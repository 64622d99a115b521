// SPDX-License-Identifier: GPL-2.0-only
/* A TCP port on the loopback interface. */
#include "listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

/* All ranks may connect before the first is accepted. */
#define BACKLOG 4096

static int failed(int fd)
{
	int err = -errno;

	close(fd);
	return err;
}

int listen_loopback(int *port)
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

/* Requests and answers are short, and a process waits for each. */
static void no_delay(int fd)
{
	int yes = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

void close_with_reset(int fd)
{
	const struct linger now = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

/* Every user of this machine can connect. */
static void close_other_users(struct peer_uid *peer_uid, int *fds, int nr)
{
	bool ours[PEER_UID_BATCH];
	int i;

	peer_uid_check(peer_uid, fds, ours, nr);
	for (i = 0; i < nr; i++) {
		if (ours[i]) {
			no_delay(fds[i]);
			continue;
		}
		close_with_reset(fds[i]);
		fds[i] = -1;
	}
}

int accept_same_user(int fd, struct peer_uid *peer_uid, int *fds, int nr)
{
	/* reading the list is expensive, and one pass serves many connections */
	int i, batch = peer_uid->netlink < 0 ? PEER_UID_BATCH : 1;

	if (batch > nr)
		batch = nr;
	for (i = 0; i < batch; i++) {
		fds[i] = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fds[i] < 0)
			break;
	}
	if (!i)
		return -errno;
	close_other_users(peer_uid, fds, i);
	return i;
}
