// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections on which nothing comes.
 *
 * Ends those of nodes that are gone without a word. UCX 1.13 has settings for that, but
 * doesn't apply them to connections that it accepted: without this, the memory of such a job
 * would never be freed.
 */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include "memd.h"

/*
 * A store sends more than this when it connects: to the port where the server listens, and to
 * the one that UCX opens for data, which gets further connections of it, one for each network
 * that both have. They can remain without data for long.
 */
#define FEW_BYTES	64
#define FEW_DATA_BYTES	16
/* The kernel's TCP_ESTABLISHED, which <linux/tcp.h> doesn't have */
#define ESTABLISHED	1

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

	for (fd = 0; fd < MAX_FDS; fd++) {
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

static unsigned int local_port(int fd)
{
	struct sockaddr_storage address = { 0 };
	socklen_t len = sizeof(address);

	getsockname(fd, (struct sockaddr *)&address, &len);
	return address_port(&address);
}

/*
 * Ends connections that have sent next to nothing for a time: UCX waits for them forever, and
 * with enough of them nobody else could connect. UCX sees the end, and forgets them.
 */
void strangers_end(const struct memd *memd)
{
	struct tcp_info info;
	unsigned int few;
	socklen_t len;
	int fd;

	for (fd = 0; fd < MAX_FDS; fd++) {
		len = sizeof(info);
		if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ||
		    len < offsetof(struct tcp_info, tcpi_segs_out) ||
		    info.tcpi_state != ESTABLISHED)
			continue;
		few = local_port(fd) == memd->port ? FEW_BYTES : FEW_DATA_BYTES;
		if (info.tcpi_bytes_received < few &&
		    info.tcpi_last_ack_recv > HANDSHAKE_S * 1000)
			shutdown(fd, SHUT_RDWR);
	}
}
