// SPDX-License-Identifier: GPL-2.0-only
/*
 * One of the processes that bench/peers starts: has a buffer, and reads its slice of
 * each other process's.
 *
 * usage: peer FD INDEX N THREADS alone|task|xpmem
 *
 * alone: only its own; task: their addresses are valid as they are; xpmem: attach them
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "worker_group.h"
#include "xpmem.h"

#define BYTES (2UL << 20)

static struct xpmem xpmem;
static bool attaching;

static uint64_t publish(char *buffer)
{
	return attaching ? (uint64_t)xpmem.make(buffer, BYTES, XPMEM_BY_MODE, (void *)0600) :
			   (uintptr_t)buffer;
}

static char *reach(uint64_t peer)
{
	struct xpmem_place place = { .offset = 0 };

	if (!attaching)
		return (char *)(uintptr_t)peer;
	place.apid = xpmem.get(peer, XPMEM_READ_WRITE, XPMEM_BY_MODE, NULL);
	return place.apid < 0 ? MAP_FAILED : xpmem.attach(place, BYTES, NULL);
}

/* All of it must be what peer i wrote there. */
static void read_slice(const char *buffer, unsigned int i, unsigned int mine, size_t slice)
{
	const volatile char *p = buffer + mine * slice;
	size_t j;

	for (j = 0; j < slice; j++)
		if (p[j] != (char)(i + 1)) {
			fprintf(stderr, "peer: %u's buffer holds %d at %zu\n", i, p[j], j);
			exit(1);
		}
}

int main(int argc, char **argv)
{
	struct group_page *page;
	unsigned int index, n, i;
	char *buffer;
	int err;

	if (argc != 6)
		return 2;
	page = group_open(argv[1]);
	index = atoi(argv[2]);
	n = atoi(argv[3]);
	attaching = !strcmp(argv[5], "xpmem");
	err = attaching ? xpmem_load(&xpmem) : 0;
	if (err) {
		fprintf(stderr, "peer: XPMEM: %s\n", strerror(-err));
		return 1;
	}
	buffer = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buffer == MAP_FAILED)
		return 1;
	/* In small pages, as a buffer of malloc()'s is. */
	madvise(buffer, BYTES, MADV_NOHUGEPAGE);
	memset(buffer, index + 1, BYTES);
	page->worker[index].peer = publish(buffer);
	group_ready(page, 1);
	for (i = 0; i < n && strcmp(argv[5], "alone"); i++) {
		char *theirs = i == index ? buffer : reach(page->worker[i].peer);

		if (theirs == MAP_FAILED) {
			perror("peer: another's buffer");
			return 1;
		}
		read_slice(theirs, i, index, BYTES / n);
	}
	group_ready(page, 2);
	return 0;
}
