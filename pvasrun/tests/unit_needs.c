// SPDX-License-Identifier: GPL-2.0-only
/* Is a program linked with an MPI library? */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

static void shrinking(void)
{
	char path[] = "/tmp/pvas-unit-XXXXXX";
	int fd = mkstemp(path), status = -1, i;
	pid_t pid = fork();

	if (!pid)
		for (;;)
			if (pwrite(fd, image, sizeof(image), 0) < 0 || ftruncate(fd, 0))
				_exit(1);
	for (i = 0; i < 3000; i++)
		check(!needs(path));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	close(fd);
	unlink(path);
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
	/* nobody writes to it */
	check(!mkfifo(path, 0600) && !needs(path));
	unlink(path);
	/* one linked with MPI, which its owner makes shorter all the time */
	shrinking();
}
