// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process that looks like a task, but is none: a space header of its own making
 * (shift and entries are given), a program whose name is a FIFO's by now, and whatever
 * files are named, one that is called "gone..." deleted.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BASE (256UL << 20)

static void forge_header(uint32_t shift, uint32_t entries)
{
	const uint32_t numbers[] = { 1, 7, shift, 1, entries - 1, entries };
	const uint64_t magic = 0x5244485341565021, table = BASE + 4096;
	char *h = mmap((void *)BASE, 1 << 20, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (h == MAP_FAILED)
		exit(1);
	memcpy(h, &magic, sizeof(magic));
	memcpy(h + 8, numbers, sizeof(numbers));
	memcpy(h + 40, &table, sizeof(table));
}

/* In the partition that the stack lies in, with a shift of 38 */
static void forge_program(char *name)
{
	unsigned long at = ((unsigned long)&name & ~0xfffUL) - (64UL << 20);
	int fd = open(name, O_RDWR | O_CREAT, 0755);

	if (fd < 0 || ftruncate(fd, 8192) ||
	    mmap((void *)at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		exit(1);
	unlink(name);
	strcat(name, " (deleted)");
	if (mkfifo(name, 0644))
		exit(1);
}

/* Farther below. */
static void map_files(char **names)
{
	unsigned long at = ((unsigned long)&names & ~0xfffUL) - (96UL << 20);
	int fd;

	for (; *names; names++, at += 1 << 16) {
		fd = open(*names, O_RDONLY);
		if (fd < 0 || mmap((void *)at, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			exit(1);
		close(fd);
		if (!strncmp(*names, "gone", 4))
			unlink(*names);
	}
}

int main(int argc, char **argv)
{
	char name[256];

	if (argc < 4)
		return 1;
	forge_header((uint32_t)atol(argv[1]), (uint32_t)atol(argv[2]));
	snprintf(name, sizeof(name) - 16, "%s", argv[3]);
	forge_program(name);
	map_files(argv + 4);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
