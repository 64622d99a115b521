// SPDX-License-Identifier: GPL-2.0-only
/* Reading files whose server may not answer: see reader.h. */
#include "reader.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* A packet begins with this, or with an errno, 0 at the end of the file: then it is the last. */
#define DATA	(-1)

static bool tell(int to, int state, char *bytes, size_t len)
{
	struct iovec parts[] = { { &state, sizeof(state) }, { bytes, len } };
	const struct msghdr packet = { .msg_iov = parts, .msg_iovlen = 2 };
	ssize_t n;

	do {
		n = sendmsg(to, &packet, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n >= 0;
}

/* Nobody needs it once pvasrun has ended, however that was. */
static void read_until_end(int to, int fd)
{
	static char bytes[READER_MAX];
	struct pollfd input = { .fd = fd, .events = POLLIN };
	ssize_t n;

	prctl(PR_SET_NAME, "pvas-read");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	do {
		n = read(fd, bytes, sizeof(bytes));
		if (n < 0 && errno == EAGAIN)	/* others have made a pipe so */
			poll(&input, 1, -1);
	} while ((n < 0 && (errno == EINTR || errno == EAGAIN)) ||
		 (n > 0 && tell(to, DATA, bytes, (size_t)n)));
	if (n <= 0)
		tell(to, n < 0 ? errno : 0, NULL, 0);
}

int reader_begin(struct file_child *child, int fd)
{
	return file_child_begin(child, fd, read_until_end);
}

ssize_t reader_read(const struct file_child *child, char *bytes, size_t len)
{
	int state = EIO;	/* somebody has killed the child */
	struct iovec parts[] = { { &state, sizeof(state) }, { bytes, len } };
	struct msghdr packet = { .msg_iov = parts, .msg_iovlen = 2 };
	ssize_t n = recvmsg(child->end, &packet, MSG_DONTWAIT);

	if (n < 0)
		return n;
	if (state == DATA)
		return n - (ssize_t)sizeof(state);
	errno = state;
	return state ? -1 : 0;
}
