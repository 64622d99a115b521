// SPDX-License-Identifier: GPL-2.0
/* Whose connections are they? Those of this process, and one that is not there */
#include <sys/socket.h>
#include <unistd.h>

#include "../caller.h"
#include "../listen.h"
#include "unit.h"

void test_caller(void)
{
	int port, listener = listen_here(&port), caller = call_here(port);
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	struct ends ends = { 0 };
	socklen_t len = sizeof(ends.ours);
	uid_t uid = -1;

	check(fd >= 0 && caller_is_ours(fd));
	getsockname(caller, (struct sockaddr *)&ends.caller, &len);
	getsockname(fd, (struct sockaddr *)&ends.ours, &len);
	check(!caller_search(&ends, &uid) && uid == geteuid());
	uid = -1;
	/* it needs a module, which a small kernel may not have */
	check(caller_look_up(&ends, &uid) || uid == geteuid());
	ends.caller.sin_port ^= htons(1);
	check(caller_search(&ends, &uid));
	check(caller_look_up(&ends, &uid));
	close(fd);
	close(caller);
	/* a listener has no other end */
	check(!caller_is_ours(listener));
	close(listener);
}
