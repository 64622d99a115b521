// SPDX-License-Identifier: GPL-2.0-only
/*
 * poll() before a read is not enough where others read the same pipe or terminal. What
 * blocks all the same is a terminal of another user that isn't pvasrun's own.
 */
#include "inlet.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "late_close.h"
#include "reader.h"

void inlet_open(struct inlet *inlet, int fd)
{
	*inlet = (struct inlet){ .fd = fd, .file = REOPENED_NONE, .reader = FILE_CHILD_NONE };
	if (!file_child_wanted(fd) || reader_begin(&inlet->reader, fd))
		reopen_nonblocking(&inlet->file, fd, O_RDONLY);
}

void inlet_close(struct inlet *inlet)
{
	reopened_close(&inlet->file);
	file_child_close(&inlet->reader);
}

int inlet_watched(const struct inlet *inlet)
{
	return inlet->reader.end >= 0 ? inlet->reader.end : inlet->fd;
}

ssize_t inlet_read(const struct inlet *inlet, char *bytes, size_t len)
{
	ssize_t n;

	if (inlet->reader.end >= 0)
		return reader_read(&inlet->reader, bytes, len);
	if (inlet->file.own >= 0)
		return read(inlet->file.own, bytes, len);
	if (inlet->file.pipe[0] >= 0) {
		n = splice(inlet->fd, NULL, inlet->file.pipe[1], NULL, len, SPLICE_F_NONBLOCK);
		return n > 0 ? read(inlet->file.pipe[0], bytes, n) : n;
	}
	n = receive_bytes(inlet->fd, bytes, len, NULL);
	return n < 0 && errno == ENOTSOCK ? read(inlet->fd, bytes, len) : n;
}
