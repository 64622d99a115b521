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

/* Faults as near as this are of one stream. */
enum { NEAR = 64 };

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

/* Queue a page to be fetched; false if none should be queued after it */
static bool queue(uint64_t n)
{
	uint32_t slot;

	if (n >= far.pages || far.page[n].state == FAR_FREE)
		return false;
	if (far.page[n].state != FAR_STORED)
		return true;
	slot = far_slot_for_fetch(false);
	if (slot == FAR_NO_SLOT)
		return false;
	far.page[n].state = FAR_BUSY;
	far.slot[slot].page = n;
	far.job[(far.job_head + far.job_count++) % far.fetch_count] = (struct far_job){ n, slot };
	pthread_cond_signal(&far.work);
	return true;
}

void far_ahead(uint64_t page, pid_t tid)
{
	struct far_stream *s = stream_of(page, tid);
	unsigned int i, most = far.fetch_count / 2;
	int64_t stride = (int64_t)(page - s->last);

	if (stride) {
		s->stride[s->count++ % FAR_STRIDES] = stride;
		s->last = page;
	}
	stride = far.page[page].flags & FAR_SEQUENTIAL ? 1 : majority(s);
	if (!stride) {
		s->window = 0;
		return;
	}
	s->window = s->window ? 2 * s->window : far.page[page].flags & FAR_SEQUENTIAL ? most : 1;
	if (s->window > most)
		s->window = most;
	for (i = 1; i <= s->window && queue(page + (uint64_t)(i * stride)); i++)
		;
}

bool far_ahead_work(void)
{
	struct far_job job;
	struct far_page *page;

	if (!far.job_count)
		return false;
	job = far.job[far.job_head];
	far.job_head = (far.job_head + 1) % far.fetch_count;
	far.job_count--;
	far.count.ahead++;
	far.count.fetched++;
	pthread_mutex_unlock(&far.lock);
	if (far_stripe_get(&far.stripe, far_place_of(job.page), far_slot_addr(job.slot)))
		far_die(far_error());
	pthread_mutex_lock(&far.lock);
	page = &far.page[job.page];
	page->slot = job.slot;
	page->flags |= FAR_AHEAD;
	far_slot_queue(job.slot, &far.ready);
	far_page_settle(job.page, FAR_SLOT);
	return true;
}
