// SPDX-License-Identifier: GPL-2.0-only
/*
 * Holds a pipe or a terminal for ever: writes to it from, or reads from it to, the memory of a file
 * whose server never answers, as another user. That needs root at the beginning.
 *
 *	hold_stream DIRECTORY write|read DESCRIPTOR
 *
 * Appends the server's pid to DIRECTORY/holds when it begins. Its end, after a minute at most, is
 * the holder's. Status 77: there can be no such file here.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "../../libpvas/tests/hung_server.h"

#define SKIPPED	77
#define PAGE	4096
#define NOBODY	65534

int main(int argc, char **argv)
{
	int dev = open("/dev/fuse", O_RDWR | O_CLOEXEC), state = 0, began, fd;
	char path[4200], *page;
	pid_t server;
	ssize_t n;

	if (argc != 4)
		return 1;
	began = open(argv[1], O_PATH | O_CLOEXEC);	/* not what is mounted there */
	if (dev < 0 || began < 0 || mount_it(argv[1], dev))
		return SKIPPED;
	server = fork();
	if (!server) {
		for (fd = 0; fd < 3; fd++)
			close(fd);
		serve(dev, &state);
	}
	close(dev);
	snprintf(path, sizeof(path), "%s/file", argv[1]);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return SKIPPED;
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return SKIPPED;
	setsid();
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	began = openat(began, "holds", O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0644);
	if (began < 0 || dprintf(began, "%d\n", server) < 0 || setresuid(NOBODY, NOBODY, NOBODY))
		return 1;
	fd = atoi(argv[3]);
	n = !strcmp(argv[2], "write") ? write(fd, page, 100) : read(fd, page, 100);
	return n < 0;
}
