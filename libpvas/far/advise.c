// SPDX-License-Identifier: LGPL-2.1-or-later
/* Advice, pins and counters. */
#include <errno.h>
#include <string.h>

#include "api.h"
#include "far.h"
#include "store.h"

/* A page that is there stays as long as one that is brought in now. */
static void touch(uint64_t n)
{
	struct far_page *page = &far.page[n];

	if (page->state != FAR_MAPPED)
		return;
	page->flags &= (uint8_t)~FAR_COLD;
	far_list_remove(&far.resident, far.page_link, (uint32_t)n);
	far_page_stay(n);
}

static void will_need(uint64_t first, uint64_t end)
{
	uint64_t n, most = far.frames / 2;

	for (n = first; n < end && n - first < most; n++) {
		far_page_bring_in(n, false);
		touch(n);
	}
}

static void set_sequential(uint64_t first, uint64_t end, bool on)
{
	uint64_t n;

	for (n = first; n < end; n++) {
		far.page[n].flags &= (uint8_t)~FAR_SEQUENTIAL;
		if (on)
			far.page[n].flags |= FAR_SEQUENTIAL;
	}
}

/* To the clock's hand; backwards, so that the first page of the range is the first to go */
static void set_cold(uint64_t first, uint64_t end)
{
	struct far_page *page;
	uint64_t n;

	for (n = end; n-- > first;) {
		page = &far.page[n];
		if (page->state != FAR_MAPPED)
			continue;
		page->flags |= FAR_COLD;
		page->flags &= (uint8_t)~FAR_REFERENCED;
		far_list_remove(&far.resident, far.page_link, (uint32_t)n);
		far_list_add_head(&far.resident, far.page_link, (uint32_t)n);
	}
}

/* Only whole pages: the rest of the first and the last one is not meant. */
static int discard(const char *addr, size_t size, uint64_t first, uint64_t end)
{
	uint64_t n;

	if (addr != far_page_addr(first))
		first++;
	if (addr + size != far_page_addr(end))
		end--;
	for (n = first; n < end; n++)
		if (far.page[n].pins)
			return far_fail(-EINVAL, "part of it is pinned");
	if (first >= end)
		return 0;
	far_range_empty(first, end - first);
	for (n = first; n < end; n++)
		far_page_settle(n, FAR_EMPTY);
	return 0;
}

/* The beginning of a function on a range: takes the lock, unless it fails. */
static int begin(const void *addr, size_t size, uint64_t *first, uint64_t *end)
{
	int err = far_check();

	if (err)
		return err;
	pthread_mutex_lock(&far.lock);
	err = far_range_get(addr, size, first, end);
	if (err)
		pthread_mutex_unlock(&far.lock);
	return err;
}

FAR_PUBLIC int pvas_far_advise(void *addr, size_t size, int advice)
{
	uint64_t first, end;
	int err = begin(addr, size, &first, &end);

	if (err)
		return err;
	if (advice == PVAS_FAR_WILL_NEED)
		will_need(first, end);
	else if (advice == PVAS_FAR_SEQUENTIAL || advice == PVAS_FAR_NORMAL)
		set_sequential(first, end, advice == PVAS_FAR_SEQUENTIAL);
	else if (advice == PVAS_FAR_COLD)
		set_cold(first, end);
	else if (advice == PVAS_FAR_DISCARD)
		err = discard(addr, size, first, end);
	else
		err = far_fail(-EINVAL, "no advice has the number %d", advice);
	pthread_mutex_unlock(&far.lock);
	return err;
}

static void drop_pins(uint64_t first, uint64_t end)
{
	uint64_t n;

	for (n = first; n < end; n++)
		if (!--far.page[n].pins)
			far.pinned--;
}

/* Count pins, for all pages or for none. */
static int add_pins(uint64_t first, uint64_t end)
{
	uint64_t n, more = 0;

	for (n = first; n < end; n++) {
		if (far.page[n].pins == UINT16_MAX)
			return far_fail(-EOVERFLOW, "pinned too often");
		more += !far.page[n].pins;
	}
	if (far.pinned + more > far.frames / 2)
		return far_fail(-ENOMEM, "more than half of the budget would be pinned");
	for (n = first; n < end; n++)
		far.page[n].pins++;
	far.pinned += more;
	return 0;
}

FAR_PUBLIC int pvas_far_pin(void *addr, size_t size)
{
	uint64_t first, end, n;
	int err = begin(addr, size, &first, &end);

	if (err)
		return err;
	err = add_pins(first, end);
	/* Pinned before it is brought in, a page can't go again meanwhile. */
	for (n = first; !err && n < end; n++)
		far_page_bring_in(n, true);
	pthread_mutex_unlock(&far.lock);
	return err;
}

FAR_PUBLIC int pvas_far_unpin(void *addr, size_t size)
{
	uint64_t first, end, n;
	int err = begin(addr, size, &first, &end);

	if (err)
		return err;
	for (n = first; n < end; n++)
		if (!far.page[n].pins)
			err = far_fail(-EINVAL, "not all of it is pinned");
	if (!err) {
		drop_pins(first, end);
		far_changed();
	}
	pthread_mutex_unlock(&far.lock);
	return err;
}

/*
 * Without the lock, for those who only look on: each is right by itself. All are 64 bits wide.
 */
static void read_counters(struct pvas_far_counters *now)
{
	const uint64_t *from = (const uint64_t *)&far.count;
	uint64_t *to = (uint64_t *)now, pages;
	size_t i;

	for (i = 0; i < sizeof(*now) / sizeof(*to); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	pages = __atomic_load_n(&far.mapped, __ATOMIC_RELAXED) + far.fetch_count + far.out_count -
		__atomic_load_n(&far.free_out.count, __ATOMIC_RELAXED);
	now->resident = pages * far.page_size;
	now->allocated = __atomic_load_n(&far.allocated, __ATOMIC_RELAXED) * far.page_size;
}

FAR_PUBLIC int pvas_far_get_counters(struct pvas_far_counters *counters)
{
	struct pvas_far_counters now;
	int err = far_check();

	if (err)
		return err;
	if (counters->size < sizeof(now))
		return far_fail(-EINVAL, "counters.size is not the size of the struct");
	read_counters(&now);
	now.size = counters->size;
	now.page = far.page_size;
	now.ram = far.ram;
	now.stored = far_stripe_held(&far.stripe);
	now.system_calls = far.uffd.kernel;
	memset(counters, 0, counters->size);
	memcpy(counters, &now, sizeof(now));
	return 0;
}

FAR_PUBLIC const char *pvas_far_error(void)
{
	return far_error();
}
