// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Make room: pages leave in the order of the clock, first into a slot, from which a fault
 * gets them back at once (the second chance), then into the stores (put.c). The lock is held.
 */
#include <errno.h>

#include "far.h"

enum { LOOK = 256 };	/* pages looked at for a clean one */

static bool is_evictable(const struct far_page *page)
{
	return page->state == FAR_MAPPED && !page->pins;
}

static bool was_referenced(const struct far_page *page)
{
	return page->flags & FAR_REFERENCED && !(page->flags & FAR_COLD);
}

/* The page that the clock's hand finds, FAR_NONE if all have to stay */
static uint32_t choose(void)
{
	uint64_t steps = 2 * (uint64_t)far.resident.count;
	struct far_page *page;
	uint32_t n;

	for (; steps; steps--) {
		n = far.resident.head;
		page = &far.page[n];
		far_list_remove(&far.resident, far.page_link, n);
		if (is_evictable(page) && !was_referenced(page))
			return n;
		page->flags &= (uint8_t)~FAR_REFERENCED;
		far_list_add_tail(&far.resident, far.page_link, n);
	}
	return FAR_NONE;
}

/*
 * The same if there is no slot: only a clean page can go. The hand stays, and the younger half of
 * the pages, too: else pages that were just read would go before those that were written long ago,
 * and wait for being put.
 */
static uint32_t choose_clean(void)
{
	uint32_t n = far.resident.head, half = (far.resident.count + 1) / 2, steps;
	const struct far_page *page;

	for (steps = 0; steps < LOOK && steps < half; steps++) {
		page = &far.page[n];
		if (is_evictable(page) && !was_referenced(page) && !(page->flags & FAR_DIRTY)) {
			far_list_remove(&far.resident, far.page_link, n);
			return n;
		}
		n = far.page_link[n].next;
	}
	return FAR_NONE;
}

static bool has_second_chance(const struct far_page *page)
{
	return page->flags & FAR_DIRTY || !(page->flags & (FAR_COLD | FAR_SEQUENTIAL));
}

/* Without the lock: unmap busy pages. The slots that they go to must have no pages in them. */
static int unmap(uint32_t n, unsigned int count, uint32_t slot)
{
	size_t size = count * far.page_size;

	if (slot == FAR_NO_SLOT) {
		/* Clean, so it is write-protected, and nobody can have changed it since. */
		far_uffd_drop(far_page_addr(n), size);
		return 0;
	}
	if (far.uffd.move)
		far_uffd_drop(far_slot_addr(slot), size);
	return far_uffd_take(&far.uffd, far_slot_addr(slot), far_page_addr(n), size);
}

/* The end of far_evict() if the page could not be taken */
static void not_taken(uint32_t n, uint32_t slot, int err)
{
	far_slot_free(slot);
	if (err == -EBUSY) {
		far.mapped++;
		far.page[n].flags |= FAR_DIRTY | FAR_REFERENCED;
		far_list_add_tail(&far.resident, far.page_link, n);
		far_page_settle(n, FAR_MAPPED);
	} else {
		far_page_forget(n);
		far_page_settle(n, FAR_EMPTY);
	}
}

/* A busy page has been unmapped, or not. */
static void unmapped(uint32_t n, uint32_t slot, int err)
{
	struct far_page *page = &far.page[n];

	far.mapped--;
	if (err) {
		not_taken(n, slot, err);
		return;
	}
	page->flags &= (uint8_t)~(FAR_COLD | FAR_REFERENCED);
	far.count.dropped += !(page->flags & FAR_DIRTY);
	if (slot == FAR_NO_SLOT) {
		far_page_settle(n, page->flags & FAR_IN_STORE ? FAR_STORED : FAR_EMPTY);
		return;
	}
	page->slot = slot;
	far.slot[slot].page = n;
	far_slot_queue(slot, page->flags & FAR_DIRTY ? &far.dirty : &far.clean);
	far_page_settle(n, FAR_SLOT);
}

/*
 * Pages that are in the clock's list no more, into slots, or dropped. Returns whether the last one
 * went.
 */
static bool put_out(uint32_t n, unsigned int count, uint32_t slot)
{
	int err[FAR_BATCH], last = 0, all;
	unsigned int i;

	for (i = 0; i < count; i++)
		far.page[n + i].state = FAR_BUSY;
	pthread_mutex_unlock(&far.lock);
	all = unmap(n, count, slot);
	/* All are as they were before, or none is there: each in its own way. */
	for (i = 0; i < count; i++)
		err[i] = last = !all || count == 1 ? all : unmap(n + i, 1, slot + i);
	pthread_mutex_lock(&far.lock);
	for (i = 0; i < count; i++) {
		/* Between the two attempts it could be written. */
		if (all == -EBUSY)
			far.page[n + i].flags |= FAR_DIRTY;
		unmapped(n + i, slot == FAR_NO_SLOT ? slot : slot + i, err[i]);
	}
	return last != -EBUSY;
}

/*
 * Take those pages behind @n out of the clock's list that can go together with it, in one go and
 * with one flush of the processors' translations. Returns how many they are with it.
 */
static unsigned int take_batch(uint32_t n, uint32_t slot)
{
	const struct far_page *page = &far.page[n];
	unsigned int count;

	for (count = 1; count < far.batch && far_are_in_row(n, count); count++) {
		if (!is_evictable(&page[count]) || was_referenced(&page[count]) ||
		    has_second_chance(&page[count]) != has_second_chance(page) ||
		    (slot == FAR_NO_SLOT && page[count].flags & FAR_DIRTY))
			break;
		if (slot != FAR_NO_SLOT && !far_slot_take_next(slot + count - 1))
			break;
		far_list_remove(&far.resident, far.page_link, n + count);
	}
	return count;
}

bool far_evict(void)
{
	bool room = far.free_out.count || far.clean.count;
	uint32_t n = room ? choose() : choose_clean(), slot = FAR_NO_SLOT;

	if (n == FAR_NONE)
		return false;
	if (room && has_second_chance(&far.page[n]))
		slot = far_slot_for_out();
	put_out(n, take_batch(n, slot), slot);
	return true;
}

bool far_evict_page(uint64_t n)
{
	uint32_t slot = far_slot_for_out();

	if (slot == FAR_NO_SLOT)
		return false;
	far_list_remove(&far.resident, far.page_link, (uint32_t)n);
	return put_out((uint32_t)n, 1, slot);
}

void far_frame_reserve(void)
{
	while (far.mapped >= far.frames)
		if (!far_evict())
			far_wait();
	far.mapped++;
	if (far.mapped + far_reserve_low() > far.frames)
		pthread_cond_signal(&far.work);
}
