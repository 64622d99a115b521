// SPDX-License-Identifier: GPL-2.0-only
/*
 * poll() before a write is not enough: a terminal reports room if there is some, and
 * tasks that write to the same file may take the room in between. So the file is opened
 * anew (reopen.c). A pipe that can't be is written to by splice(), which takes a flag
 * not to block. The remaining case is a terminal of another user that isn't pvasrun's
 * own: it gets one byte at a time. A regular file's server may not answer: writer.c.
 */
#include "outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

/* One descriptor can be watched only once. */
static bool share_writer(struct outlet *outlet, struct outlet *other)
{
	if (!other || other->kind != OUTLET_WRITER || !file_child_same(outlet->fd, other->fd))
		return false;
	outlet->watched = fcntl(other->writer->child.end, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	outlet->writer = other->writer;
	return outlet->watched >= 0;
}

static bool open_writer(struct outlet *outlet)
{
	outlet->writer = &outlet->own;
	if (writer_begin(outlet->writer, outlet->fd))
		return false;
	outlet->watched = outlet->own.child.end;
	return true;
}

void outlet_open(struct outlet *outlet, int fd, struct outlet *other)
{
	const mode_t type = descriptor_type(fd);

	*outlet = OUTLET_NONE(fd);
	if (file_child_wanted(fd) && (share_writer(outlet, other) || open_writer(outlet))) {
		outlet->kind = OUTLET_WRITER;
		return;
	}
	if (S_ISSOCK(type)) {
		outlet->kind = OUTLET_SOCKET;
		return;
	}
	if (!S_ISFIFO(type) && !is_terminal(fd))
		return;
	outlet->kind = OUTLET_STREAM;
	reopen_nonblocking(&outlet->file, fd, O_WRONLY);
}

void outlet_close(struct outlet *outlet)
{
	reopened_close(&outlet->file);
	if (outlet->watched >= 0 && outlet->writer != &outlet->own)
		close(outlet->watched);
	writer_close(&outlet->own);
}

int outlet_watched(const struct outlet *outlet)
{
	return outlet->kind == OUTLET_WRITER ? outlet->watched : outlet->fd;
}

void outlet_finish(struct outlet *outlet)
{
	if (outlet->kind == OUTLET_WRITER)
		writer_finish(outlet->writer);
}

int outlet_finished(struct outlet *outlet)
{
	if (outlet->kind != OUTLET_WRITER)
		return 0;
	return writer_ended(outlet->writer) ? outlet->writer->error : -1;
}

/* The private pipe is empty between calls: what the other has no room for is dropped. */
static ssize_t write_by_splice(const struct outlet *outlet, const char *bytes, size_t len)
{
	char rest[PIPE_BUF];
	ssize_t put, moved;
	int err;

	put = write(outlet->file.pipe[1], bytes, len);
	if (put <= 0)
		return put;
	moved = splice(outlet->file.pipe[0], NULL, outlet->fd, NULL, put, SPLICE_F_NONBLOCK);
	err = errno;
	if (moved < put && read(outlet->file.pipe[0], rest, sizeof(rest)) < 0)
		err = errno;
	errno = err;
	return moved;
}

static ssize_t write_after_poll(int fd, const char *bytes, size_t len)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };

	if (poll(&room, 1, 0) <= 0) {
		errno = EAGAIN;
		return -1;
	}
	return write(fd, bytes, isatty(fd) ? 1 : len);
}

ssize_t outlet_write(struct outlet *outlet, const char *bytes, size_t len)
{
	if (len > PIPE_BUF)
		len = PIPE_BUF;
	if (outlet->file.own >= 0)
		return write(outlet->file.own, bytes, len);
	if (outlet->file.pipe[1] >= 0)
		return write_by_splice(outlet, bytes, len);
	if (outlet->kind == OUTLET_WRITER)
		return writer_write(outlet->writer, bytes, len);
	if (outlet->kind == OUTLET_SOCKET)
		return send(outlet->fd, bytes, len, MSG_DONTWAIT);
	if (outlet->kind == OUTLET_STREAM)
		return write_after_poll(outlet->fd, bytes, len);
	return write(outlet->fd, bytes, len);
}
