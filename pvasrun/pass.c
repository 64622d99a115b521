// SPDX-License-Identifier: GPL-2.0-only
#include "pass.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define ROOM_MS	10000	/* in which this process was not stopped, as the other may have been */
#define WAIT_MS	100
#define TRY_MS	1	/* nothing tells when fewer descriptors are on their way */

union rights {
	char space[CMSG_SPACE(PASS_MAX * sizeof(int))];
	struct cmsghdr align;
};

static ssize_t try_send(int to, const void *bytes, size_t len, const int *fds, unsigned int n)
{
	union rights rights = { .align = {
		.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(n * sizeof(int)),
	} };
	struct iovec iov = { (void *)bytes, len };
	const struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = n ? &rights : NULL,
		.msg_controllen = n ? CMSG_SPACE(n * sizeof(int)) : 0,
	};

	if (n)
		memcpy(CMSG_DATA(&rights.align), fds, n * sizeof(int));
	return sendmsg(to, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int pass_send(int to, const void *bytes, size_t len, const int *fds, unsigned int n)
{
	struct pollfd room = { .fd = to, .events = POLLOUT };
	int waited = 0;

	while (try_send(to, bytes, len, fds, n) < 0) {
		const int wait = errno == EAGAIN ? WAIT_MS : TRY_MS;

		if ((errno != EAGAIN && errno != EINTR && errno != ETOOMANYREFS) ||
		    waited >= ROOM_MS)
			return -errno;
		if (poll(&room, errno == EAGAIN, wait) <= 0)
			waited += wait;
	}
	return 0;
}

ssize_t pass_receive(int from, void *bytes, size_t len, int fds[static PASS_MAX])
{
	union rights rights;
	struct iovec iov = { bytes, len };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &rights, .msg_controllen = sizeof(rights),
	};
	ssize_t n = recvmsg(from, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *head;
	unsigned int i;

	for (i = 0; i < PASS_MAX; i++)
		fds[i] = -1;
	if (n < 0)
		return n;
	head = CMSG_FIRSTHDR(&msg);
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(head), head->cmsg_len - CMSG_LEN(0));
	return n;
}
