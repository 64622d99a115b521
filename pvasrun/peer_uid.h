/* SPDX-License-Identifier: GPL-2.0-only */
/* The uid of the process at the other end of a local TCP connection. */
#ifndef PVASRUN_PEER_UID_H
#define PVASRUN_PEER_UID_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct peer_uid {
	int netlink;		/* sock_diag(7); -1: not supported, so read /proc/net/tcp */
	uint32_t seq;		/* of the last request */
	uid_t uid;		/* the only uid that is accepted */
	int64_t list_ms;	/* how long /proc/net/tcp may be read */
};

/*
 * @listener: a socket of this process, to test sock_diag with. -errno; -EOVERFLOW:
 * this user shares its uid with others here, as in a container that does not map it.
 */
int peer_uid_open(struct peer_uid *peer_uid, int listener);
void peer_uid_close(struct peer_uid *peer_uid);

#define PEER_UID_BATCH 256

/*
 * For each of @nr connections, at most PEER_UID_BATCH: was it made by a process of our
 * user, and is its end still open? Yes as well if that can't be found out in time.
 */
void peer_uid_check(struct peer_uid *peer_uid, const int *fds, bool *ours, int nr);

/* Both ends of a connection, and two ways to ask the kernel for the peer's uid */
struct tcp_ends {
	struct sockaddr_in peer;
	struct sockaddr_in local;
};

/* 0 or -errno */
int peer_uid_by_netlink(struct peer_uid *peer_uid, const struct tcp_ends *ends, uid_t *uid);
/*
 * Sets @ours for those connections whose peer is @uid, and for those that are not found in
 * @ms milliseconds. At most PEER_UID_BATCH.
 */
void peer_uid_by_list(const struct tcp_ends *ends, bool *ours, int nr, uid_t uid, int64_t ms);

#endif
