// SPDX-License-Identifier: GPL-2.0
/*
 * Who calls? TCP doesn't say, but the kernel knows whose socket the other end of
 * a local connection is: of one, by netlink; or in a list of all, for which it
 * looks through a table as large as the machine's memory.
 */
#include "caller.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- by netlink ---- */

static int ask(int fd, const struct ends *ends)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 req;
	} question = {
		.head = {
			.nlmsg_len = sizeof(question),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST,
		},
		.req = {
			.sdiag_family = AF_INET,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_states = ~0U,
			.id = {
				.idiag_sport = ends->caller.sin_port,
				.idiag_dport = ends->ours.sin_port,
				.idiag_src = { ends->caller.sin_addr.s_addr },
				.idiag_dst = { ends->ours.sin_addr.s_addr },
				.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE },
			},
		},
	};

	return send(fd, &question, sizeof(question), 0) < 0 ? -errno : 0;
}

static int hear(int fd, uid_t *uid)
{
	char answer[4096] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr *head = (const struct nlmsghdr *)answer;
	const struct inet_diag_msg *socket = NLMSG_DATA(head);
	ssize_t len = recv(fd, answer, sizeof(answer), 0);

	if (len < 0)
		return -errno;
	if ((size_t)len < NLMSG_LENGTH(sizeof(*socket)) || head->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return -ENOENT;
	*uid = socket->idiag_uid;
	return 0;
}

int caller_look_up(const struct ends *ends, uid_t *uid)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	int err;

	if (fd < 0)
		return -errno;
	err = ask(fd, ends);
	if (!err)
		err = hear(fd, uid);
	close(fd);
	return err;
}

/* ---- in the list ---- */

static bool is_end(const struct sockaddr_in *end, unsigned int addr, unsigned int port)
{
	return addr == end->sin_addr.s_addr && port == ntohs(end->sin_port);
}

int caller_search(const struct ends *ends, uid_t *uid)
{
	unsigned int from_addr, from_port, to_addr, to_port;
	FILE *list = fopen("/proc/net/tcp", "re");
	int err = -ENOENT;
	char line[256];

	while (list && err && fgets(line, sizeof(line), list))
		if (sscanf(line, " %*u: %x:%x %x:%x %*x %*x:%*x %*x:%*x %*x %u", &from_addr,
			   &from_port, &to_addr, &to_port, uid) == 5 &&
		    is_end(&ends->caller, from_addr, from_port) &&
		    is_end(&ends->ours, to_addr, to_port))
			err = 0;
	if (list)
		fclose(list);
	return err;
}

bool caller_is_ours(int fd)
{
	/* the kernel has no module for the other way; who asks are two threads */
	static _Thread_local bool only_list;
	struct ends ends;
	socklen_t caller_len = sizeof(ends.caller), our_len = sizeof(ends.ours);
	uid_t uid;

	if (getpeername(fd, (struct sockaddr *)&ends.caller, &caller_len) < 0 ||
	    getsockname(fd, (struct sockaddr *)&ends.ours, &our_len) < 0)
		return false;
	if (only_list || caller_look_up(&ends, &uid)) {
		if (caller_search(&ends, &uid))
			return false;
		only_list = true;
	}
	return uid == geteuid();
}
