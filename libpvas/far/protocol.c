// SPDX-License-Identifier: LGPL-2.1-or-later
/* The protocols by name, and the queues of those of the paper: see protocol.h. The lock is held. */
#include <string.h>
#include <time.h>

#include "far.h"
#include "protocol.h"

const struct far_protocol far_protocol_pvas = { .name = "pvas" };

const struct far_protocol *far_protocol_find(const char *name)
{
	static const struct far_protocol *const all[] = {
		&far_protocol_pvas, &far_protocol_r3, &far_protocol_r58, &far_protocol_r77,
	};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(name, all[i]->name))
			return all[i];
	return NULL;
}

static void add(struct far_list *list, uint64_t page)
{
	far_list_add_tail(list, far.page_link, (uint32_t)page);
	pthread_cond_broadcast(&far.work);
}

static bool take(struct far_list *list, uint64_t *page)
{
	uint32_t n = list->head;

	if (n == FAR_NONE)
		return false;
	far_list_remove(list, far.page_link, n);
	*page = n;
	return true;
}

void far_protocol_stamp(uint64_t n, enum far_moment moment)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	far.trip[n].at[moment] = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void far_protocol_request(uint64_t n)
{
	struct far_page *page = &far.page[n];

	if (page->state == FAR_SLOT)
		far_slot_unqueue(page->slot);
	else
		page->slot = FAR_NO_SLOT;
	page->state = FAR_BUSY;
	far.count.faults++;
	far_protocol_stamp(n, FAR_FAULTED);
	add(&far.internal, n);
}

bool far_protocol_take_internal(uint64_t *n)
{
	if (!take(&far.internal, n))
		return false;
	far_protocol_stamp(*n, FAR_TAKEN);
	return true;
}

void far_protocol_ask(uint64_t n)
{
	add(&far.asked, n);
}

bool far_protocol_take_asked(uint64_t *n)
{
	return take(&far.asked, n);
}

void far_protocol_add_external(uint64_t n)
{
	add(&far.external, n);
}

bool far_protocol_take_external(uint64_t *n)
{
	return take(&far.external, n);
}
