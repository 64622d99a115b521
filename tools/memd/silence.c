// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ends connections of nodes that are gone without a word. UCX 1.13 has settings for that, but
 * doesn't apply them to connections that it accepted: without this, the memory of such a job
 * would never be freed.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include "memd.h"

/* UCX takes few descriptors for a connection, and the kernel gives the lowest. */
#define MOST_FDS	(8 * MAX_CONNS)

static void set(int fd, int level, int option, int value)
{
	setsockopt(fd, level, option, &value, sizeof(value));
}

/* To all that are connected: which of them are a store's is UCX's affair. */
void silence_limit(const struct memd *memd)
{
	int seconds = memd->options.silence;
	struct sockaddr_storage peer;
	socklen_t len;
	int fd;

	for (fd = 0; fd < MOST_FDS; fd++) {
		len = sizeof(peer);
		if (getpeername(fd, (struct sockaddr *)&peer, &len) < 0 ||
		    (peer.ss_family != AF_INET && peer.ss_family != AF_INET6))
			continue;
		set(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds / 3 + 1);
		set(fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds / 6 + 1);
		set(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
		set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, seconds * 1000);
		set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	}
}
