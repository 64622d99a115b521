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
	uid_t uid = -1;

	check(!caller_search(ends, &uid) == there && (!there || uid == geteuid()));
	uid = -1;
	/* it needs a module, which a small kernel may not have */
	if (callers->netlink >= 0)
		check(!caller_look_up(callers, ends, &uid) == there &&
		      (!there || uid == geteuid()));
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
	check(!caller_is_ours(callers, fd));
	close(fd);
}

void test_caller(void)
{
	int port, listener = listen_here(&port), caller = call(port), fd, i;
	struct callers callers;
	struct ends ends = { 0 };
	socklen_t len = sizeof(ends.ours);

	check(!callers_open(&callers, listener));
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	check(fd >= 0 && caller_is_ours(&callers, fd));
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
	check(!caller_is_ours(&callers, fd));
	callers.uid--;
	close(fd);
	close(caller);
	hung_up(&callers, listener, port, false);
	hung_up(&callers, listener, port, true);
	/* a listener has no other end */
	check(!caller_is_ours(&callers, listener));
	check(accept_here(listener, &callers) == -EAGAIN);
	/* the socket that asks stays open, and nothing else does */
	fd = dup(0);
	close(fd);
	for (i = 0; i < 100; i++) {
		caller = call(port);
		close(caller);
		check(accept_here(listener, &callers) == -EPERM);
	}
	check(dup(0) == fd);
	close(fd);
	callers_close(&callers);
	close(listener);
}
