// SPDX-License-Identifier: GPL-2.0-only
/* Files whose server may not answer: see writer.h. */
#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ask.h"
#include "linux_names.h"

#define KILLED_MS	100	/* until the child must have ended */

/* No server is asked about it. The number of a block device is that of its driver. */
bool writer_wanted(int fd)
{
	struct statx stx;

	return !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &stx) &&
	       S_ISREG(stx.stx_mode) && !stx.stx_dev_major;
}

/* ---- the child: calls of the kernel only, as for answers in ask.h ---- */

static int write_all(int fd, const char *bytes, size_t len)
{
	ssize_t n;

	while (len) {
		n = write(fd, bytes, len);
		if (n < 0 && errno != EINTR)
			return errno;
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

/* It has nothing open but its two files: pvasrun's readers and pipes don't wait for it. */
static void __attribute__((noreturn)) write_until_end(int from, int fd)
{
	char bytes[PIPE_BUF];
	ssize_t n;
	int err = 0;

	prctl(PR_SET_NAME, "pvas-write");
	syscall(SYS_close_range, from > fd ? from + 1 : fd + 1, ~0U, 0);
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
	if (err)
		send(from, &err, sizeof(err), MSG_NOSIGNAL);
	_exit(0);
}

/* Only these two, as 0 and 1. */
static void __attribute__((noreturn)) run(int from, int fd)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	from = fcntl(from, F_DUPFD, STDERR_FILENO + 1);
	if (from < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(from, STDIN_FILENO) < 0)
		_exit(1);
	close(STDERR_FILENO);
	write_until_end(STDIN_FILENO, STDOUT_FILENO);
}

/* ---- pvasrun ---- */

int writer_begin(struct writer *writer, int fd)
{
	int ends[2], err;

	*writer = (struct writer)WRITER_NONE;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	writer->child = fork_without_signal();
	err = writer->child < 0 ? -errno : 0;
	if (!writer->child)
		run(ends[1], fd);
	close(ends[1]);
	if (err)
		close(ends[0]);
	else
		writer->to = ends[0];
	return err;
}

/* Its error is the last that it sends. */
static void hear(struct writer *writer)
{
	int err;

	if (recv(writer->to, &err, sizeof(err), MSG_DONTWAIT) == sizeof(err))
		writer->error = err;
}

ssize_t writer_write(struct writer *writer, const char *bytes, size_t len)
{
	ssize_t n = send(writer->to, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	const int err = errno;

	if (n >= 0)
		return n;
	if (err == EPIPE || err == ECONNRESET)
		hear(writer);
	/* Somebody has killed it: as if there was a reader that closed its pipe. */
	errno = writer->error ? writer->error : err == ECONNRESET ? EPIPE : err;
	return -1;
}

void writer_finish(struct writer *writer)
{
	shutdown(writer->to, SHUT_WR);
}

bool writer_ended(struct writer *writer)
{
	struct pollfd ended = { .fd = writer->to, .events = POLLRDHUP };

	if (poll(&ended, 1, 0) != 1)
		return false;
	hear(writer);
	return true;
}

void writer_close(struct writer *writer)
{
	struct pollfd ended = { .fd = writer->to, .events = POLLRDHUP };

	if (writer->to < 0)
		return;
	kill(writer->child, SIGKILL);
	if (poll(&ended, 1, KILLED_MS) == 1)
		waitpid(writer->child, NULL, __WALL);
	close(writer->to);
	*writer = (struct writer)WRITER_NONE;
}
