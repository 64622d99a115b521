// SPDX-License-Identifier: GPL-2.0-only
/*
 * poll() before a read is not enough where others read the same pipe or terminal. What
 * blocks all the same is a terminal of another user that isn't pvasrun's own.
 *
 * A pipe is read by a child alone: a program of another user before pvasrun in a pipeline can hold
 * up read(2) and the last close(2), as relay.h says.
 */
#include "inlet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "late_close.h"
#include "reader.h"

/* The child has a copy, so this close(2) of ours is not the last. */
static int give_up(int fd)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), err;

	if (null < 0)
		return -errno;
	err = dup2(null, fd) < 0 ? -errno : 0;
	close(null);
	return err;
}

int inlet_open(struct inlet *inlet, int fd)
{
	const bool pipe = S_ISFIFO(descriptor_type(fd));
	int err;

	*inlet = (struct inlet){ .fd = fd, .file = REOPENED_NONE, .reader = FILE_CHILD_NONE };
	if (!pipe && !file_child_wanted(fd)) {
		reopen_nonblocking(&inlet->file, fd, O_RDONLY);
		return 0;
	}
	err = reader_begin(&inlet->reader, fd);
	return err || !pipe ? err : give_up(fd);
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
	n = receive_bytes(inlet->fd, bytes, len, NULL);
	return n < 0 && errno == ENOTSOCK ? read(inlet->fd, bytes, len) : n;
}
