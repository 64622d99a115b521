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
 * A store sends more than this when it connects to the port that UCX opens for data, which gets
 * further connections of it, one for each network that both have. They can remain without data for
 * long.
 */
#define FEW_BYTES	16
/* The kernel's TCP_ESTABLISHED and TCP_CLOSE_WAIT, which <linux/tcp.h> doesn't have */
#define ESTABLISHED	1
#define CLOSE_WAIT	8

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

unsigned int local_port(int fd)
{
	struct sockaddr_storage address = { 0 };
	socklen_t len = sizeof(address);

	getsockname(fd, (struct sockaddr *)&address, &len);
	return address_port(&address);
}

static bool get_info(int fd, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);

	return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len) &&
	       len >= offsetof(struct tcp_info, tcpi_delivery_rate) &&
	       (info->tcpi_state == ESTABLISHED || info->tcpi_state == CLOSE_WAIT);
}

/* Has the server had nothing to say to it for a time? It answers each whole message at once. */
static bool is_unanswered(int fd, const struct tcp_info *info)
{
	static struct {
		unsigned short port;	/* the other side's: another one has another */
		unsigned char looks;	/* one a second */
	} seen[MAX_FDS];
	struct sockaddr_storage peer = { 0 };
	socklen_t len = sizeof(peer);
	unsigned short port;

	if (info->tcpi_data_segs_out || getpeername(fd, (struct sockaddr *)&peer, &len))
		return false;
	port = address_port(&peer);
	if (seen[fd].port != port)
		seen[fd].looks = 0;
	seen[fd].port = port;
	if (seen[fd].looks <= HANDSHAKE_S)
		seen[fd].looks++;
	return seen[fd].looks > HANDSHAKE_S;
}

static bool is_stranger(int fd, bool entrance, const struct tcp_info *info)
{
	if (entrance)
		return is_unanswered(fd, info);
	return info->tcpi_bytes_received < FEW_BYTES &&
	       info->tcpi_last_ack_recv > HANDSHAKE_S * 1000;
}

/*
 * Ends connections that have sent nothing, or too little, for a time: UCX waits for them forever,
 * and with enough of them nobody else could connect. UCX sees the end, and forgets them.
 */
void strangers_end(const struct memd *memd)
{
	bool entrance, connected;
	struct tcp_info info;
	int fd;

	for (fd = 0; fd < MAX_FDS; fd++) {
		connected = get_info(fd, &info);
		entrance = connected && local_port(fd) == memd->port;
		if (connected && is_stranger(fd, entrance, &info))
			shutdown(fd, SHUT_RDWR);
	}
}
