// SPDX-License-Identifier: LGPL-2.1-or-later
/* Putting fragments where the peer reads them. */
#include "btl_pvas.h"

#include <string.h>

#define component mca_btl_pvas_component

/* A box is asked for after threshold << MOST_SHIFT messages at the latest. */
#define MOST_SHIFT 10

/**
 * struct place - where a record goes
 * @ring:	the box, or NULL: the queue
 */
struct place {
	union pvas_head *head;
	struct pvas_ring *ring;
};

static void complete(const struct place *place, size_t len, mca_btl_base_tag_t tag,
		     enum pvas_kind kind)
{
	union pvas_head value = {
		.len = len,
		.from = component.index,
		.tag = tag,
		.kind = kind,
	};

	if (place->ring)
		pvas_ring_complete_alone(place->ring, place->head, value);
	else
		pvas_ring_complete(place->head, value);
}

static bool take_alone(struct place *place, struct pvas_ring *ring, size_t len)
{
	place->ring = ring;
	place->head = pvas_ring_take_alone(ring, len);
	return place->head;
}

/* Our last record is in the queue: what follows in the box is to be read after it. */
static bool put_after(pvas_endpoint_t *ep, struct pvas_box *box)
{
	uint64_t pos = pvas_ring_end(&ep->port->queue);
	struct place place;

	if (!take_alone(&place, &box->ring, sizeof(pos)))
		return false;
	memcpy(pvas_ring_body(place.head), &pos, sizeof(pos));
	complete(&place, sizeof(pos), 0, PVAS_KIND_AFTER);
	box->behind = 0;
	return true;
}

/*
 * Room in the peer's memory. The caller holds the endpoint's lock: a box has
 * one writer, and the order of a rank's messages is theirs.
 */
static bool take(struct place *place, pvas_endpoint_t *ep, size_t len)
{
	struct pvas_box *box = __atomic_load_n(&ep->box, __ATOMIC_ACQUIRE);

	if (box && !pvas_box_leave(ep, box)) {
		if (OPAL_LIKELY(pvas_ring_need(len) <= pvas_ring_longest(&box->ring)))
			return (OPAL_LIKELY(!box->behind) || put_after(ep, box)) &&
			       take_alone(place, &box->ring, len);
		/* Too long for it; must not overtake what is there. */
		if (!pvas_ring_empty(&box->ring))
			return false;
		box->behind = 1;
	}
	place->ring = NULL;
	place->head = pvas_ring_take(&ep->port->queue, len);
	return place->head;
}

/* Ask less often each time: others are busier, or we are not busy for long. */
static void ask_for_box(pvas_endpoint_t *ep)
{
	const struct {
		struct pvas_box **offer;
		uint64_t gen;
	} body = { &ep->box, component.gen };
	unsigned int shift = ep->asked;
	struct place place = { NULL, NULL };

	if (ep->box || !component.box_threshold ||
	    ++ep->sent < (uint64_t)component.box_threshold << shift)
		return;
	place.head = pvas_ring_take(&ep->port->queue, sizeof(body));
	if (!place.head)
		return;
	memcpy(pvas_ring_body(place.head), &body, sizeof(body));
	complete(&place, sizeof(body), 0, PVAS_KIND_ASK);
	ep->sent = 0;
	ep->asked += ep->asked < MOST_SHIFT;
}

static size_t length(const struct pvas_frag *frag)
{
	return frag->segments[0].seg_len +
	       (frag->base.des_segment_count > 1 ? frag->segments[1].seg_len : 0);
}

static bool push_data(pvas_endpoint_t *ep, const struct pvas_frag *frag, size_t len)
{
	const mca_btl_base_segment_t *seg = frag->segments;
	struct place place;
	char *body;

	if (!take(&place, ep, len))
		return false;
	body = pvas_ring_body(place.head);
	memcpy(body, seg[0].seg_addr.pval, seg[0].seg_len);
	if (frag->base.des_segment_count > 1)
		memcpy(body + seg[0].seg_len, seg[1].seg_addr.pval, seg[1].seg_len);
	complete(&place, len, frag->tag, PVAS_KIND_DATA);
	pvas_count(eager, 1);
	return true;
}

static bool push_reference(pvas_endpoint_t *ep, struct pvas_frag *frag)
{
	struct pvas_reference *ref;
	struct place place;

	if (!take(&place, ep, sizeof(*ref)))
		return false;
	ref = pvas_ring_body(place.head);
	ref->frag = frag;
	ref->port = component.port;
	ref->gen = component.gen;
	ref->count = frag->base.des_segment_count;
	ref->segments[0] = frag->segments[0];
	ref->segments[1] = frag->segments[1];
	complete(&place, sizeof(*ref), frag->tag, PVAS_KIND_REF);
	pvas_count(references, 1);
	return true;
}

enum fate { NO_ROOM, COPIED, LEFT_IN_PLACE };

static enum fate push(pvas_endpoint_t *ep, struct pvas_frag *frag)
{
	size_t len = length(frag);

	if (len <= component.copy_limit && push_data(ep, frag, len))
		return COPIED;
	return len > PVAS_WORTH_A_REFERENCE && push_reference(ep, frag) ? LEFT_IN_PLACE : NO_ROOM;
}

static void wait_for_room(pvas_endpoint_t *ep, struct pvas_frag *frag)
{
	OPAL_THREAD_LOCK(&component.lock);
	opal_list_append(&component.pending, (opal_list_item_t *)frag);
	component.nr_pending++;
	OPAL_THREAD_UNLOCK(&component.lock);
	ep->waiting++;
	pvas_count(waits, 1);
}

/* Is the peer there to be written to? */
static bool reachable(pvas_endpoint_t *ep)
{
	if (OPAL_LIKELY(pvas_alive(ep->index, ep->gen)))
		return true;
	pvas_peer_gone(ep);
	return false;
}

/*
 * The upper layer is told of a message that was copied at once by the value 1,
 * unless it wants to be called back, as it must be when it had to go without a
 * fragment and waits for one.
 */
static int finish(struct pvas_frag *frag)
{
	const uint32_t flags = frag->base.des_flags;

	if (frag->base.des_segment_count > 1 && flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP &&
	    !(flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK) && pvas_frag_put_quietly(frag))
		return 1;
	pvas_done(frag);
	return OPAL_SUCCESS;
}

int pvas_send(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep,
	      struct mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
	struct pvas_frag *frag = (struct pvas_frag *)descriptor;
	enum fate fate = NO_ROOM;

	(void)btl;
	if (!reachable(ep))
		return OPAL_ERR_UNREACH;
	frag->tag = tag;
	frag->endpoint = ep;
	OPAL_THREAD_LOCK(pvas_lock(ep));
	if (!ep->waiting)
		fate = push(ep, frag);
	if (OPAL_UNLIKELY(fate == NO_ROOM))
		wait_for_room(ep, frag);
	else
		ask_for_box(ep);
	OPAL_THREAD_UNLOCK(pvas_lock(ep));
	return fate == COPIED ? finish(frag) : OPAL_SUCCESS;
}

/* One that waited. Those after it must not overtake it. */
static bool retry(struct pvas_frag *frag)
{
	pvas_endpoint_t *ep = frag->endpoint;
	enum fate fate;

	if (ep->held_up || !reachable(ep))
		return false;
	OPAL_THREAD_LOCK(pvas_lock(ep));
	fate = push(ep, frag);
	if (fate != NO_ROOM)
		ep->waiting--;
	OPAL_THREAD_UNLOCK(pvas_lock(ep));
	if (fate == COPIED)
		pvas_done(frag);
	return fate != NO_ROOM;
}

/* Who sends meanwhile sees that some wait, and appends to the list that we emptied. */
static int take_pending(opal_list_t *list)
{
	struct pvas_frag *frag;
	int count;

	OPAL_THREAD_LOCK(&component.lock);
	opal_list_join(list, opal_list_get_end(list), &component.pending);
	count = component.nr_pending;
	component.nr_pending = 0;
	OPAL_THREAD_UNLOCK(&component.lock);
	OPAL_LIST_FOREACH(frag, list, struct pvas_frag)
		frag->endpoint->held_up = 0;
	return count;
}

static void put_back(opal_list_t *list, int count)
{
	OPAL_THREAD_LOCK(&component.lock);
	opal_list_join(&component.pending, opal_list_get_first(&component.pending), list);
	component.nr_pending += count;
	OPAL_THREAD_UNLOCK(&component.lock);
}

/* Some or all that waits, in its order. Returns how many went. */
int pvas_send_pending(void)
{
	struct pvas_frag *frag, *next;
	int count, sent = 0;
	opal_list_t list;

	OBJ_CONSTRUCT(&list, opal_list_t);
	count = take_pending(&list);
	OPAL_LIST_FOREACH_SAFE(frag, next, &list, struct pvas_frag) {
		opal_list_remove_item(&list, (opal_list_item_t *)frag);
		if (retry(frag)) {
			sent++;
			continue;
		}
		frag->endpoint->held_up = 1;
		opal_list_insert_pos(&list, (opal_list_item_t *)next, (opal_list_item_t *)frag);
	}
	put_back(&list, count - sent);
	OBJ_DESTRUCT(&list);
	return sent;
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
	struct place place;
	char *body;
	void *data;

	if (ep->waiting || !take(&place, ep, header_size + payload_size))
		return false;
	body = pvas_ring_body(place.head);
	memcpy(body, header, header_size);
	if (payload_size && opal_convertor_need_buffers(convertor)) {
		pack(convertor, body + header_size, payload_size);
	} else if (payload_size) {
		opal_convertor_get_current_pointer(convertor, &data);
		memcpy(body + header_size, data, payload_size);
	}
	complete(&place, header_size + payload_size, tag, PVAS_KIND_DATA);
	pvas_count(eager, 1);
	ask_for_box(ep);
	return true;
}

/*
 * With no room the upper layer keeps the message where it is, and tries again;
 * with one that is never copied it must be given a fragment for it.
 */
int pvas_sendi(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep,
	       struct opal_convertor_t *convertor, void *header, size_t header_size,
	       size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
	       mca_btl_base_descriptor_t **descriptor)
{
	const size_t size = header_size + payload_size;
	const bool can_copy = size <= component.copy_limit;
	bool sent = false;

	if (OPAL_LIKELY(can_copy) && reachable(ep)) {
		OPAL_THREAD_LOCK(pvas_lock(ep));
		sent = send_now(ep, convertor, header, header_size, payload_size, tag);
		OPAL_THREAD_UNLOCK(pvas_lock(ep));
	}
	if (OPAL_LIKELY(sent))
		return OPAL_SUCCESS;
	pvas_count(waits, can_copy);
	if (descriptor)
		*descriptor = can_copy ? NULL : pvas_alloc(btl, ep, order, size, flags);
	return OPAL_ERR_OUT_OF_RESOURCE;
}
