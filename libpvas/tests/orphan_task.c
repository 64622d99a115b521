// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A task that ends, and leaves two children: run by shutdown.c.
 *
 *	orphan_task FILE GO RESULT
 *
 * One makes a call that reads its argument from FILE, whose server doesn't answer. The other one
 * waits until it can read from the descriptor GO, tries to map memory and to fork, and writes
 * both errors to the descriptor RESULT.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE	4096UL

static int in_readlink(pid_t pid)
{
	char path[40];
	int nr = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	f = fopen(path, "r");
	if (!f)
		return 1;
	if (fscanf(f, "%d", &nr) != 1)
		nr = -1;
	fclose(f);
	return nr == SYS_readlink;
}

static int read_name(const char *file)
{
	const char *name = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, open(file, O_RDONLY), 0);
	char text[8];

	return syscall(SYS_readlink, name, text, sizeof(text)) == -1;
}

static int call_late(int go, int result)
{
	int err[2] = { 0, 0 };
	char c;

	if (read(go, &c, 1) != 1)
		return 1;
	if (mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		err[0] = errno;
	if (fork() < 0)
		err[1] = errno;
	return write(result, err, sizeof(err)) != sizeof(err);
}

int main(int argc, char **argv)
{
	pid_t pid;

	if (argc < 4)
		return 2;
	pid = fork();
	if (!pid)
		return read_name(argv[1]);
	if (!fork())
		_exit(call_late(atoi(argv[2]), atoi(argv[3])));
	while (!in_readlink(pid))
		usleep(1000);
	/* A helper begins to read it. */
	usleep(300000);
	return 0;
}
