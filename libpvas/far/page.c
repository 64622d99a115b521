// SPDX-License-Identifier: LGPL-2.1-or-later
/* A page's way from one state to another. The lock is held, except where said. */
#include <errno.h>
#include <stdio.h>

#include "far.h"
#include "store.h"

void far_changed(void)
{
	if (far.waiting)
		pthread_cond_broadcast(&far.changed);
}

void far_wait(void)
{
	far.waiting++;
	/* The workers put pages early if somebody waits. */
	pthread_cond_broadcast(&far.work);
	pthread_cond_wait(&far.changed, &far.lock);
	far.waiting--;
}

void far_page_wait(uint64_t n)
{
	while (far.page[n].state == FAR_BUSY)
		far_wait();
}

void far_page_settle(uint64_t n, enum far_state state)
{
	struct far_page *page = &far.page[n];

	page->state = (uint8_t)state;
	if (page->flags & FAR_WANTED) {
		page->flags &= (uint8_t)~FAR_WANTED;
		far_uffd_wake(&far.uffd, far_page_addr(n), far.page_size);
	}
	far_changed();
}

/* Without the lock: get busy pages' contents. */
static void fetch(uint64_t n, unsigned int count, uint32_t slot)
{
	if (far_stripe_get(&far.stripe, far_place_of(n), count, far_slot_addr(slot)))
		far_die(far_error());
}

/* Without the lock: map busy pages, from slots or as zeros. */
static int map(uint64_t n, unsigned int count, uint32_t slot, bool dirty)
{
	size_t size = count * far.page_size;
	void *addr = far_page_addr(n);

	if (slot == FAR_NO_SLOT)
		return far_uffd_copy(&far.uffd, addr, far.zeros, size, !dirty);
	/*
	 * A page that was moved can be written before it could be write-protected: such a
	 * store would go unnoticed. Hence only if the page is dirty in any case.
	 */
	if (dirty && far.uffd.move)
		return far_uffd_move(&far.uffd, addr, far_slot_addr(slot), size);
	return far_uffd_copy(&far.uffd, addr, far_slot_addr(slot), size, !dirty);
}

/* The counters of a page that is found in a slot */
static void count_slot(struct far_page *page)
{
	if (page->flags & FAR_AHEAD)
		far.count.ahead_used++;
	else
		far.count.returned++;
	page->flags &= (uint8_t)~FAR_AHEAD;
}

void far_page_stay(uint64_t n)
{
	far_list_add_tail(&far.resident, far.page_link, (uint32_t)n);
	if (!(far.page[n].flags & FAR_SEQUENTIAL))
		far.page[n].flags |= FAR_REFERENCED;
}

void far_page_placed(uint64_t n, int err)
{
	struct far_page *page = &far.page[n];

	if (err) {
		/* The program has unmapped it; whoever touches it shall find that out. */
		far.mapped--;
		far_page_forget(n);
		page->flags |= FAR_WANTED;
		far_page_settle(n, FAR_EMPTY);
		return;
	}
	far_page_stay(n);
	far_page_settle(n, FAR_MAPPED);
}

/* Can it be mapped with the page @count before it, which is in @slot? Then it has a slot, too. */
static bool is_neighbour(uint64_t n, unsigned int count, enum far_state from, uint32_t slot)
{
	const struct far_page *page = &far.page[n + count];

	if (!far_are_in_row(n, count) || page->state != from || page->flags & FAR_START)
		return false;
	if (from == FAR_SLOT)
		return page->slot == slot + count && page->flags & FAR_AHEAD;
	return from == FAR_EMPTY || (far_are_in_store_in_row(n, count) &&
				     far_slot_take_next(slot + count - 1));
}

/*
 * Take the pages that are mapped together with @n: those behind it whose contents are in the same
 * place, and only as many as there are free frames for. Returns how many they are with it.
 */
static unsigned int take_neighbours(uint64_t n, enum far_state from, uint32_t slot, bool write,
				    unsigned int most)
{
	struct far_page *page;
	unsigned int count = 1;

	while (count < most && far.mapped < far.frames && is_neighbour(n, count, from, slot)) {
		page = &far.page[n + count];
		page->state = FAR_BUSY;
		if (from == FAR_SLOT) {
			far_slot_unqueue(slot + count);
			count_slot(page);
		}
		far.count.fetched += from == FAR_STORED;
		if (write)
			page->flags |= FAR_DIRTY;
		far.mapped++;
		count++;
	}
	return count;
}

unsigned int far_page_place(uint64_t n, bool write, unsigned int most)
{
	struct far_page *page = &far.page[n];
	enum far_state from = page->state;
	uint32_t slot = from == FAR_SLOT ? page->slot : FAR_NO_SLOT;
	unsigned int i, count;
	bool dirty;
	int err;

	page->state = FAR_BUSY;
	if (from == FAR_SLOT) {
		far_slot_unqueue(slot);
		count_slot(page);
	}
	far_frame_reserve();
	if (from == FAR_STORED) {
		slot = far_slot_for_fetch(true);
		far.count.fetched++;
	}
	if (write)
		page->flags |= FAR_DIRTY;
	dirty = page->flags & FAR_DIRTY;
	count = take_neighbours(n, from, slot, write, most);
	pthread_mutex_unlock(&far.lock);
	if (from == FAR_STORED)
		fetch(n, count, slot);
	err = map(n, count, slot, dirty);
	pthread_mutex_lock(&far.lock);
	for (i = 0; i < count; i++) {
		if (slot != FAR_NO_SLOT)
			far_slot_free(slot + i);
		far_page_placed(n + i, err);
	}
	return count;
}

/* Pages behind @n that will be written, too: as many as before it were. */
static unsigned int count_to_write(uint64_t n)
{
	const struct far_page *page = &far.page[n];
	unsigned int before = 1, count = 1;

	while (before < far.unit && before <= n % far.part_pages &&
	       page[-(int)before].state == FAR_MAPPED && page[-(int)before].flags & FAR_DIRTY)
		before++;
	while (count < before && far_are_in_row(n, count) && page[count].state == FAR_MAPPED &&
	       !(page[count].flags & (FAR_DIRTY | FAR_START)))
		count++;
	return count;
}

void far_page_unprotect(uint64_t n)
{
	struct far_page *page = &far.page[n];
	unsigned int i, count = count_to_write(n);

	/* Busy: nobody may begin to take it between the two. */
	for (i = 0; i < count; i++) {
		page[i].state = FAR_BUSY;
		page[i].flags |= FAR_DIRTY | FAR_REFERENCED;
	}
	far.count.write_faults++;
	pthread_mutex_unlock(&far.lock);
	far_uffd_unprotect(&far.uffd, far_page_addr(n), count * far.page_size);
	pthread_mutex_lock(&far.lock);
	for (i = 0; i < count; i++)
		far_page_settle(n + i, FAR_MAPPED);
}

void far_page_forget(uint64_t n)
{
	struct far_page *page = &far.page[n];

	if (page->state == FAR_MAPPED) {
		far_list_remove(&far.resident, far.page_link, (uint32_t)n);
		far.mapped--;
	} else if (page->state == FAR_SLOT) {
		far_slot_unqueue(page->slot);
		far_slot_free(page->slot);
	}
	if (page->flags & FAR_IN_STORE)
		far_discard(far_place_of(n));
	page->flags &= FAR_START | FAR_SEQUENTIAL | FAR_WANTED;
	page->state = FAR_BUSY;
}

void far_page_bring_in(uint64_t n, bool write)
{
	far_page_wait(n);
	if (far.page[n].state == FAR_FREE)
		return;
	if (far.page[n].state != FAR_MAPPED && far_exchanges()) {
		far_protocol_request(n);
		far_page_wait(n);
	} else if (far.page[n].state != FAR_MAPPED) {
		far_page_place(n, write, 1);
	} else if (write && !(far.page[n].flags & FAR_DIRTY)) {
		far_page_unprotect(n);
	}
}
