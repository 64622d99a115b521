// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writing fragments into the peer's queue or fast box. */
#include "btl_pvas.h"

#include <string.h>

#define component mca_btl_pvas_component

/* The interval between requests for a fast box grows up to threshold << MAX_SHIFT messages. */
#define MAX_SHIFT 10

/**
 * struct slot - room reserved for a record
 * @ring:	the fast box's, or NULL for the queue
 */
struct slot {
	union mca_btl_pvas_record_hdr *hdr;
	struct mca_btl_pvas_ring *ring;
};

/* Part of each function that sends: a call costs as much as the rest of a short message. */
#define INLINE static inline __attribute__((always_inline))

INLINE void commit(const struct slot *slot, size_t len, mca_btl_base_tag_t tag,
		   enum mca_btl_pvas_record_type type)
{
	union mca_btl_pvas_record_hdr value = {
		.len = len,
		.from = component.index,
		.tag = tag,
		.type = type,
	};

	if (slot->ring)
		mca_btl_pvas_ring_commit_single(slot->ring, slot->hdr, value);
	else
		mca_btl_pvas_ring_commit(slot->hdr, value);
}

static bool reserve_single(struct slot *slot, struct mca_btl_pvas_ring *ring, size_t len)
{
	slot->ring = ring;
	slot->hdr = mca_btl_pvas_ring_reserve_single(ring, len);
	return slot->hdr;
}

/* Our previous record is in the queue: the peer must read it before what follows here. */
static bool push_barrier(mca_btl_pvas_endpoint_t *ep, struct mca_btl_pvas_fbox *fbox)
{
	uint64_t pos = mca_btl_pvas_ring_end(&ep->port->queue);
	struct slot slot;

	if (!reserve_single(&slot, &fbox->ring, sizeof(pos)))
		return false;
	memcpy(mca_btl_pvas_record_body(slot.hdr), &pos, sizeof(pos));
	commit(&slot, sizeof(pos), 0, MCA_BTL_PVAS_RECORD_BARRIER);
	fbox->ring.needs_barrier = 0;
	return true;
}

/*
 * Reserve room in the peer's memory. The caller holds the endpoint's lock, because a fast
 * box has one writer, and the order of reservations is the order of messages.
 */
INLINE bool reserve(struct slot *slot, mca_btl_pvas_endpoint_t *ep, size_t len)
{
	struct mca_btl_pvas_fbox *fbox = __atomic_load_n(&ep->fbox_out, __ATOMIC_ACQUIRE);

	if (fbox && (OPAL_LIKELY(!mca_btl_pvas_fbox_is_closing(fbox)) ||
		     !mca_btl_pvas_fbox_release(ep, fbox)))
		return (OPAL_LIKELY(!fbox->ring.needs_barrier) || push_barrier(ep, fbox)) &&
		       reserve_single(slot, &fbox->ring, len);
	slot->ring = NULL;
	slot->hdr = mca_btl_pvas_ring_reserve(&ep->port->queue, len);
	return slot->hdr;
}

/*
 * A message that does not always fit into the peer's fast box is passed by reference: in
 * the queue it would have to wait until the fast box is empty. If the peer may have to wait
 * for our processor, half of the box is kept for references, which need 64 bytes each
 * whatever the message's length: it counts how many messages there is room for.
 */
static bool can_copy(const mca_btl_pvas_endpoint_t *ep, size_t len)
{
	struct mca_btl_pvas_fbox *fbox = __atomic_load_n(&ep->fbox_out, __ATOMIC_ACQUIRE);
	const unsigned int limit = component.limits[ep->distance].copy;

	/* The queue has the reader's size, whose copy_limit can be another. */
	if (!fbox || len <= MCA_BTL_PVAS_MIN_REFERENCE || len > limit)
		return len <= limit && mca_btl_pvas_record_size(len) <=
		       mca_btl_pvas_ring_max_record(&ep->port->queue);
	if (component.oversubscribed)
		return mca_btl_pvas_ring_stays_half_free(&fbox->ring, len);
	return mca_btl_pvas_record_size(len) <= mca_btl_pvas_ring_max_record(&fbox->ring);
}

static void send_request(mca_btl_pvas_endpoint_t *ep)
{
	const struct {
		struct mca_btl_pvas_fbox **offer;
		uint64_t gen;
	} body = { &ep->fbox_out, component.gen };
	struct slot slot = {
		.hdr = mca_btl_pvas_ring_reserve(&ep->port->queue, sizeof(body)),
	};

	if (!slot.hdr)
		return;
	memcpy(mca_btl_pvas_record_body(slot.hdr), &body, sizeof(body));
	commit(&slot, sizeof(body), 0, MCA_BTL_PVAS_RECORD_FBOX_REQUEST);
	ep->sent = 0;
	ep->nr_requests += ep->nr_requests < MAX_SHIFT;
}

/* Double the interval each time: refused peers must not flood a busy reader with requests. */
INLINE void request_fbox(mca_btl_pvas_endpoint_t *ep)
{
	const unsigned int shift = ep->nr_requests;

	if (OPAL_UNLIKELY(!ep->fbox_out) && component.fbox_threshold &&
	    ++ep->sent >= (uint64_t)component.fbox_threshold << shift)
		send_request(ep);
}

/* Headers and short messages, without a call. The two parts may overlap each other. */
#define COPY_HALVES(type, to, from, n)						\
	do {									\
		const type first = *(const type *)(from);			\
		const type last = *(const type *)((from) + (n) - sizeof(type));	\
										\
		*(type *)(to) = first;						\
		*(type *)((to) + (n) - sizeof(type)) = last;			\
	} while (0)

typedef uint64_t word __attribute__((may_alias, aligned(1)));
typedef long long pair __attribute__((vector_size(16), may_alias, aligned(1)));

static inline void copy_short(char *to, const char *from, size_t n)
{
	if (n > 2 * sizeof(pair) || n < sizeof(word))
		memcpy(to, from, n);
	else if (n >= sizeof(pair))
		COPY_HALVES(pair, to, from, n);
	else
		COPY_HALVES(word, to, from, n);
}

static size_t length(const struct mca_btl_pvas_frag *frag)
{
	return frag->segments[0].seg_len +
	       (frag->base.des_segment_count > 1 ? frag->segments[1].seg_len : 0);
}

static bool push_data(mca_btl_pvas_endpoint_t *ep, const struct mca_btl_pvas_frag *frag, size_t len)
{
	const mca_btl_base_segment_t *seg = frag->segments;
	struct slot slot;
	char *body;

	if (!reserve(&slot, ep, len))
		return false;
	body = mca_btl_pvas_record_body(slot.hdr);
	copy_short(body, seg[0].seg_addr.pval, seg[0].seg_len);
	if (frag->base.des_segment_count > 1)
		memcpy(body + seg[0].seg_len, seg[1].seg_addr.pval, seg[1].seg_len);
	commit(&slot, len, frag->tag, MCA_BTL_PVAS_RECORD_DATA);
	mca_btl_pvas_count(eager, 1);
	return true;
}

static bool push_reference(mca_btl_pvas_endpoint_t *ep, struct mca_btl_pvas_frag *frag)
{
	struct mca_btl_pvas_reference *ref;
	struct slot slot;

	if (!reserve(&slot, ep, sizeof(*ref)))
		return false;
	ref = mca_btl_pvas_record_body(slot.hdr);
	ref->frag = frag;
	ref->port = component.port;
	ref->gen = component.gen;
	ref->count = frag->base.des_segment_count;
	ref->segments[0] = frag->segments[0];
	ref->segments[1] = frag->segments[1];
	commit(&slot, sizeof(*ref), frag->tag, MCA_BTL_PVAS_RECORD_REFERENCE);
	mca_btl_pvas_count(references, 1);
	return true;
}

enum push_result { NO_ROOM, COPIED, REFERENCED };

static enum push_result push(mca_btl_pvas_endpoint_t *ep, struct mca_btl_pvas_frag *frag)
{
	size_t len = length(frag);

	if (can_copy(ep, len) && push_data(ep, frag, len))
		return COPIED;
	if (len > MCA_BTL_PVAS_MIN_REFERENCE && push_reference(ep, frag))
		return REFERENCED;
	return NO_ROOM;
}

static void append_pending(mca_btl_pvas_endpoint_t *ep, struct mca_btl_pvas_frag *frag)
{
	OPAL_THREAD_LOCK(&component.lock);
	opal_list_append(&component.pending, (opal_list_item_t *)frag);
	component.nr_pending++;
	OPAL_THREAD_UNLOCK(&component.lock);
	ep->nr_pending++;
	mca_btl_pvas_count(waits, 1);
}

/*
 * Return 1, for a message that is complete, unless a callback is required: because the
 * upper layer asks for it, or because it is waiting for a fragment.
 */
static int complete_sent(struct mca_btl_pvas_frag *frag)
{
	const uint32_t flags = frag->base.des_flags;

	if (frag->base.des_segment_count > 1 && flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP &&
	    !(flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK) && mca_btl_pvas_frag_try_return(frag))
		return 1;
	mca_btl_pvas_frag_complete(frag);
	return OPAL_SUCCESS;
}

int mca_btl_pvas_send(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep,
		      struct mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
	struct mca_btl_pvas_frag *frag = (struct mca_btl_pvas_frag *)descriptor;
	enum push_result result = NO_ROOM;

	(void)btl;
	if (!mca_btl_pvas_reachable(ep))
		return OPAL_ERR_UNREACH;
	frag->tag = tag;
	frag->endpoint = ep;
	OPAL_THREAD_LOCK(mca_btl_pvas_endpoint_lock(ep));
	if (!ep->nr_pending)
		result = push(ep, frag);
	if (OPAL_UNLIKELY(result == NO_ROOM))
		append_pending(ep, frag);
	else
		request_fbox(ep);
	OPAL_THREAD_UNLOCK(mca_btl_pvas_endpoint_lock(ep));
	return result == COPIED ? complete_sent(frag) : OPAL_SUCCESS;
}

/* A pending fragment. False: the later ones to this peer must stay pending, too. */
static bool retry(struct mca_btl_pvas_frag *frag)
{
	mca_btl_pvas_endpoint_t *ep = frag->endpoint;
	enum push_result result;

	if (ep->stalled || !mca_btl_pvas_reachable(ep))
		return false;
	OPAL_THREAD_LOCK(mca_btl_pvas_endpoint_lock(ep));
	result = push(ep, frag);
	if (result != NO_ROOM)
		ep->nr_pending--;
	OPAL_THREAD_UNLOCK(mca_btl_pvas_endpoint_lock(ep));
	if (result == COPIED)
		mca_btl_pvas_frag_complete(frag);
	return result != NO_ROOM;
}

/* A concurrent sender sees the endpoint's nr_pending, and appends to the emptied list. */
static int detach_pending(opal_list_t *list)
{
	struct mca_btl_pvas_frag *frag;
	int count;

	OPAL_THREAD_LOCK(&component.lock);
	opal_list_join(list, opal_list_get_end(list), &component.pending);
	count = component.nr_pending;
	component.nr_pending = 0;
	OPAL_THREAD_UNLOCK(&component.lock);
	OPAL_LIST_FOREACH(frag, list, struct mca_btl_pvas_frag)
	frag->endpoint->stalled = 0;
	return count;
}

static void reattach_pending(opal_list_t *list, int count)
{
	OPAL_THREAD_LOCK(&component.lock);
	opal_list_join(&component.pending, opal_list_get_first(&component.pending), list);
	component.nr_pending += count;
	OPAL_THREAD_UNLOCK(&component.lock);
}

/* Send pending fragments, in order. Returns the number sent. */
int mca_btl_pvas_send_pending(void)
{
	struct mca_btl_pvas_frag *frag, *next;
	int count, sent = 0;
	opal_list_t list;

	OBJ_CONSTRUCT(&list, opal_list_t);
	count = detach_pending(&list);
	OPAL_LIST_FOREACH_SAFE(frag, next, &list, struct mca_btl_pvas_frag)
	{
		opal_list_remove_item(&list, (opal_list_item_t *)frag);
		if (retry(frag)) {
			sent++;
			continue;
		}
		frag->endpoint->stalled = 1;
		opal_list_insert_pos(&list, (opal_list_item_t *)next, (opal_list_item_t *)frag);
	}
	reattach_pending(&list, count - sent);
	OBJ_DESTRUCT(&list);
	return sent;
}

static bool pack(struct opal_convertor_t *convertor, void *to, size_t size)
{
	struct iovec iov = { .iov_base = to, .iov_len = size };
	uint32_t count = 1;

	return opal_convertor_pack(convertor, &iov, &count, &size) >= 0;
}

/* One copy, from the user's buffer to the peer's queue or fast box */
static bool send_immediate(mca_btl_pvas_endpoint_t *ep, struct opal_convertor_t *convertor,
			   const void *header, size_t header_size, size_t payload_size,
			   mca_btl_base_tag_t tag)
{
	struct slot slot;
	char *body;
	void *data;

	if (ep->nr_pending || !reserve(&slot, ep, header_size + payload_size))
		return false;
	body = mca_btl_pvas_record_body(slot.hdr);
	copy_short(body, header, header_size);
	if (payload_size && opal_convertor_need_buffers(convertor)) {
		pack(convertor, body + header_size, payload_size);
	} else if (payload_size) {
		opal_convertor_get_current_pointer(convertor, &data);
		copy_short(body + header_size, data, payload_size);
	}
	commit(&slot, header_size + payload_size, tag, MCA_BTL_PVAS_RECORD_DATA);
	mca_btl_pvas_count(eager, 1);
	request_fbox(ep);
	return true;
}

/*
 * If there is no room, the upper layer keeps the message and tries again. For one that is
 * too long to be copied it needs a fragment.
 */
int mca_btl_pvas_sendi(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep,
		       struct opal_convertor_t *convertor, void *header, size_t header_size,
		       size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
		       mca_btl_base_descriptor_t **descriptor)
{
	const size_t size = header_size + payload_size;
	bool copied = true, sent = false;

	if (mca_btl_pvas_reachable(ep)) {
		OPAL_THREAD_LOCK(mca_btl_pvas_endpoint_lock(ep));
		copied = can_copy(ep, size);
		sent = copied && send_immediate(ep, convertor, header, header_size, payload_size,
						tag);
		OPAL_THREAD_UNLOCK(mca_btl_pvas_endpoint_lock(ep));
	}
	if (OPAL_LIKELY(sent))
		return OPAL_SUCCESS;
	mca_btl_pvas_count(waits, copied);
	if (descriptor)
		*descriptor = copied ? NULL : mca_btl_pvas_alloc(btl, ep, order, size, flags);
	return OPAL_ERR_OUT_OF_RESOURCE;
}
