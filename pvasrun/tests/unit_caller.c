// SPDX-License-Identifier: GPL-2.0-only
/* Whose connections are they? Those of this process, and ones that are not there */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../caller.h"
#include "../listen.h"
#include "unit.h"

static int call(int port)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	check(!connect(fd, (struct sockaddr *)&at, sizeof(at)));
	return fd;
}

/* Both ways say the same. */
static void ask_both(struct callers *callers, const struct ends *ends, bool there)
{
	bool ours = false;
	uid_t uid = -1;

	caller_search(ends, &ours, 1, geteuid());
	check(ours == there);
	ours = false;
	caller_search(ends, &ours, 1, geteuid() + 1);
	check(!ours);
	/* it needs a module, which a small kernel may not have */
	if (callers->netlink >= 0)
		check(!caller_look_up(callers, ends, &uid) == there &&
		      (!there || uid == geteuid()));
}

static bool is_ours(struct callers *callers, int fd)
{
	bool ours;

	callers_check(callers, &fd, &ours, 1);
	return ours;
}

/* A caller that has closed its end has no owner, which looks like root. */
static void hung_up(struct callers *callers, int listener, int port, bool unread)
{
	struct ends ends = { 0 };
	socklen_t len = sizeof(ends.ours);
	int caller = call(port), fd;

	check(write(caller, "x", unread) == unread);
	getsockname(caller, (struct sockaddr *)&ends.caller, &len);
	close(caller);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	getsockname(fd, (struct sockaddr *)&ends.ours, &len);
	ask_both(callers, &ends, false);
	check(!is_ours(callers, fd));
	close(fd);
}

/* One search finds all that are there: every third has gone, the listener is none. */
static void many(struct callers *callers, int listener, int port)
{
	int ours[CALLERS_AT_ONCE], theirs[CALLERS_AT_ONCE], i;
	bool good[CALLERS_AT_ONCE];

	for (i = 0; i < CALLERS_AT_ONCE; i++)
		theirs[i] = call(port);
	for (i = 0; i < CALLERS_AT_ONCE; i++) {
		ours[i] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (i % 3 == 0)
			close(theirs[i]);
	}
	close(ours[1]);
	ours[1] = dup(listener);
	for (i = 0; i < 2; i++) {
		int known = callers->netlink, n;

		if (i)
			callers->netlink = -1;
		callers_check(callers, ours, good, CALLERS_AT_ONCE);
		for (n = 0; n < CALLERS_AT_ONCE; n++)
			check(good[n] == (n % 3 && n != 1));
		callers->netlink = known;
	}
	for (i = 0; i < CALLERS_AT_ONCE; i++) {
		close(ours[i]);
		if (i % 3)
			close(theirs[i]);
	}
}

/* By the list: many callers at once, and none is left over. */
static void accept_by_list(struct callers *callers, int listener, int port)
{
	int known = callers->netlink, taken[CALLERS_AT_ONCE], i, theirs[5];

	callers->netlink = -1;
	for (i = 0; i < 5; i++)
		theirs[i] = call(port);
	close(theirs[1]);
	check(accept_here(listener, callers, taken, 4) == 4);
	for (i = 0; i < 4; i++) {
		check((taken[i] < 0) == (i == 1));
		close(taken[i]);
	}
	check(accept_here(listener, callers, taken, CALLERS_AT_ONCE) == 1 && taken[0] >= 0);
	close(taken[0]);
	for (i = 0; i < 5; i++)
		if (i != 1)
			close(theirs[i]);
	callers->netlink = known;
}

void test_caller(void)
{
	int port, listener = listen_here(&port), caller = call(port), fd, i;
	struct callers callers;
	struct ends ends = { 0 };
	socklen_t len = sizeof(ends.ours);

	check(!callers_open(&callers, listener));
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	check(fd >= 0 && is_ours(&callers, fd));
	getsockname(caller, (struct sockaddr *)&ends.caller, &len);
	getsockname(fd, (struct sockaddr *)&ends.ours, &len);
	ask_both(&callers, &ends, true);
	ends.caller.sin_port ^= htons(1);
	ask_both(&callers, &ends, false);
	/* in the place of a connection that is not there the kernel finds the listener */
	getsockname(listener, (struct sockaddr *)&ends.caller, &len);
	ask_both(&callers, &ends, false);
	/* another user's */
	callers.uid++;
	check(!is_ours(&callers, fd));
	callers.uid--;
	close(fd);
	close(caller);
	hung_up(&callers, listener, port, false);
	hung_up(&callers, listener, port, true);
	/* a listener has no other end */
	check(!is_ours(&callers, listener));
	check(accept_here(listener, &callers, &i, 1) == -EAGAIN);
	many(&callers, listener, port);
	accept_by_list(&callers, listener, port);
	/* the socket that asks stays open, and nothing else does */
	fd = dup(0);
	close(fd);
	for (i = 0; i < 100; i++) {
		int taken = 0;

		caller = call(port);
		close(caller);
		check(accept_here(listener, &callers, &taken, 1) == 1 && taken == -1);
	}
	check(dup(0) == fd);
	close(fd);
	callers_close(&callers);
	close(listener);
}
