// SPDX-License-Identifier: LGPL-2.1-or-later
/* Taking fragments out of our port and boxes, and completing our own. */
#include "btl_pvas.h"

#include "clock.h"

#define component mca_btl_pvas_component

/* Records at a time: queue and boxes come in turn. */
#define MOST_AT_ONCE 16

/* Turns between two looks at a peer and at the clock */
#define WATCH_EVERY 1024

static void call(mca_btl_base_tag_t tag, mca_btl_base_segment_t *segments, size_t count)
{
	const mca_btl_active_message_callback_t *am = &mca_btl_base_active_message_trigger[tag];
	mca_btl_base_descriptor_t descriptor = {
		.des_segments = segments,
		.des_segment_count = count,
	};

	am->cbfunc(&mca_btl_pvas.super, tag, &descriptor, am->cbdata);
}

/* Enough to keep a processor's memory busy */
#define AHEAD 2048

/* Lines that the upper layer will want as soon as it knows whom they are for come together. */
static void fetch(const char *p, size_t len)
{
	const char *end = p + (len < AHEAD ? len : AHEAD);

	for (; p < end; p += PVAS_LINE)
		__builtin_prefetch(p);
}

static void deliver_data(union pvas_head *head)
{
	mca_btl_base_segment_t segment = {
		.seg_addr.pval = pvas_ring_body(head),
		.seg_len = head->len,
	};

	/* The first line is here already. */
	if (head->len > PVAS_LINE - sizeof(*head))
		fetch((char *)head + PVAS_LINE, head->len + sizeof(*head) - PVAS_LINE);
	call(head->tag, &segment, 1);
}

static void give_back(struct pvas_port *port, struct pvas_frag *frag)
{
	struct pvas_frag *top = __atomic_load_n(&port->returned, __ATOMIC_RELAXED);

	do {
		frag->next = top;
	} while (!__atomic_compare_exchange_n(&port->returned, &top, frag, true,
					      __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/* What a sender that is gone left behind is lost; pvas_watch_step() tells. */
static void deliver_reference(union pvas_head *head)
{
	struct pvas_reference *ref = pvas_ring_body(head);

	if (!pvas_alive(head->from, ref->gen))
		return;
	fetch(ref->segments[0].seg_addr.pval, ref->segments[0].seg_len);
	if (ref->count > 1)
		fetch(ref->segments[1].seg_addr.pval, ref->segments[1].seg_len);
	call(head->tag, ref->segments, ref->count);
	give_back(ref->port, ref->frag);
}

static void deliver_ask(union pvas_head *head)
{
	const struct {
		struct pvas_box **offer;
		uint64_t gen;
	} *body = pvas_ring_body(head);

	pvas_box_asked(head->from, body->gen, body->offer);
}

static bool is_after(union pvas_head *head)
{
	const uint64_t *pos = pvas_ring_body(head);

	return !pvas_ring_before(component.port->queue.head, *pos);
}

/* False: not yet. */
static bool deliver(union pvas_head *head)
{
	switch (head->kind) {
	case PVAS_KIND_DATA:
		deliver_data(head);
		break;
	case PVAS_KIND_REF:
		deliver_reference(head);
		break;
	case PVAS_KIND_ASK:
		deliver_ask(head);
		break;
	case PVAS_KIND_AFTER:
		return is_after(head);
	}
	return true;
}

/*
 * Looking for one record more than there is costs a trip to the writer's core,
 * which has just cleared that place: in a ping-pong, a good part of the answer's
 * time. So more than one are expected only if there were as many as expected.
 */
static int expect(int found, int expected)
{
	if (!found)
		return 1;
	return found == expected && found < MOST_AT_ONCE ? 2 * found : expected;
}

int pvas_read(struct pvas_ring *ring, int *at_once)
{
	union pvas_head *head;
	int count;

	for (count = 0; count < *at_once; count++) {
		head = pvas_ring_peek(ring);
		if (!head || !deliver(head))
			break;
		pvas_ring_drop(ring, head);
	}
	*at_once = expect(count, *at_once);
	return count;
}

/*
 * The callback is made here and not from btl_send, whose callers don't all
 * expect it before they are told that the send was accepted.
 */
void pvas_done(struct pvas_frag *frag)
{
	OPAL_THREAD_LOCK(&component.lock);
	opal_list_append(&component.done, (opal_list_item_t *)frag);
	component.nr_done++;
	OPAL_THREAD_UNLOCK(&component.lock);
}

/* The callback may free the fragment, unless it is ours to free. */
static void finish(struct pvas_frag *frag)
{
	bool ours = frag->base.des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;

	if (frag->base.des_cbfunc)
		frag->base.des_cbfunc(&mca_btl_pvas.super, frag->endpoint, &frag->base,
				      OPAL_SUCCESS);
	if (ours)
		pvas_frag_put(frag);
}

static int finish_done(void)
{
	opal_list_item_t *item;
	int count = 0;

	for (;;) {
		OPAL_THREAD_LOCK(&component.lock);
		item = opal_list_remove_first(&component.done);
		if (item)
			component.nr_done--;
		OPAL_THREAD_UNLOCK(&component.lock);
		if (!item)
			return count;
		finish((struct pvas_frag *)item);
		count++;
	}
}

static int finish_returned(void)
{
	struct pvas_frag *frag, *next;
	int count = 0;

	frag = __atomic_exchange_n(&component.port->returned, NULL, __ATOMIC_ACQUIRE);
	for (; frag; frag = next) {
		next = frag->next;
		finish(frag);
		count++;
	}
	return count;
}

/* Also keeps a callback that polls from being given the same record again. */
static bool begin(void)
{
	if (component.progressing)
		return false;
	if (opal_using_threads())
		return !__atomic_exchange_n(&component.progressing, 1, __ATOMIC_ACQUIRE);
	component.progressing = 1;
	return true;
}

static uint64_t milliseconds(void)
{
	return clock_ns(CLOCK_MONOTONIC_COARSE) / CLOCK_NS_PER_MS;
}

/* What is not in use is given back after a while. */
static void now_and_then(void)
{
	static uint64_t next;
	uint64_t now;

	pvas_watch_step();
	if (!component.idle_ms)
		return;
	now = milliseconds();
	if (now < next)
		return;
	next = now + component.idle_ms;
	pvas_box_tick();
	pvas_frag_tick();
}

int pvas_progress(void)
{
	int count;

	if (!begin())
		return 0;
	count = pvas_read(&component.port->queue, &component.queue_at_once);
	if (component.nr_given)
		count += pvas_box_poll();
	if (OPAL_UNLIKELY(component.port->job.left > 0))
		pvas_copy_help();
	if (component.port->returned)
		count += finish_returned();
	if (component.nr_done)
		count += finish_done();
	if (component.nr_pending)
		count += pvas_send_pending();
	if (OPAL_UNLIKELY(++component.turns % WATCH_EVERY == 0))
		now_and_then();
	__atomic_store_n(&component.progressing, 0, __ATOMIC_RELEASE);
	return count;
}
