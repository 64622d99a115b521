// SPDX-License-Identifier: GPL-2.0-only
/* Taking turns: see p2p.h. */
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "p2p.h"

struct page *open_page(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE,
					     MAP_SHARED, fd, 0);

	if (p == MAP_FAILED) {
		perror("p2p: the turns' page");
		exit(1);
	}
	close(fd);
	return p;
}

void wait_turn(struct page *page, uint32_t turn)
{
	uint32_t now;

	while ((now = __atomic_load_n(&page->turn, __ATOMIC_ACQUIRE)) != turn)
		syscall(SYS_futex, &page->turn, FUTEX_WAIT, now, NULL, NULL, 0);
}

void next_turn(struct page *page)
{
	__atomic_add_fetch(&page->turn, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &page->turn, FUTEX_WAKE, 1000, NULL, NULL, 0);
}
