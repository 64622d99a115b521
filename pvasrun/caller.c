// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP does not say who calls, but the kernel knows whose socket the other end of
 * a local connection is: of one, by sock_diag(7); or in a list of all, for which
 * it looks through a table as large as the machine's memory.
 *
 * A socket that its process has closed has no owner any more: the kernel calls it
 * root's, in any state on 6.1 and 6.12, later in TIME_WAIT. So only one counts that
 * is established and has an inode.
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

#include "clock.h"

#define ESTABLISHED	1	/* as both ways number it */
#define SEARCH_MS	500	/* 30 are enough, if nobody has made the list long */

/* ---- by netlink ---- */

static int ask(struct callers *callers, const struct ends *ends)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 req;
	} question = {
		.head = {
			.nlmsg_len = sizeof(question),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST,
			.nlmsg_seq = ++callers->seq,
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

	return send(callers->netlink, &question, sizeof(question), 0) < 0 ? -errno : 0;
}

/* The kernel has answered before send() returns; what is older is passed over. */
static int hear(struct callers *callers, struct inet_diag_msg *found)
{
	char answer[4096] __attribute__((aligned(NLMSG_ALIGNTO)));
	const struct nlmsghdr *head = (const struct nlmsghdr *)answer;
	ssize_t len;

	do {
		len = recv(callers->netlink, answer, sizeof(answer), MSG_DONTWAIT);
		if (len < 0)
			return -errno;
	} while ((size_t)len >= sizeof(*head) && head->nlmsg_seq != callers->seq);
	if ((size_t)len < NLMSG_LENGTH(sizeof(*found)) || head->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return -ENOENT;
	memcpy(found, NLMSG_DATA(head), sizeof(*found));
	return 0;
}

static int look_up(struct callers *callers, const struct ends *ends, struct inet_diag_msg *found)
{
	int err = ask(callers, ends);

	return err ? err : hear(callers, found);
}

int caller_look_up(struct callers *callers, const struct ends *ends, uid_t *uid)
{
	struct inet_diag_msg found;
	int err = look_up(callers, ends, &found);

	if (err)
		return err;
	/* a listener can be what is found in the place of a connection that has gone */
	if (found.idiag_state != ESTABLISHED || !found.idiag_inode ||
	    found.id.idiag_sport != ends->caller.sin_port ||
	    found.id.idiag_dport != ends->ours.sin_port)
		return -ENOENT;
	*uid = found.idiag_uid;
	return 0;
}

/* ---- in the list ---- */

static bool is_end(const struct sockaddr_in *end, unsigned int addr, unsigned int port)
{
	return addr == end->sin_addr.s_addr && port == ntohs(end->sin_port);
}

/* Returns how many of those that were not found before have the socket of this line. */
static int find_line(const char *line, const struct ends *ends, bool *ours, int nr, uid_t uid)
{
	unsigned int from_addr, from_port, to_addr, to_port, state, owner;
	unsigned long inode;
	int i, found = 0;

	if (sscanf(line, " %*u: %x:%x %x:%x %x %*x:%*x %*x:%*x %*x %u %*u %lu", &from_addr,
		   &from_port, &to_addr, &to_port, &state, &owner, &inode) != 7 ||
	    state != ESTABLISHED || !inode || owner != uid)
		return 0;
	for (i = 0; i < nr; i++) {
		if (ours[i] || !is_end(&ends[i].caller, from_addr, from_port) ||
		    !is_end(&ends[i].ours, to_addr, to_port))
			continue;
		ours[i] = true;
		found++;
	}
	return found;
}

/* How long the list is, others decide: those that are not found in time are strangers. */
void caller_search(const struct ends *ends, bool *ours, int nr, uid_t uid)
{
	FILE *list = fopen("/proc/net/tcp", "re");
	int64_t until = now_ms() + SEARCH_MS;
	int missing = nr;
	char line[256];

	while (list && missing && now_ms() < until && fgets(line, sizeof(line), list))
		missing -= find_line(line, ends, ours, nr, uid);
	if (list)
		fclose(list);
}

/* ---- begin and end ---- */

/* Does one number here mean one user? Those without a number share this one. */
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

/* If the kernel answers for a socket that is there, what it does not find is not there. */
static bool netlink_works(struct callers *callers, int listener)
{
	struct ends ends = { .ours = { .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = 1 } };
	socklen_t len = sizeof(ends.caller);
	struct inet_diag_msg found;

	return !getsockname(listener, (struct sockaddr *)&ends.caller, &len) &&
	       !look_up(callers, &ends, &found);
}

int callers_open(struct callers *callers, int listener)
{
	*callers = (struct callers){ .uid = geteuid() };
	callers->netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (uid_is_shared(callers->uid)) {
		callers_close(callers);
		return -EOVERFLOW;
	}
	if (callers->netlink >= 0 && !netlink_works(callers, listener))
		callers_close(callers);
	return 0;
}

void callers_close(struct callers *callers)
{
	if (callers->netlink >= 0)
		close(callers->netlink);
	callers->netlink = -1;
}

static bool get_ends(int fd, struct ends *ends)
{
	socklen_t caller_len = sizeof(ends->caller), our_len = sizeof(ends->ours);

	return !getpeername(fd, (struct sockaddr *)&ends->caller, &caller_len) &&
	       !getsockname(fd, (struct sockaddr *)&ends->ours, &our_len);
}

void callers_check(struct callers *callers, const int *fds, bool *ours, int nr)
{
	struct ends ends[CALLERS_AT_ONCE];
	uid_t uid;
	int i;

	for (i = 0; i < nr; i++) {
		ends[i] = (struct ends){ 0 };
		ours[i] = get_ends(fds[i], &ends[i]) && callers->netlink >= 0 &&
			  !caller_look_up(callers, &ends[i], &uid) && uid == callers->uid;
	}
	if (callers->netlink < 0)
		caller_search(ends, ours, nr, callers->uid);
}
