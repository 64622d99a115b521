// SPDX-License-Identifier: GPL-2.0
/* Is a program linked with an MPI library? */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "../mpi.h"
#include "unit.h"

static char image[1 << 20];

/* What is in a file that ends too early may point anywhere. */
static bool cut_after(const char *path, ssize_t len)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, image, len) == len;

	close(fd);
	return written && !needs(path);
}

void test_needs(void)
{
	char path[] = "/tmp/pvas-unit-XXXXXX";
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ssize_t len = read(fd, image, sizeof(image)), cut;

	close(fd);
	check(len > 4096);
	check(!needs("/proc/self/exe"));
	check(!needs("/nonexistent"));
	check(!needs("/"));
	check(!needs("/dev/null"));
	fd = mkstemp(path);
	close(fd);
	for (cut = 1; cut < len; cut *= 2)
		check(cut_after(path, cut));
	/* an odd byte in the table of segments */
	image[40] = (char)0xff;
	check(cut_after(path, len));
	unlink(path);
}
