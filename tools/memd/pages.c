// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory of stores. Each has a mapping of its own, which no other store gets: its memory
 * goes back to the kernel, which clears it before anybody has it again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "memd.h"

/* Bytes given back at a time: others' requests wait that long */
#define SLICE		(64ull << 20)
/* Smaller pages may be few in a huge one. */
#define HUGE_FROM	(64u << 10)
/* For all but stores: UCX, and what it takes for messages */
#define OWN_BYTES	(256ull << 20)

/*
 * UCX takes memory for a message in one piece before anybody has looked at it. A job that sends
 * too large ones gets no answer, and takes nothing of the room of others' stores: what is not
 * reserved can't be taken either.
 */
void pages_limit(uint64_t reserved)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_DATA, &limit))
		return;
	limit.rlim_cur = reserved + OWN_BYTES < limit.rlim_max ? reserved + OWN_BYTES :
								 limit.rlim_max;
	setrlimit(RLIMIT_DATA, &limit);
}

int pages_make(struct pages *pages, uint64_t reserved, uint64_t page_size, uint64_t count)
{
	uint64_t bytes = page_size * count;
	void *base;

	pages->present = calloc((count + 63) / 64, sizeof(*pages->present));
	if (!pages->present)
		return -ENOMEM;
	pages_limit(reserved + bytes);
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED) {
		pages_limit(reserved);
		free(pages->present);
		pages->present = NULL;
		return -ENOMEM;
	}
	madvise(base, bytes, MADV_DONTDUMP);
	madvise(base, bytes, MADV_DONTFORK);
	if (page_size >= HUGE_FROM)
		madvise(base, bytes, MADV_HUGEPAGE);
	pages->base = base;
	pages->page_size = page_size;
	pages->count = count;
	pages->held = 0;
	return 0;
}

void pages_mark(struct conn *conn, uint64_t first, uint64_t count, bool present)
{
	struct pages *pages = &conn->pages;
	uint64_t i, bit, changed = 0;

	for (i = first; i < first + count; i++) {
		bit = 1ull << (i % 64);
		if (!(pages->present[i / 64] & bit) == present)
			changed++;
		if (present)
			pages->present[i / 64] |= bit;
		else
			pages->present[i / 64] &= ~bit;
	}
	changed *= pages->page_size;
	pages->held += present ? changed : -changed;
	conn->job->held += present ? changed : -changed;
}

void pages_discard(struct conn *conn, uint64_t first, uint64_t count)
{
	struct pages *pages = &conn->pages;

	pages_mark(conn, first, count, false);
	madvise(pages->base + first * pages->page_size, count * pages->page_size, MADV_DONTNEED);
}

/* The store has ended. Without memory for a released, all at once. */
void pages_release(struct conn *conn)
{
	struct memd *memd = conn->memd;
	struct pages *pages = &conn->pages;
	struct released *released;

	if (!pages->base)
		return;
	conn->job->stores--;
	conn->job->held -= pages->held;
	free(pages->present);
	pages->present = NULL;
	released = calloc(1, sizeof(*released));
	if (released) {
		released->pages = *pages;
		released->job = conn->job;
		released->next = memd->released;
		memd->released = released;
	} else {
		munmap(pages->base, pages->page_size * pages->count);
		conn->job->reserved -= pages->page_size * pages->count;
		memd->reserved -= pages->page_size * pages->count;
		pages_limit(memd->reserved);
	}
	memset(pages, 0, sizeof(*pages));
}

/* Gives back one slice. Return: is there more? */
bool released_free_some(struct memd *memd)
{
	struct released *released = memd->released;
	uint64_t bytes, slice;

	if (!released)
		return false;
	bytes = released->pages.page_size * released->pages.count;
	slice = bytes - released->gone < SLICE ? bytes - released->gone : SLICE;
	munmap(released->pages.base + released->gone, slice);
	released->gone += slice;
	released->job->reserved -= slice;
	memd->reserved -= slice;
	pages_limit(memd->reserved);
	if (released->gone == bytes) {
		memd->released = released->next;
		free(released);
	}
	return memd->released;
}
