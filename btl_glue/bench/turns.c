// SPDX-License-Identifier: GPL-2.0
/* Taking turns: see p2p.h. */
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "p2p.h"

#define PROBE_ROUNDS 40
#define PROBES 5

double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

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

/* Rank 1 answers each odd number with the next even one. */
static void bounce(uint64_t *line, int rank, uint64_t from)
{
	uint64_t i;

	for (i = from + 1; i < from + 2 * PROBE_ROUNDS; i += 2) {
		if (rank == 0)
			__atomic_store_n(line, i, __ATOMIC_RELEASE);
		while (__atomic_load_n(line, __ATOMIC_ACQUIRE) != i + (rank == 0))
			;
		if (rank == 1)
			__atomic_store_n(line, i + 1, __ATOMIC_RELEASE);
	}
}

/* Both ranks call it. The line's round trip between their cores, at best. */
double probe(struct page *page, int rank)
{
	double best = 1, t;
	int i;

	for (i = 0; i < PROBES; i++) {
		t = seconds();
		bounce(&page->line, rank, 2 * PROBE_ROUNDS * i);
		t = (seconds() - t) / PROBE_ROUNDS;
		if (t < best)
			best = t;
	}
	return best;
}
