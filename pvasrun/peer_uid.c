// SPDX-License-Identifier: GPL-2.0-only
/*
 * Find the uid behind the peer of a local TCP connection: by sock_diag(7), which looks
 * up one socket, or by reading /proc/net/tcp, for which the kernel walks its whole
 * hash table.
 *
 * A socket that its process has closed has no owner; the kernel reports uid 0 for it,
 * in every state on 6.1 and 6.12, and only in TIME_WAIT on later kernels. So only a
 * socket that is established and has an inode counts.
 */
#include "peer_uid.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"

#define ESTABLISHED	1	/* TCP_ESTABLISHED, in both interfaces */
#define LIST_MS		100	/* 30 ms suffice unless somebody opens very many sockets */

/* ---- sock_diag ---- */

static int send_request(struct peer_uid *peer_uid, const struct tcp_ends *ends)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 req;
	} request = {
		.head = {
			.nlmsg_len = sizeof(request),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST,
			.nlmsg_seq = ++peer_uid->seq,
		},
		.req = {
			.sdiag_family = AF_INET,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_states = ~0U,
			.id = {
				.idiag_sport = ends->peer.sin_port,
				.idiag_dport = ends->local.sin_port,
				.idiag_src = { ends->peer.sin_addr.s_addr },
				.idiag_dst = { ends->local.sin_addr.s_addr },
				.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE },
			},
		},
	};

	return send(peer_uid->netlink, &request, sizeof(request), 0) < 0 ? -errno : 0;
}

/* The kernel has answered before send() returns. Skip answers to earlier requests. */
static int receive_answer(struct peer_uid *peer_uid, struct inet_diag_msg *found)
{
	char answer[4096] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr *head = (const struct nlmsghdr *)answer;
	ssize_t len;

	do {
		len = recv(peer_uid->netlink, answer, sizeof(answer), MSG_DONTWAIT);
		if (len < 0)
			return -errno;
	} while ((size_t)len >= sizeof(*head) && head->nlmsg_seq != peer_uid->seq);
	if ((size_t)len < NLMSG_LENGTH(sizeof(*found)) || head->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return -ENOENT;
	memcpy(found, NLMSG_DATA(head), sizeof(*found));
	return 0;
}

static int query(struct peer_uid *peer_uid, const struct tcp_ends *ends,
		 struct inet_diag_msg *found)
{
	int err = send_request(peer_uid, ends);

	return err ? err : receive_answer(peer_uid, found);
}

int peer_uid_by_netlink(struct peer_uid *peer_uid, const struct tcp_ends *ends, uid_t *uid)
{
	struct inet_diag_msg found;
	int err = query(peer_uid, ends, &found);

	if (err)
		return err;
	/* if the connection is gone, the kernel may return a listener on the same port */
	if (found.idiag_state != ESTABLISHED || !found.idiag_inode ||
	    found.id.idiag_sport != ends->peer.sin_port ||
	    found.id.idiag_dport != ends->local.sin_port)
		return -ENOENT;
	*uid = found.idiag_uid;
	return 0;
}

/* ---- /proc/net/tcp ---- */

static bool is_end(const struct sockaddr_in *end, unsigned int addr, unsigned int port)
{
	return addr == end->sin_addr.s_addr && port == ntohs(end->sin_port);
}

enum owner { UNKNOWN, OURS, THEIRS };

/* Returns how many connections are found for the first time in this line. */
static int find_line(const char *line, const struct tcp_ends *ends, enum owner *owners, int nr,
		     uid_t uid)
{
	unsigned int from_addr, from_port, to_addr, to_port, state, owner;
	unsigned long inode;
	int i, found = 0;

	if (sscanf(line, " %*u: %x:%x %x:%x %x %*x:%*x %*x:%*x %*x %u %*u %lu", &from_addr,
		   &from_port, &to_addr, &to_port, &state, &owner, &inode) != 7)
		return 0;
	for (i = 0; i < nr; i++) {
		if (owners[i] != UNKNOWN || !is_end(&ends[i].peer, from_addr, from_port) ||
		    !is_end(&ends[i].local, to_addr, to_port))
			continue;
		owners[i] = state == ESTABLISHED && inode && owner == uid ? OURS : THEIRS;
		found++;
	}
	return found;
}

/*
 * Other users can make the list as long as they like. A connection that is not found in
 * time may be ours: then it is the secret in the handshake that keeps others out.
 */
void peer_uid_by_list(const struct tcp_ends *ends, bool *ours, int nr, uid_t uid, int64_t ms)
{
	FILE *list = fopen("/proc/net/tcp", "re");
	enum owner owners[PEER_UID_BATCH] = { UNKNOWN };
	int64_t until = now_ms() + ms;
	bool late = false, end = false;
	int missing = nr, i;
	char line[256];

	while (list && missing && !late && !end) {
		late = now_ms() >= until;
		end = !late && !fgets(line, sizeof(line), list);
		if (!late && !end)
			missing -= find_line(line, ends, owners, nr, uid);
	}
	for (i = 0; i < nr; i++)
		ours[i] = owners[i] == OURS || (owners[i] == UNKNOWN && late);
	if (list)
		fclose(list);
}

/* ---- open and close ---- */

/* Users that are not mapped into this user namespace all share the overflow uid. */
static bool uid_is_shared(uid_t uid)
{
	unsigned long overflow = 65534, all = 0;
	FILE *f = fopen("/proc/sys/kernel/overflowuid", "re");

	if (f && fscanf(f, "%lu", &overflow) != 1)
		overflow = 65534;
	if (f)
		fclose(f);
	if (uid != overflow)
		return false;
	f = fopen("/proc/self/uid_map", "re");
	if (f && fscanf(f, "%*u %*u %lu", &all) != 1)
		all = 0;
	if (f)
		fclose(f);
	return all < UINT32_MAX;
}

/* Ask for a socket that exists: if the kernel finds it, its answers can be relied on. */
static bool netlink_works(struct peer_uid *peer_uid, int listener)
{
	struct tcp_ends ends = {
		.local = { .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = 1 },
	};
	socklen_t len = sizeof(ends.peer);
	struct inet_diag_msg found;

	return !getsockname(listener, (struct sockaddr *)&ends.peer, &len) &&
	       !query(peer_uid, &ends, &found);
}

int peer_uid_open(struct peer_uid *peer_uid, int listener)
{
	*peer_uid = (struct peer_uid){ .uid = geteuid(), .list_ms = LIST_MS };
	peer_uid->netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (uid_is_shared(peer_uid->uid)) {
		peer_uid_close(peer_uid);
		return -EOVERFLOW;
	}
	if (peer_uid->netlink >= 0 && !netlink_works(peer_uid, listener))
		peer_uid_close(peer_uid);
	return 0;
}

void peer_uid_close(struct peer_uid *peer_uid)
{
	if (peer_uid->netlink >= 0)
		close(peer_uid->netlink);
	peer_uid->netlink = -1;
}

static bool get_ends(int fd, struct tcp_ends *ends)
{
	socklen_t peer_len = sizeof(ends->peer), local_len = sizeof(ends->local);

	return !getpeername(fd, (struct sockaddr *)&ends->peer, &peer_len) &&
	       !getsockname(fd, (struct sockaddr *)&ends->local, &local_len);
}

void peer_uid_check(struct peer_uid *peer_uid, const int *fds, bool *ours, int nr)
{
	struct tcp_ends ends[PEER_UID_BATCH];
	uid_t uid;
	int i;

	for (i = 0; i < nr; i++) {
		ends[i] = (struct tcp_ends){ 0 };
		ours[i] = get_ends(fds[i], &ends[i]) && peer_uid->netlink >= 0 &&
			  !peer_uid_by_netlink(peer_uid, &ends[i], &uid) && uid == peer_uid->uid;
	}
	if (peer_uid->netlink < 0)
		peer_uid_by_list(ends, ours, nr, peer_uid->uid, peer_uid->list_ms);
}
