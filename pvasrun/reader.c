// SPDX-License-Identifier: GPL-2.0-only
/* Reading files whose server may not answer: see reader.h. */
#include "reader.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static bool send_all(int to, const char *bytes, size_t len)
{
	ssize_t n;

	do {
		n = send(to, bytes, len, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)len;
}

/* Nobody needs it once pvasrun has ended, however that was. */
static void read_until_end(int to, int fd)
{
	static char bytes[READER_MAX];
	ssize_t n;

	prctl(PR_SET_NAME, "pvas-read");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	do {
		n = read(fd, bytes, sizeof(bytes));
	} while ((n < 0 && errno == EINTR) || (n > 0 && send_all(to, bytes, (size_t)n)));
}

int reader_begin(struct file_child *child, int fd)
{
	return file_child_begin(child, fd, read_until_end);
}

ssize_t reader_read(const struct file_child *child, char *bytes, size_t len)
{
	return recv(child->end, bytes, len, MSG_DONTWAIT);
}
