// SPDX-License-Identifier: GPL-2.0-only
/* A worker's side of worker_group.h: without libpvas, which plain processes don't have. */
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "worker_group.h"

struct group_page *group_open(const char *fd)
{
	void *p = mmap(NULL, sizeof(struct group_page), PROT_READ | PROT_WRITE, MAP_SHARED,
		       atoi(fd), 0);

	if (p == MAP_FAILED) {
		perror("worker: the group's page");
		exit(1);
	}
	return p;
}

void group_ready(struct group_page *page, uint32_t phase)
{
	uint32_t now;

	__atomic_add_fetch(&page->ready, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &page->ready, FUTEX_WAKE, 1, NULL, NULL, 0);
	while ((now = __atomic_load_n(&page->phase, __ATOMIC_ACQUIRE)) < phase)
		syscall(SYS_futex, &page->phase, FUTEX_WAIT, now, NULL, NULL, 0);
}
