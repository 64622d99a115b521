// SPDX-License-Identifier: GPL-2.0-only
/* The owner of connections: of this process, of another user, and closed ones */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../peer_uid.h"
#include "../listen.h"
#include "unit.h"

#define PATIENCE_MS 10000

/* sock_diag and /proc/net/tcp give the same answer. */
static void ask_both(struct peer_uid *peer_uid, const struct tcp_ends *ends, bool there)
{
	bool ours = false;
	uid_t uid = -1;

	peer_uid_by_list(ends, &ours, 1, geteuid(), PATIENCE_MS);
	check(ours == there);
	ours = false;
	peer_uid_by_list(ends, &ours, 1, geteuid() + 1, PATIENCE_MS);
	check(!ours);
	/* the list is too long: perhaps */
	peer_uid_by_list(ends, &ours, 1, geteuid() + 1, 0);
	check(ours);
	/* sock_diag is a module, which a kernel may not have */
	if (peer_uid->netlink >= 0)
		check(!peer_uid_by_netlink(peer_uid, ends, &uid) == there &&
		      (!there || uid == geteuid()));
}

static bool is_ours(struct peer_uid *peer_uid, int fd)
{
	bool ours;

	peer_uid_check(peer_uid, &fd, &ours, 1);
	return ours;
}

/* A socket that its process has closed has no owner, but is reported as root's. */
static void closed_by_peer(struct peer_uid *peer_uid, int listener, int port, bool unread)
{
	struct tcp_ends ends = { 0 };
	socklen_t len = sizeof(ends.local);
	int caller = connect_to(port), fd;

	check(write(caller, "x", unread) == unread);
	getsockname(caller, (struct sockaddr *)&ends.peer, &len);
	close(caller);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	getsockname(fd, (struct sockaddr *)&ends.local, &len);
	ask_both(peer_uid, &ends, false);
	check(!is_ours(peer_uid, fd));
	close(fd);
}

/* One pass finds all connections; every third is closed, and a listener is none. */
static void many(struct peer_uid *peer_uid, int listener, int port)
{
	int ours[PEER_UID_BATCH], theirs[PEER_UID_BATCH], i;
	bool good[PEER_UID_BATCH];

	for (i = 0; i < PEER_UID_BATCH; i++)
		theirs[i] = connect_to(port);
	for (i = 0; i < PEER_UID_BATCH; i++) {
		ours[i] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (i % 3 == 0)
			close(theirs[i]);
	}
	close(ours[1]);
	ours[1] = dup(listener);
	for (i = 0; i < 2; i++) {
		int known = peer_uid->netlink, n;

		if (i)
			peer_uid->netlink = -1;
		peer_uid_check(peer_uid, ours, good, PEER_UID_BATCH);
		for (n = 0; n < PEER_UID_BATCH; n++)
			check(good[n] == (n % 3 && n != 1));
		peer_uid->netlink = known;
	}
	for (i = 0; i < PEER_UID_BATCH; i++) {
		close(ours[i]);
		if (i % 3)
			close(theirs[i]);
	}
}

/* By /proc/net/tcp: several at once, and none remains. */
static void accept_by_list(struct peer_uid *peer_uid, int listener, int port)
{
	int known = peer_uid->netlink, fds[PEER_UID_BATCH], i, theirs[5];

	peer_uid->netlink = -1;
	for (i = 0; i < 5; i++)
		theirs[i] = connect_to(port);
	close(theirs[1]);
	check(accept_same_user(listener, peer_uid, fds, 4) == 4);
	for (i = 0; i < 4; i++) {
		check((fds[i] < 0) == (i == 1));
		close(fds[i]);
	}
	check(accept_same_user(listener, peer_uid, fds, PEER_UID_BATCH) == 1 && fds[0] >= 0);
	close(fds[0]);
	for (i = 0; i < 5; i++)
		if (i != 1)
			close(theirs[i]);
	peer_uid->netlink = known;
}

void test_peer_uid(void)
{
	int port, listener = listen_loopback(&port), caller = connect_to(port), fd, i;
	struct peer_uid peer_uid;
	struct tcp_ends ends = { 0 };
	socklen_t len = sizeof(ends.local);

	check(!peer_uid_open(&peer_uid, listener));
	/* A list of thousands of closed sockets may take longer than is waited for. */
	peer_uid.list_ms = PATIENCE_MS;
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	check(fd >= 0 && is_ours(&peer_uid, fd));
	getsockname(caller, (struct sockaddr *)&ends.peer, &len);
	getsockname(fd, (struct sockaddr *)&ends.local, &len);
	ask_both(&peer_uid, &ends, true);
	ends.peer.sin_port ^= htons(1);
	ask_both(&peer_uid, &ends, false);
	/* without a connection the kernel finds the listener */
	getsockname(listener, (struct sockaddr *)&ends.peer, &len);
	ask_both(&peer_uid, &ends, false);
	/* a connection of another user */
	peer_uid.uid++;
	check(!is_ours(&peer_uid, fd));
	peer_uid.uid--;
	close(fd);
	close(caller);
	closed_by_peer(&peer_uid, listener, port, false);
	closed_by_peer(&peer_uid, listener, port, true);
	/* a listener has no other end */
	check(!is_ours(&peer_uid, listener));
	check(accept_same_user(listener, &peer_uid, &i, 1) == -EAGAIN);
	many(&peer_uid, listener, port);
	accept_by_list(&peer_uid, listener, port);
	/* no descriptor is leaked */
	fd = dup(0);
	close(fd);
	for (i = 0; i < 100; i++) {
		int closed = 0;

		caller = connect_to(port);
		close(caller);
		check(accept_same_user(listener, &peer_uid, &closed, 1) == 1 && closed == -1);
	}
	check(dup(0) == fd);
	close(fd);
	peer_uid_close(&peer_uid);
	close(listener);
}
