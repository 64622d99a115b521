// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Read-ahead. A *stream* is the faults of one thread in one place; if most of its last
 * strides are the same, the next pages at that stride are fetched into slots. They are not
 * mapped: a fault on one costs no wait for a store, and tells that the stream goes on.
 * (The majority is that of Al Maruf, Chowdhury: "Effectively Prefetching Remote Memory
 * with Leap", 2020.) The lock is held.
 */
#include <stdlib.h>

#include "far.h"
#include "store.h"

enum {
	NEAR = 64,	/* faults as near as this are of one stream */
	JUMPS = 32,	/* pages fetched ahead if others lie between them: a column has an end */
	RUNS = 16,	/* of pages in a row that are fetched in one go */
};

/* The stream that a fault belongs to, or the one unused for the longest time */
static struct far_stream *stream_of(uint64_t page, pid_t tid)
{
	struct far_stream *s, *oldest = far.stream, *found = NULL;
	int64_t distance, best = NEAR + 1;

	for (s = far.stream; s < far.stream + FAR_STREAMS; s++) {
		if (s->used < oldest->used)
			oldest = s;
		distance = llabs((int64_t)(page - s->last));
		if (s->used && s->tid == tid && distance < best) {
			best = distance;
			found = s;
		}
	}
	if (!found) {
		found = oldest;
		*found = (struct far_stream){ .tid = tid, .last = page };
	}
	found->used = ++far.stream_clock;
	return found;
}

/* The stride of more than half of the last ones (Boyer and Moore's vote); 0: there is none */
static int64_t majority(const struct far_stream *s)
{
	unsigned int i, n = s->count < FAR_STRIDES ? s->count : FAR_STRIDES, votes = 0;
	int64_t stride = 0;

	for (i = 0; i < n; i++) {
		if (!votes)
			stride = s->stride[i];
		votes += s->stride[i] == stride ? 1 : -1U;
	}
	for (votes = i = 0; i < n; i++)
		votes += s->stride[i] == stride;
	return n >= 2 && votes > n / 2 ? stride : 0;
}

/*
 * Queue a page to be fetched; false if none should be queued after it. @slot: that of the page
 * queued before it, and then its own: pages in a row are fetched and mapped at once.
 */
static bool queue(uint64_t n, uint32_t *slot)
{
	if (n >= far.pages || far.page[n].state == FAR_FREE)
		return false;
	if (far.page[n].state != FAR_STORED)
		return true;
	if (*slot != FAR_NO_SLOT && far_slot_take_next(*slot))
		++*slot;
	else
		*slot = far_slot_for_fetch(false);
	if (*slot == FAR_NO_SLOT)
		return false;
	far.page[n].state = FAR_BUSY;
	far.slot[*slot].page = n;
	far.job[(far.job_head + far.job_count++) % far.fetch_count] = (struct far_job){ n, *slot };
	/* First the thread that has nothing else to do, then others. */
	pthread_cond_signal(far.fetcher_waits ? &far.fetch : &far.work);
	far.fetcher_waits = false;
	return true;
}

/*
 * Of the slots, those that a stream may fill. All that go on share them, and some are left: else
 * each would take the others' pages before they are used, and all would be fetched again and again.
 * Hence one more does not begin (0) if there would be none for it.
 */
static unsigned int share(const struct far_stream *of)
{
	const struct far_stream *s;
	unsigned int others = 0, slots;

	for (s = far.stream; s < far.stream + FAR_STREAMS; s++)
		others += s != of && s->window && far.stream_clock - s->used < FAR_STREAMS;
	slots = far.fetch_count / (others + 2);
	return slots || !of->window ? slots : 1;
}

/* The slot that the page before @page was fetched into, if it was */
static uint32_t slot_before(uint64_t page)
{
	const struct far_page *before = &far.page[page - 1];

	return page && page <= far.pages && before->state == FAR_SLOT &&
	       before->slot < far.fetch_count ? before->slot : FAR_NO_SLOT;
}

/* Half of what is fetched ahead: while the program uses that, the rest comes. */
static unsigned int unit_of(const struct far_stream *s, int64_t stride)
{
	unsigned int unit = stride == 1 ? s->window / 2 + 1 : 1;

	return unit < far.unit ? unit : far.unit;
}

unsigned int far_ahead(uint64_t page, pid_t tid)
{
	struct far_stream *s = stream_of(page, tid);
	unsigned int i, unit, most;
	int64_t stride = (int64_t)(page - s->last);
	uint32_t slot = FAR_NO_SLOT;
	uint64_t n;

	if (stride) {
		s->stride[s->count++ % FAR_STRIDES] = stride;
		s->last = page;
	}
	stride = far.page[page].flags & FAR_SEQUENTIAL ? 1 : majority(s);
	if (!stride) {
		s->window = 0;
		return 1;
	}
	most = share(s);
	if (!most)
		return 1;
	if (stride != 1 && most > JUMPS)
		most = JUMPS;
	s->window = s->window ? 2 * s->window : far.page[page].flags & FAR_SEQUENTIAL ? most : 1;
	if (s->window > most)
		s->window = most;
	/* Those that are mapped with a page that must be fetched, are fetched with it, too. */
	unit = unit_of(s, stride);
	for (i = far.page[page].state == FAR_STORED ? unit : 1; i <= s->window; i++) {
		n = page + (uint64_t)(i * stride);
		if (stride == 1 && slot == FAR_NO_SLOT)
			slot = slot_before(n);
		if (!queue(n, &slot))
			break;
	}
	return unit;
}

void far_ahead_mapped(uint64_t page, pid_t tid, unsigned int count)
{
	struct far_stream *s = stream_of(page, tid);

	if (s->last == page)
		s->last = page + count - 1;
}

/* Pages in a row, to be fetched into slots in a row */
struct run {
	struct far_job first;
	unsigned int count;
};

/* Of the queued jobs, those at the head that are a run */
static void take_run(struct run *run, unsigned int most)
{
	const struct far_job *next;
	unsigned int n = 1;

	run->first = far.job[far.job_head];
	for (; n < most && n < far.job_count; n++) {
		next = &far.job[(far.job_head + n) % far.fetch_count];
		if (next->page != run->first.page + n || next->slot != run->first.slot + n ||
		    !far_are_in_store_in_row(run->first.page, n))
			break;
	}
	far.job_head = (far.job_head + n) % far.fetch_count;
	far.job_count -= n;
	run->count = n;
}

/* Half of the jobs, for the stores to have many requests at a time; the rest is for others. */
static unsigned int take_runs(struct run *runs)
{
	unsigned int n, left = (far.job_count + 1) / 2;

	left = left < far.batch ? left : far.batch;
	for (n = 0; n < RUNS && left; n++) {
		take_run(&runs[n], left);
		far.count.ahead += runs[n].count;
		far.count.fetched += runs[n].count;
		left -= runs[n].count;
	}
	return n;
}

/* Without the lock */
static void fetch(const struct run *runs, unsigned int count)
{
	struct far_io ios[RUNS];
	unsigned int i;

	for (i = 0; i < count; i++)
		ios[i] = (struct far_io){
			0, far_place_of(runs[i].first.page), runs[i].count,
			far_slot_addr(runs[i].first.slot),
		};
	if (far_stripe_together(&far.stripe, ios, count))
		far_die(far_error());
}

static void were_fetched(const struct run *run)
{
	uint32_t slot = run->first.slot;
	uint64_t n = run->first.page, end = n + run->count;

	for (; n < end; n++, slot++) {
		far.page[n].slot = slot;
		far.page[n].flags |= FAR_AHEAD;
		far_slot_queue(slot, &far.ready);
		far_page_settle(n, FAR_SLOT);
	}
}

bool far_ahead_work(void)
{
	struct run runs[RUNS];
	unsigned int i, count = take_runs(runs);

	if (!count)
		return false;
	pthread_mutex_unlock(&far.lock);
	fetch(runs, count);
	pthread_mutex_lock(&far.lock);
	for (i = 0; i < count; i++)
		were_fetched(&runs[i]);
	return true;
}
