// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pages on their way out, from slots into the stores. The lock is held, except where said. */
#include <string.h>

#include "far.h"
#include "store.h"

enum {
	PAGES = FAR_BATCH,	/* put in one go, at most */
	PAGES_LEAST = 16,	/* however large they are */
	RUNS = 32,
};

_Static_assert((int)PAGES <= FAR_TOGETHER, "the stores take so many at once");

/* Dirty slots in a row that hold pages in a row; @zero: those of zeros, which are not put */
struct run {
	uint32_t slot;
	unsigned int count;
	uint64_t page;
	bool *zero;
};

/* Take from the dirty slots those at the head that are a run. */
static void take_run(struct run *run, unsigned int most)
{
	uint32_t next = far.dirty.head;
	unsigned int n = 0;

	run->slot = next;
	run->page = far.slot[next].page;
	while (n < most && next == run->slot + n && far.slot[next].page == run->page + n &&
	       far_are_in_store_in_row(run->page, n)) {
		uint32_t after = far.slot_link[next].next;

		far_slot_unqueue(next);
		far.page[run->page + n].state = FAR_BUSY;
		n++;
		next = after;
	}
	run->count = n;
}

/* Several, so that the stores have many requests at a time; half of the slots are for others. */
static unsigned int take_runs(struct run *runs, bool *zero)
{
	unsigned int n, left = far.batch > PAGES_LEAST ? far.batch : PAGES_LEAST;
	unsigned int most = far_exchanges() ? 1 : RUNS;
	unsigned int mine = far_exchanges() ? far.dirty.count : (far.dirty.count + 1) / 2;

	left = left < mine ? left : mine;
	for (n = 0; n < most && left; n++) {
		take_run(&runs[n], left);
		runs[n].zero = zero;
		zero += runs[n].count;
		left -= runs[n].count;
	}
	return n;
}

static bool is_zero(const void *page)
{
	const uint64_t *word = page;

	/* Compared with itself, one word on: all are as the first. */
	return !*word && !memcmp(word, word + 1, far.page_size - sizeof(*word));
}

/* Without the lock: which pages of a run are of zeros? */
static void find_zeros(const struct run *run)
{
	unsigned int i;

	for (i = 0; i < run->count; i++)
		run->zero[i] = is_zero(far_slot_addr(run->slot + i));
}

/* The stores are not told any more to forget what is put now. */
static void keep_places(const struct run *run)
{
	unsigned int i;

	for (i = 0; i < run->count; i++)
		if (!run->zero[i])
			far_discard_none(far_place_of(run->page + i));
}

/* Without the lock: the operations that a run needs, behind those of others. Returns how many. */
static unsigned int add_puts(struct far_io *ios, const struct run *run)
{
	unsigned int i, from, n = 0;

	for (from = 0; from < run->count; from = i) {
		for (i = from; i < run->count && !run->zero[i]; i++)
			;
		if (i == from)
			i++;
		else
			ios[n++] = (struct far_io){
				1, far_place_of(run->page) + from, i - from,
				far_slot_addr(run->slot + from),
			};
	}
	return n;
}

/* Without the lock */
static void put(const struct run *runs, unsigned int count)
{
	struct far_io ios[PAGES];
	unsigned int i, n = 0;

	for (i = 0; i < count; i++)
		n += add_puts(ios + n, &runs[i]);
	if (n && far_stripe_together(&far.stripe, ios, n))
		far_die(far_error());
}

/* A page's copy in the stores is as new as its slot now. */
static void was_put(uint64_t n, uint32_t slot, bool zero)
{
	struct far_page *page = &far.page[n];

	page->flags &= (uint8_t)~FAR_DIRTY;
	if (zero) {
		far.count.zeros++;
		if (page->flags & FAR_IN_STORE)
			far_discard(far_place_of(n));
		page->flags &= (uint8_t)~FAR_IN_STORE;
	} else {
		far.count.put++;
		page->flags |= FAR_IN_STORE;
	}
	far_slot_queue(slot, &far.clean);
	far_page_settle(n, FAR_SLOT);
}

static void were_put(const struct run *run)
{
	unsigned int i;

	for (i = 0; i < run->count; i++)
		was_put(run->page + i, run->slot + i, run->zero[i]);
}

bool far_write_back(void)
{
	struct run runs[RUNS];
	bool zero[PAGES];
	unsigned int i, count = take_runs(runs, zero);

	if (!count)
		return false;
	pthread_mutex_unlock(&far.lock);
	for (i = 0; i < count; i++)
		find_zeros(&runs[i]);
	pthread_mutex_lock(&far.lock);
	for (i = 0; i < count; i++)
		keep_places(&runs[i]);
	pthread_mutex_unlock(&far.lock);
	put(runs, count);
	pthread_mutex_lock(&far.lock);
	for (i = 0; i < count; i++)
		were_put(&runs[i]);
	return true;
}
