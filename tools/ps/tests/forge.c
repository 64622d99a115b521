// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process that looks like a task, or the launcher, of another's space: reads
 * a line "ID PID..." from standard input, and has from then on a header in its memory with
 * that id and tasks of these pids, where a space of the user backend has it.
 *
 * "forge many": an id of its own, and itself 4096 times
 * "forge file PATH": the same, but the table lies in a mapping of this file
 * "forge maps N M": M mappings below 4 GiB, in the memory of N processes
 * "forge hang [N UID]", begun by root: its memory never answers who reads it; N more
 * processes have the same memory, and the uids from UID on
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/pvas.h>

#include "../../../libpvas/header.h"

#define BASE	(256UL << 20)
#define LEN	(4UL << 20)

static void forged(void)
{
	printf("forged\n");
	fflush(stdout);
	pause();
}

/* A claim of @nr tasks, of its own. The table is written before it is a file's. */
static void forge_own(struct pvas_header *h, uint32_t nr, const char *path)
{
	struct pvas_part *parts = (struct pvas_part *)(BASE + PVAS_HEADER_TABLE);
	int fd = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;

	for (h->last = 0; h->last < nr;) {
		h->last++;
		parts[h->last].state = h->last % 2 ? PVAS_PART_RUNNING : PVAS_PART_ENDING;
		parts[h->last].pid = getpid();
	}
	if (path && (write(fd, parts, LEN / 2) != LEN / 2 ||
		     mmap(parts, LEN / 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd,
			  0) != parts))
		exit(1);
	h->id = 0x80000000U | (uint32_t)getpid() << 9;
	h->version = PVAS_HEADER_VERSION;
	h->shift = PVAS_SHIFT_MIN;
	h->table = BASE + PVAS_HEADER_TABLE;
	h->first = 1;
	h->entries = h->last + 1;
	h->magic = PVAS_HEADER_MAGIC;
	forged();
}

/* Faults by the kernel, too, wait for one who handles them: only root may ask for that. */
static pid_t forger;

static int sharer(void *uid)
{
	/* by the system call: the library would change all threads of the memory's owner */
	if (uid && syscall(SYS_setresuid, (long)uid, (long)uid, (long)uid))
		_exit(1);
	/* PR_SET_PDEATHSIG is for those whom the parent may signal */
	while (getppid() == forger)
		usleep(100000);
	_exit(0);
}

/* @uid: of the first, 0: the same */
static void share(long nr, long uid)
{
	long i;

	forger = getpid();
	for (i = 0; i < nr; i++) {
		char *stack = malloc(16384);

		if (!stack || clone(sharer, stack + 16384, CLONE_VM | SIGCHLD,
				    (void *)(uid ? uid + i : 0)) < 0)
			exit(1);
	}
}

static void hang(long nr, long uid)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register all = {
		.range = { BASE, LEN }, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &all))
		exit(1);
	share(nr, uid);
	if (setgid(65534) || setuid(65534))
		exit(1);
	forged();
}

static void map_many(long nr, long maps)
{
	char *at = (char *)(BASE + 2 * LEN);

	while (maps--) {
		if (mmap(at, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			 -1, 0) == MAP_FAILED)
			exit(1);
		at += 8192;
	}
	munmap((void *)BASE, LEN);	/* no header: all is read */
	share(nr, 0);
	forged();
}

int main(int argc, char **argv)
{
	struct pvas_header *h;
	struct pvas_part *parts;
	char line[1024], *at = line;

	h = mmap((void *)BASE, LEN, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (h == MAP_FAILED)
		return 1;
	if (argc > 1 && !strcmp(argv[1], "hang"))
		hang(argc > 3 ? atol(argv[2]) : 0, argc > 3 ? atol(argv[3]) : 0);
	if (argc > 3 && !strcmp(argv[1], "maps"))
		map_many(atol(argv[2]), atol(argv[3]));
	if (argc > 1)
		forge_own(h, 4096, argc > 2 ? argv[2] : NULL);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	h->id = strtoul(at, &at, 10);
	h->version = PVAS_HEADER_VERSION;
	h->shift = PVAS_SHIFT_MIN;
	h->table = BASE + PVAS_HEADER_TABLE;
	h->first = 1;
	parts = (struct pvas_part *)h->table;
	while (h->last < 64 && *at == ' ') {
		h->last++;
		parts[h->last].state = PVAS_PART_RUNNING;
		parts[h->last].pid = strtoul(at, &at, 10);
	}
	h->entries = h->last + 1;
	h->magic = PVAS_HEADER_MAGIC;
	forged();
	return 0;
}
