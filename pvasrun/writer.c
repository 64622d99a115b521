// SPDX-License-Identifier: GPL-2.0-only
/* Writing to files whose server may not answer: see writer.h. */
#include "writer.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the child ---- */

static int write_all(int fd, const char *bytes, size_t len)
{
	ssize_t n;

	while (len) {
		n = write(fd, bytes, len);
		if (n < 0 && errno != EINTR)
			return errno;
		if (!n)		/* a server that takes nothing */
			return EIO;
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

static void write_until_end(int from, int fd)
{
	char bytes[PIPE_BUF];
	ssize_t n;
	int err = 0;

	prctl(PR_SET_NAME, "pvas-write");
	while (!err) {
		n = recv(from, bytes, sizeof(bytes), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		err = write_all(fd, bytes, (size_t)n);
	}
	if (close(fd) < 0 && !err)
		err = errno;
	send(from, &err, sizeof(err), MSG_NOSIGNAL);
}

/* ---- pvasrun ---- */

int writer_begin(struct writer *writer, int fd)
{
	*writer = (struct writer)WRITER_NONE;
	return file_child_begin(&writer->child, fd, write_until_end);
}

/*
 * The child has ended. That it has left packets is an error of the socket (ECONNRESET), which
 * comes before its word. Without one, somebody has killed it, as the OOM killer may.
 */
static void hear(struct writer *writer)
{
	const int end = writer->child.end;
	int err = EIO;
	ssize_t n;

	if (writer->told)
		return;
	do {
		n = recv(end, &err, sizeof(err), MSG_DONTWAIT);
	} while (n < 0 && (errno == ECONNRESET || errno == EINTR));
	writer->error = n == sizeof(err) ? err : EIO;
	writer->told = true;
}

ssize_t writer_write(struct writer *writer, const char *bytes, size_t len)
{
	ssize_t n = send(writer->child.end, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n >= 0 || (errno != EPIPE && errno != ECONNRESET))
		return n;
	hear(writer);
	/* A file server can answer anything, but "no room now" is this function's own. */
	errno = writer->error && writer->error != EAGAIN ? writer->error : EIO;
	return -1;
}

void writer_finish(struct writer *writer)
{
	shutdown(writer->child.end, SHUT_WR);
}

bool writer_ended(struct writer *writer)
{
	struct pollfd ended = { .fd = writer->child.end, .events = POLLRDHUP };

	if (!writer->told && poll(&ended, 1, 0) != 1)
		return false;
	hear(writer);
	return true;
}

void writer_close(struct writer *writer)
{
	file_child_close(&writer->child);
}
