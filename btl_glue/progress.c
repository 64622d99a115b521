// SPDX-License-Identifier: LGPL-2.1-or-later
/* Taking fragments out of our port and boxes, and completing our own. */
#include "btl_pvas.h"

#define component mca_btl_pvas_component

/* Records of the queue at a time: boxes, where the busy peers are, come in turn. */
#define QUEUE_AT_ONCE 16

/* Idle turns between two looks at a peer */
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

static void deliver_data(union pvas_head *head)
{
	mca_btl_base_segment_t segment = {
		.seg_addr.pval = pvas_ring_body(head),
		.seg_len = head->len,
	};

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

static void deliver(union pvas_head *head)
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
	}
}

static int poll_queue(void)
{
	struct pvas_ring *queue = &component.port->queue;
	union pvas_head *head;
	int count;

	for (count = 0; count < QUEUE_AT_ONCE; count++) {
		head = pvas_ring_peek(queue, true);
		if (!head)
			break;
		deliver(head);
		pvas_ring_drop(queue, head, true);
	}
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

/* The list of endpoints changes only when processes come or go, never meanwhile. */
static int retry_pending(void)
{
	opal_list_item_t *item;
	int count = 0;

	for (item = opal_list_get_first(&component.endpoints);
	     item != opal_list_get_end(&component.endpoints); item = opal_list_get_next(item))
		count += pvas_send_pending((pvas_endpoint_t *)item);
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

int pvas_progress(void)
{
	int count;

	if (!begin())
		return 0;
	count = poll_queue();
	if (component.nr_boxes)
		count += pvas_box_poll(deliver);
	if (OPAL_UNLIKELY(component.port->job.left > 0))
		pvas_copy_help();
	if (component.port->returned)
		count += finish_returned();
	if (component.nr_done)
		count += finish_done();
	if (component.waiters)
		count += retry_pending();
	if (OPAL_UNLIKELY(!count && ++component.idle % WATCH_EVERY == 0))
		pvas_watch_step();
	__atomic_store_n(&component.progressing, 0, __ATOMIC_RELEASE);
	return count;
}
