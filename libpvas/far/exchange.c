// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One page comes in, another one goes out: the steps that the paper's protocols share. The lock is
 * held, except where said. One thread exchanges, so between two exchanges at least one frame is
 * free, and a page comes in before the other leaves, as in the paper, within the budget.
 */
#include "far.h"
#include "protocol.h"
#include "store.h"

bool far_exchange_is_away(uint64_t n)
{
	return far.page[n].slot == FAR_NO_SLOT && far.page[n].flags & FAR_IN_STORE;
}

void far_exchange_get(uint64_t n)
{
	uint32_t slot = far_slot_for_fetch(true);

	far.count.fetched++;
	pthread_mutex_unlock(&far.lock);
	if (far_stripe_get(&far.stripe, far_place_of(n), 1, far_slot_addr(slot)))
		far_die(far_error());
	pthread_mutex_lock(&far.lock);
	far.page[n].slot = slot;
}

/*
 * The page on its way out gets the place of @n, which is in memory, and that one the other's; an
 * old copy stays where it is. One is busy, the other in a slot with the lock held: nobody uses
 * their places now.
 */
static void swap_places(uint64_t n, uint64_t out)
{
	uint8_t differ = (far.page[n].flags ^ far.page[out].flags) & FAR_IN_STORE;
	uint32_t place = far.place[n];

	far.place[n] = far.place[out];
	far.place[out] = place;
	far.page[n].flags ^= differ;
	far.page[out].flags ^= differ;
}

/* Send one page. @n: the one that has just come from the stores, or far.pages. False: none can. */
static bool send_one(uint64_t n)
{
	bool went = far_evict();

	if (n != far.pages && far.dirty.count)
		swap_places(n, far.slot[far.dirty.tail].page);
	while (far_write_back())
		went = true;
	/* As soon as it has been sent it is no longer here. */
	far_slot_release_clean();
	return went;
}

/* Without the lock */
static int map(uint64_t n, uint32_t slot)
{
	const void *from = slot == FAR_NO_SLOT ? far.zeros : far_slot_addr(slot);

	if (slot == FAR_NO_SLOT || far.protocol->late_copy || !far.uffd.move)
		return far_uffd_copy(&far.uffd, far_page_addr(n), from, far.page_size, false);
	return far_uffd_move(&far.uffd, far_page_addr(n), far_slot_addr(slot), far.page_size);
}

int far_exchange_place(uint64_t n)
{
	struct far_page *page = &far.page[n];
	bool came = page->flags & FAR_IN_STORE;
	uint32_t slot = page->slot;
	int err;

	/* Only if pins were in the way before */
	while (far.mapped >= far.frames)
		if (!send_one(far.pages))
			far_wait();
	far.mapped++;
	/* Newer than the stores' copy, which another page replaces, from the first moment. */
	page->flags |= FAR_DIRTY;
	pthread_mutex_unlock(&far.lock);
	err = map(n, slot);
	pthread_mutex_lock(&far.lock);
	if (slot != FAR_NO_SLOT)
		far_slot_free(slot);
	if (far.mapped >= far.frames)
		send_one(came ? n : far.pages);
	far_protocol_stamp(n, FAR_EXCHANGED);
	return err;
}

void far_exchange_end(uint64_t n, int err)
{
	const uint64_t *at = far.trip[n].at;
	unsigned int i;

	far_page_placed(n, err);
	far_protocol_stamp(n, FAR_WOKEN);
	far.count.exchanges++;
	far.count.waited += at[FAR_WOKEN] - at[FAR_FAULTED];
	for (i = 0; i + 1 < FAR_MOMENTS; i++)
		far.count.step[i] += at[i + 1] - at[i];
}
