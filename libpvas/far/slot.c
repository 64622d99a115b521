// SPDX-License-Identifier: LGPL-2.1-or-later
/* Slots: memory for pages that are not mapped. The lock is held. */
#include "far.h"

static bool is_for_fetch(uint32_t slot)
{
	return slot < far.fetch_count;
}

void far_slot_queue(uint32_t slot, struct far_list *list)
{
	far_list_add_tail(list, far.slot_link, slot);
	far.slot[slot].list = list;
	far.slot[slot].since = far.stream_clock;
}

void far_slot_unqueue(uint32_t slot)
{
	far_list_remove(far.slot[slot].list, far.slot_link, slot);
	far.slot[slot].list = NULL;
}

void far_slot_touch(uint32_t slot)
{
	struct far_list *list = far.slot[slot].list;

	far_slot_unqueue(slot);
	far_slot_queue(slot, list);
}

void far_slot_free(uint32_t slot)
{
	far_slot_queue(slot, is_for_fetch(slot) ? &far.free_fetch : &far.free_out);
	far_changed();
}

/* Take a slot of a list, whose page needs it no longer. */
static void take(uint32_t slot)
{
	const struct far_list *list = far.slot[slot].list;
	struct far_page *page;

	far_slot_unqueue(slot);
	if (list == &far.free_fetch || list == &far.free_out)
		return;
	page = &far.page[far.slot[slot].page];
	page->flags &= (uint8_t)~FAR_AHEAD;
	page->state = page->flags & FAR_IN_STORE ? FAR_STORED : FAR_EMPTY;
}

/* Take the longest queued slot of a list. */
static uint32_t reuse(struct far_list *list)
{
	uint32_t slot = list->head;

	if (slot == FAR_NONE)
		return FAR_NO_SLOT;
	take(slot);
	return slot;
}

bool far_slot_take_next(uint32_t slot)
{
	uint32_t next = slot + 1;
	const struct far_list *list;

	if (next >= far.fetch_count + far.out_count || is_for_fetch(slot) != is_for_fetch(next))
		return false;
	list = far.slot[next].list;
	/* A page on its way out keeps its second chance while there is a free slot. */
	if (list != &far.free_fetch && list != &far.free_out &&
	    (list != &far.clean || far.free_out.count))
		return false;
	take(next);
	return true;
}

void far_slot_release_clean(void)
{
	while (far.clean.count)
		far_slot_free(reuse(&far.clean));
}

/*
 * Has something been read ahead in vain? It must go, or would stay for ever. By now all streams
 * that go on would have used theirs.
 */
static bool is_in_vain(void)
{
	uint32_t slot = far.ready.head;

	return slot != FAR_NONE &&
	       far.stream_clock - far.slot[slot].since > 2 * far.fetch_count + FAR_STREAMS;
}

uint32_t far_slot_for_fetch(bool demand)
{
	uint32_t slot;

	for (;;) {
		slot = reuse(&far.free_fetch);
		if (slot == FAR_NO_SLOT && (demand || is_in_vain()))
			slot = reuse(&far.ready);
		if (slot != FAR_NO_SLOT || !demand)
			return slot;
		far_wait();
	}
}

uint32_t far_slot_for_out(void)
{
	uint32_t slot = reuse(&far.free_out);

	return slot != FAR_NO_SLOT ? slot : reuse(&far.clean);
}
