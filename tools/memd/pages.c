// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory of stores. Each has a mapping of its own, which no other store gets: its memory
 * goes back to the kernel, which clears it before anybody has it again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "memd.h"

/* Bytes given back at a time: others' requests wait that long */
#define SLICE		(64ull << 20)
/* Smaller pages may be few in a huge one. */
#define HUGE_FROM	(64u << 10)

int pages_make(struct pages *pages, uint64_t page_size, uint64_t count)
{
	uint64_t bytes = page_size * count;
	void *base;

	pages->present = calloc((count + 63) / 64, sizeof(*pages->present));
	if (!pages->present)
		return -ENOMEM;
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED) {
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

/* The store has ended. Without memory for a grave, all at once. */
void pages_bury(struct conn *conn)
{
	struct memd *memd = conn->memd;
	struct pages *pages = &conn->pages;
	struct grave *grave;

	if (!pages->base)
		return;
	conn->job->stores--;
	conn->job->held -= pages->held;
	free(pages->present);
	pages->present = NULL;
	grave = calloc(1, sizeof(*grave));
	if (grave) {
		grave->pages = *pages;
		grave->job = conn->job;
		grave->next = memd->graves;
		memd->graves = grave;
	} else {
		munmap(pages->base, pages->page_size * pages->count);
		conn->job->reserved -= pages->page_size * pages->count;
		memd->reserved -= pages->page_size * pages->count;
	}
	memset(pages, 0, sizeof(*pages));
}

/* Gives back one slice. Return: is there more? */
bool graves_dig(struct memd *memd)
{
	struct grave *grave = memd->graves;
	uint64_t bytes, slice;

	if (!grave)
		return false;
	bytes = grave->pages.page_size * grave->pages.count;
	slice = bytes - grave->gone < SLICE ? bytes - grave->gone : SLICE;
	munmap(grave->pages.base + grave->gone, slice);
	grave->gone += slice;
	grave->job->reserved -= slice;
	memd->reserved -= slice;
	if (grave->gone == bytes) {
		memd->graves = grave->next;
		free(grave);
	}
	return memd->graves;
}
