// SPDX-License-Identifier: GPL-2.0-only
/* The child that writes: stopped, killed, and with a full disk after all has been passed on. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../writer.h"
#include "unit.h"

#define PATIENCE_MS	30000

static const char text[PIPE_BUF];

/* After writer_finish(): the error of the child's end */
static int end_of(struct writer *writer)
{
	struct pollfd ended = { .fd = writer->child.end, .events = POLLRDHUP };

	check(poll(&ended, 1, PATIENCE_MS) == 1);
	check(writer_ended(writer) && writer_ended(writer));
	return writer->error;
}

static void begin(struct writer *writer, int fd, bool stopped)
{
	check(!writer_begin(writer, fd));
	if (stopped)
		kill(writer->child.pid, SIGSTOP);
}

static void all_written(void)
{
	struct writer writer;
	int fd = memfd_create("unit", MFD_CLOEXEC);

	begin(&writer, fd, false);
	check(writer_write(&writer, text, 5) == 5 && writer_write(&writer, text, 7) == 7);
	writer_finish(&writer);
	check(end_of(&writer) == 0 && lseek(fd, 0, SEEK_END) == 12);
	writer_close(&writer);
	close(fd);
}

/* A child that is stopped takes nothing, and can be ended. */
static void stopped(int fd)
{
	struct writer writer;
	unsigned int nr = 0;

	begin(&writer, fd, true);
	while (writer_write(&writer, text, sizeof(text)) > 0 && nr < 10000)
		nr++;
	check(errno == EAGAIN && nr && nr < 10000);
	writer_finish(&writer);
	check(!writer_ended(&writer));
	writer_close(&writer);
	check(writer.child.end < 0);
}

static void killed(int fd)
{
	struct writer writer;

	begin(&writer, fd, true);
	check(writer_write(&writer, text, 5) == 5);
	writer_finish(&writer);
	kill(writer.child.pid, SIGKILL);
	check(end_of(&writer) == EIO);
	writer_close(&writer);
	begin(&writer, fd, false);
	kill(writer.child.pid, SIGKILL);
	poll(&(struct pollfd){ .fd = writer.child.end, .events = POLLRDHUP }, 1, PATIENCE_MS);
	check(writer_write(&writer, text, 5) < 0 && errno == EIO);
	writer_close(&writer);
}

/* It has not taken what came after that which it couldn't write. */
static void full_late(void)
{
	struct writer writer;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC), i;

	if (fd < 0)
		return;
	begin(&writer, fd, true);
	for (i = 0; i < 3; i++)
		check(writer_write(&writer, text, 5) == 5);
	writer_finish(&writer);
	kill(writer.child.pid, SIGCONT);
	check(end_of(&writer) == ENOSPC);
	writer_close(&writer);
	close(fd);
}

void test_writer(void)
{
	int fd = memfd_create("unit", MFD_CLOEXEC);

	all_written();
	stopped(fd);
	killed(fd);
	full_late();
	close(fd);
}
