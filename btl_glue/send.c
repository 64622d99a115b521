// SPDX-License-Identifier: LGPL-2.1-or-later
/* Putting fragments where the peer reads them. */
#include "btl_pvas.h"

#include <string.h>

#define component mca_btl_pvas_component

/*
 * Room in the peer's memory. The caller holds the endpoint's lock: a box has
 * one writer, and the order of a rank's messages is theirs.
 */
static union pvas_head *take(pvas_endpoint_t *ep, size_t len)
{
	union pvas_head *head;
	uint64_t pos;

	if (ep->box || pvas_box_enter(ep)) {
		if (!pvas_box_leave(ep))
			return pvas_ring_take_alone(&ep->box->ring, len, &ep->tail, &ep->seen);
	}
	head = pvas_ring_take(&ep->port->queue, len, &pos);
	if (head)
		ep->queue_end = pos + pvas_ring_need(len);
	return head;
}

static void complete(union pvas_head *head, size_t len, mca_btl_base_tag_t tag,
		     enum pvas_kind kind)
{
	union pvas_head value = {
		.len = len,
		.from = component.index,
		.tag = tag,
		.kind = kind,
	};

	pvas_ring_complete(head, value);
}

/* Each time it was in vain, ask less often: others are busier. */
static void ask_for_box(pvas_endpoint_t *ep)
{
	const struct {
		struct pvas_box **offer;
		uint64_t gen;
	} body = { &ep->offer, component.gen };
	unsigned int shift = ep->asked < 10 ? ep->asked : 10;
	union pvas_head *head;
	uint64_t pos;

	if (ep->box || !component.box_threshold || ++ep->sent < component.box_threshold << shift)
		return;
	head = pvas_ring_take(&ep->port->queue, sizeof(body), &pos);
	if (!head)
		return;
	memcpy(pvas_ring_body(head), &body, sizeof(body));
	ep->queue_end = pos + pvas_ring_need(sizeof(body));
	complete(head, sizeof(body), 0, PVAS_KIND_ASK);
	ep->sent = 0;
	ep->asked++;
}

static size_t length(const struct pvas_frag *frag)
{
	return frag->segments[0].seg_len +
	       (frag->base.des_segment_count > 1 ? frag->segments[1].seg_len : 0);
}

static bool push_data(pvas_endpoint_t *ep, const struct pvas_frag *frag, size_t len)
{
	const mca_btl_base_segment_t *seg = frag->segments;
	union pvas_head *head = take(ep, len);
	char *body;

	if (!head)
		return false;
	body = pvas_ring_body(head);
	memcpy(body, seg[0].seg_addr.pval, seg[0].seg_len);
	if (frag->base.des_segment_count > 1)
		memcpy(body + seg[0].seg_len, seg[1].seg_addr.pval, seg[1].seg_len);
	complete(head, len, frag->tag, PVAS_KIND_DATA);
	pvas_count(eager, 1);
	return true;
}

static bool push_reference(pvas_endpoint_t *ep, struct pvas_frag *frag)
{
	struct pvas_reference *ref;
	union pvas_head *head = take(ep, sizeof(*ref));

	if (!head)
		return false;
	ref = pvas_ring_body(head);
	ref->frag = frag;
	ref->port = component.port;
	ref->gen = component.gen;
	ref->count = frag->base.des_segment_count;
	ref->segments[0] = frag->segments[0];
	ref->segments[1] = frag->segments[1];
	complete(head, sizeof(*ref), frag->tag, PVAS_KIND_REF);
	pvas_count(references, 1);
	return true;
}

/* The callback of what was copied is due at once, of what was not when it comes back. */
static bool push(pvas_endpoint_t *ep, struct pvas_frag *frag)
{
	size_t len = length(frag);

	if (len > mca_btl_pvas.super.btl_eager_limit)
		return push_reference(ep, frag);
	if (!push_data(ep, frag, len))
		return false;
	pvas_done(frag);
	return true;
}

static void wait_for_room(pvas_endpoint_t *ep, struct pvas_frag *frag)
{
	opal_list_append(&ep->pending, (opal_list_item_t *)frag);
	pvas_count(waits, 1);
	if (ep->waiting)
		return;
	ep->waiting = true;
	__atomic_add_fetch(&component.waiters, 1, __ATOMIC_RELAXED);
}

/* Is the peer there to be written to? */
static bool reachable(pvas_endpoint_t *ep)
{
	if (OPAL_LIKELY(pvas_alive(ep->index, ep->gen)))
		return true;
	pvas_peer_gone(ep);
	return false;
}

int pvas_send(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep,
	      struct mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
	struct pvas_frag *frag = (struct pvas_frag *)descriptor;

	(void)btl;
	if (!reachable(ep))
		return OPAL_ERR_UNREACH;
	frag->tag = tag;
	frag->endpoint = ep;
	OPAL_THREAD_LOCK(&ep->lock);
	if (ep->waiting || !push(ep, frag))
		wait_for_room(ep, frag);
	else
		ask_for_box(ep);
	OPAL_THREAD_UNLOCK(&ep->lock);
	return OPAL_SUCCESS;
}

/* Some or all that waits, in its order. Returns how many went. */
int pvas_send_pending(struct mca_btl_base_endpoint_t *ep)
{
	opal_list_item_t *item;
	int count = 0;

	if (!ep->waiting || !reachable(ep))
		return 0;
	OPAL_THREAD_LOCK(&ep->lock);
	while ((item = opal_list_remove_first(&ep->pending))) {
		if (!push(ep, (struct pvas_frag *)item)) {
			opal_list_prepend(&ep->pending, item);
			break;
		}
		count++;
	}
	if (ep->waiting && opal_list_is_empty(&ep->pending)) {
		ep->waiting = false;
		__atomic_sub_fetch(&component.waiters, 1, __ATOMIC_RELAXED);
	}
	OPAL_THREAD_UNLOCK(&ep->lock);
	return count;
}

static bool pack(struct opal_convertor_t *convertor, void *to, size_t size)
{
	struct iovec iov = { .iov_base = to, .iov_len = size };
	uint32_t count = 1;

	return opal_convertor_pack(convertor, &iov, &count, &size) >= 0;
}

/* One copy, from the user's buffer to where the peer reads it. */
static bool send_now(pvas_endpoint_t *ep, struct opal_convertor_t *convertor, const void *header,
		     size_t header_size, size_t payload_size, mca_btl_base_tag_t tag)
{
	union pvas_head *head;
	char *body;
	void *data;

	if (ep->waiting)
		return false;
	head = take(ep, header_size + payload_size);
	if (!head)
		return false;
	body = pvas_ring_body(head);
	memcpy(body, header, header_size);
	if (payload_size && opal_convertor_need_buffers(convertor)) {
		pack(convertor, body + header_size, payload_size);
	} else if (payload_size) {
		opal_convertor_get_current_pointer(convertor, &data);
		memcpy(body + header_size, data, payload_size);
	}
	complete(head, header_size + payload_size, tag, PVAS_KIND_DATA);
	pvas_count(eager, 1);
	ask_for_box(ep);
	return true;
}

int pvas_sendi(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep,
	       struct opal_convertor_t *convertor, void *header, size_t header_size,
	       size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
	       mca_btl_base_descriptor_t **descriptor)
{
	size_t size = header_size + payload_size;
	bool sent = false;

	(void)btl;
	if (OPAL_LIKELY(size <= mca_btl_pvas.super.btl_eager_limit) && reachable(ep)) {
		OPAL_THREAD_LOCK(&ep->lock);
		sent = send_now(ep, convertor, header, header_size, payload_size, tag);
		OPAL_THREAD_UNLOCK(&ep->lock);
	}
	if (OPAL_LIKELY(sent))
		return OPAL_SUCCESS;
	if (descriptor)
		*descriptor = (mca_btl_base_descriptor_t *)pvas_frag_get(ep, size, order, flags);
	return OPAL_ERR_OUT_OF_RESOURCE;
}
