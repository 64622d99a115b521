// SPDX-License-Identifier: LGPL-2.1-or-later
/* The progress function: reads the records that peers wrote into our queue and fast boxes. */
#include "btl_pvas.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"

#define component mca_btl_pvas_component

/* Most records to read from one ring before the next ring's turn */
#define MAX_BATCH 16

/* Calls that find nothing between two looks at the clock, and between two checks of a peer */
#define CLOCK_INTERVAL 16
#define CHECK_INTERVAL 1024

/* Enough cache misses for one processor to wait for at once */
#define PREFETCH_BYTES 2048

/* Overlap the cache misses that the upper layer would otherwise take one after the other. */
static void prefetch(const char *p, size_t len)
{
	const char *end = p + (len < PREFETCH_BYTES ? len : PREFETCH_BYTES);

	for (; p < end; p += MCA_BTL_PVAS_CACHE_LINE)
		__builtin_prefetch(p);
}

static void deliver_data(union mca_btl_pvas_record_hdr *hdr)
{
	char *body = mca_btl_pvas_record_body(hdr);
	/* Reading the header has fetched the first line. */
	char *second = (char *)(((uintptr_t)hdr | (MCA_BTL_PVAS_CACHE_LINE - 1)) + 1);
	mca_btl_base_segment_t segment = {
		.seg_addr.pval = body,
		.seg_len = hdr->len,
	};

	if (body + hdr->len > second)
		prefetch(second, body + hdr->len - second);
	mca_btl_pvas_trigger(&mca_btl_pvas.super, hdr->tag, &segment, 1);
}

static void return_frag(struct mca_btl_pvas_port *port, struct mca_btl_pvas_frag *frag)
{
	struct mca_btl_pvas_frag *top = __atomic_load_n(&port->returned, __ATOMIC_RELAXED);

	do {
		frag->next = top;
	} while (!__atomic_compare_exchange_n(&port->returned, &top, frag, true,
					      __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/*
 * Of a whole message in two segments, ob1 of Open MPI 4.1 counts the first one's bytes only
 * when it compares the length with that of a receive that was posted before: if the receive
 * is too short, MPI_ERR_TRUNCATE is lost. So it gets such a message in one segment. Parts of
 * longer ones are preceded by a header that has the length. False: no memory now.
 */
static bool deliver_joined(mca_btl_base_tag_t tag, const struct mca_btl_pvas_reference *ref)
{
	const mca_btl_base_segment_t *seg = ref->segments;
	char room[MCA_BTL_PVAS_EAGER_LIMIT];
	mca_btl_base_segment_t joined = { .seg_len = seg[0].seg_len + seg[1].seg_len };
	char *to = joined.seg_len <= sizeof(room) ? room : malloc(joined.seg_len);

	if (!to)
		return false;
	memcpy(to, seg[0].seg_addr.pval, seg[0].seg_len);
	memcpy(to + seg[0].seg_len, seg[1].seg_addr.pval, seg[1].seg_len);
	return_frag(ref->port, ref->frag);
	joined.seg_addr.pval = to;
	mca_btl_pvas_trigger(&mca_btl_pvas.super, tag, &joined, 1);
	if (to != room)
		free(to);
	return true;
}

/*
 * False: it must wait. A fragment whose sender has ended is lost;
 * mca_btl_pvas_check_peers() reports the sender.
 */
static bool deliver_reference(union mca_btl_pvas_record_hdr *hdr)
{
	struct mca_btl_pvas_reference *ref = mca_btl_pvas_record_body(hdr);
	mca_btl_base_segment_t *seg = ref->segments;

	if (!mca_btl_pvas_peer_alive(hdr->from, ref->gen))
		return true;
	prefetch(seg[0].seg_addr.pval, seg[0].seg_len);
	if (ref->count > 1) {
		prefetch(seg[1].seg_addr.pval, seg[1].seg_len);
		if (seg[0].seg_len + seg[1].seg_len <= mca_btl_pvas.super.btl_eager_limit)
			return deliver_joined(hdr->tag, ref);
	}
	mca_btl_pvas_trigger(&mca_btl_pvas.super, hdr->tag, seg, ref->count);
	return_frag(ref->port, ref->frag);
	return true;
}

static void deliver_fbox_request(union mca_btl_pvas_record_hdr *hdr)
{
	const struct {
		struct mca_btl_pvas_fbox **offer;
		uint64_t gen;
	} *body = mca_btl_pvas_record_body(hdr);

	mca_btl_pvas_fbox_requested(hdr->from, body->gen, body->offer);
}

static bool barrier_passed(union mca_btl_pvas_record_hdr *hdr)
{
	const uint64_t *pos = mca_btl_pvas_record_body(hdr);

	return !mca_btl_pvas_ring_before(component.port->queue.head, *pos);
}

/* False: it must wait, and so must the records behind it. */
static bool deliver(union mca_btl_pvas_record_hdr *hdr)
{
	switch (hdr->type) {
	case MCA_BTL_PVAS_RECORD_DATA:
		deliver_data(hdr);
		break;
	case MCA_BTL_PVAS_RECORD_REFERENCE:
		return deliver_reference(hdr);
	case MCA_BTL_PVAS_RECORD_FBOX_REQUEST:
		deliver_fbox_request(hdr);
		break;
	case MCA_BTL_PVAS_RECORD_BARRIER:
		return barrier_passed(hdr);
	}
	return true;
}

/*
 * Looking for a record that is not there is a cache miss, because the writer has just
 * cleared that place: in a ping-pong, a large part of the latency. So look for more
 * than one record only if all that were looked for the last time were there.
 */
static int next_batch(int found, int expected)
{
	if (!found)
		return 1;
	return found == expected && found < MAX_BATCH ? 2 * found : expected;
}

static int poll_ring(struct mca_btl_pvas_ring *ring, int *batch)
{
	const uint64_t begin = ring->head;
	union mca_btl_pvas_record_hdr *hdr;
	uint64_t pos = begin;
	int count;

	for (count = 0; count < *batch; count++) {
		hdr = mca_btl_pvas_ring_peek(ring, &pos);
		if (!hdr || !deliver(hdr))
			break;
		pos = mca_btl_pvas_ring_next(ring, pos, hdr);
	}
	if (pos != begin)
		mca_btl_pvas_ring_release(ring, pos);
	*batch = next_batch(count, *batch);
	return count;
}

static int poll_fboxes(void)
{
	unsigned int i;
	int count = 0;

	for (i = 0; i < component.nr_fboxes_in; i++) {
		struct mca_btl_pvas_fbox_in *in = &component.fbox_in[i];
		int n = poll_ring(&in->fbox->ring, &in->batch);

		count += n;
		if (OPAL_UNLIKELY(!n && in->closing) && mca_btl_pvas_fbox_reclaim(in))
			i--;
	}
	return count;
}

/* One thread at a time; and a callback that polls must not get the same record again. */
static bool try_begin(void)
{
	if (component.progressing)
		return false;
	if (opal_using_threads())
		return !__atomic_exchange_n(&component.progressing, 1, __ATOMIC_ACQUIRE);
	component.progressing = 1;
	return true;
}

static uint64_t coarse_ms(void)
{
	return clock_ns(CLOCK_MONOTONIC_COARSE) / CLOCK_NS_PER_MS;
}

/* Release what has been unused for a while. */
static void release_unused(void)
{
	static uint64_t next;
	uint64_t now;

	if (!component.fbox_idle)
		return;
	now = coarse_ms();
	if (now < next)
		return;
	next = now + component.fbox_idle;
	mca_btl_pvas_close_idle_fboxes();
	mca_btl_pvas_frag_trim();
}

static void idle(void)
{
	if (++component.polls % CLOCK_INTERVAL)
		return;
	mca_btl_pvas_check_peers();
	if (component.polls % CHECK_INTERVAL)
		return;
	mca_btl_pvas_check_next_peer();
	release_unused();
}

int mca_btl_pvas_component_progress(void)
{
	int count;

	if (!try_begin())
		return 0;
	count = poll_ring(&component.port->queue, &component.queue_batch);
	if (component.nr_fboxes_in)
		count += poll_fboxes();
	if (OPAL_UNLIKELY(component.port->shared_copy.left > 0))
		mca_btl_pvas_copy_help();
	if (component.port->returned)
		count += mca_btl_pvas_complete_returned();
	if (component.nr_completed)
		count += mca_btl_pvas_complete_queued();
	if (component.nr_pending)
		count += mca_btl_pvas_send_pending();
	if (!count)
		idle();
	__atomic_store_n(&component.progressing, 0, __ATOMIC_RELEASE);
	return count;
}
