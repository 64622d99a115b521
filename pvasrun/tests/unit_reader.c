// SPDX-License-Identifier: GPL-2.0-only
/* The child that reads: to the end, an error, and killed, which is no end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../reader.h"
#include "unit.h"

#define SIZE		(100 * READER_MAX + 1)
#define PATIENCE_MS	30000

/* How many bytes come; then -1 with an errno, or 0 */
static size_t read_all(const struct file_child *child, ssize_t *end)
{
	struct pollfd ready = { .fd = child->end, .events = POLLIN };
	char bytes[READER_MAX];
	size_t all = 0;

	do {
		check(poll(&ready, 1, PATIENCE_MS) == 1);
		*end = reader_read(child, bytes, sizeof(bytes));
		all += *end > 0 ? (size_t)*end : 0;
	} while (*end > 0 || (*end < 0 && errno == EAGAIN));
	return all;
}

void test_reader(void)
{
	int fd = memfd_create("unit", MFD_CLOEXEC), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct file_child child;
	ssize_t end;

	check(!ftruncate(fd, SIZE));
	check(!reader_begin(&child, fd));
	check(read_all(&child, &end) == SIZE && !end);
	file_child_close(&child);

	check(!reader_begin(&child, null));
	check(!read_all(&child, &end) && end < 0 && errno == EBADF);
	file_child_close(&child);

	lseek(fd, 0, SEEK_SET);
	check(!reader_begin(&child, fd));
	kill(child.pid, SIGKILL);
	check(read_all(&child, &end) < SIZE && end < 0 && errno == EIO);
	file_child_close(&child);
	close(fd);
	close(null);
}
