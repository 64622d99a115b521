// SPDX-License-Identifier: GPL-2.0-only
/* Is a program linked with an MPI library? */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../elf_needed.h"
#include "unit.h"

static char image[1 << 20];

/* Offsets in a truncated file may point anywhere. */
static bool cut_after(const char *path, ssize_t len)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, image, len) == len;

	close(fd);
	return written && !(elf_needed(path) & ~ELF_IS_ELF);
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
		check(!(elf_needed(path) & ~ELF_IS_ELF));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	close(fd);
	unlink(path);
}

void test_elf_needed(void)
{
	char path[] = "/tmp/pvas-unit-XXXXXX";
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ssize_t len = read(fd, image, sizeof(image)), cut;

	close(fd);
	check(len > 4096);
	check(elf_needed("/proc/self/exe") == ELF_IS_ELF);
	check(!elf_needed("/nonexistent"));
	check(!elf_needed("/"));
	check(!elf_needed("/dev/null"));
	fd = mkstemp(path);
	close(fd);
	for (cut = 1; cut < len; cut *= 2)
		check(cut_after(path, cut));
	/* a wrong byte in the program header table */
	image[40] = (char)0xff;
	check(cut_after(path, len));
	unlink(path);
	/* a FIFO without a writer */
	check(!mkfifo(path, 0600) && !elf_needed(path));
	unlink(path);
	/* one linked with MPI, which its owner truncates all the time */
	shrinking();
}
