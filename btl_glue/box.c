// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fast boxes: a ring of one's own for each of the busiest peers.
 *
 * A peer that has sent enough asks; if there is room the reader makes a box
 * and writes its address where the peer said. If there is none, boxes that
 * nobody used since the last time are asked back, and the peer asks again.
 */
#include "btl_pvas.h"

#define component mca_btl_pvas_component

#define RECORDS_AT_ONCE 16

static size_t box_bytes(void)
{
	return sizeof(struct pvas_box) + component.box_size;
}

/* ---- the reader ---- */

static void close_idle(void)
{
	unsigned int i;

	for (i = 0; i < component.nr_boxes; i++) {
		struct pvas_box *box = component.boxes[i];

		if (box->used_to == box->ring.head)
			__atomic_store_n(&box->closing, 1, __ATOMIC_RELAXED);
		box->used_to = box->ring.head;
	}
}

void pvas_box_asked(uint32_t from, uint32_t gen, struct pvas_box **offer)
{
	struct pvas_box *box;

	if (component.nr_boxes >= component.box_max) {
		close_idle();
		return;
	}
	if (!pvas_alive(from, gen))
		return;
	box = pvas_map(box_bytes());
	if (!box)
		return;
	pvas_ring_init(&box->ring, box->data, component.box_size);
	box->state = PVAS_BOX_OFFERED;
	box->at_once = 1;
	box->from = from;
	box->gen = gen;
	/* Not idle before its writer has had the time to begin */
	box->used_to = UINT64_MAX;
	component.boxes[component.nr_boxes++] = box;
	pvas_count(fast_boxes, 1);
	__atomic_store_n(offer, box, __ATOMIC_RELEASE);
}

/*
 * Looking for one record more than there is costs a trip to the writer's core,
 * which has just cleared that place: in a ping-pong, a good part of the answer's
 * time. So more than one are expected only if there were as many as expected.
 */
static void expect(struct pvas_box *box, int found)
{
	if (!found)
		box->at_once = 1;
	else if (found == box->at_once && found < RECORDS_AT_ONCE)
		box->at_once = 2 * found;
}

static int poll_box(struct pvas_box *box, void (*deliver)(union pvas_head *head))
{
	union pvas_head *head;
	int count;

	for (count = 0; count < box->at_once; count++) {
		head = pvas_ring_peek(&box->ring, false);
		if (!head)
			break;
		if (OPAL_UNLIKELY(box->state == PVAS_BOX_OFFERED)) {
			/* Its writer's earlier records are still in the queue. */
			if (component.port->queue.head < box->after)
				break;
			box->state = PVAS_BOX_USED;
		}
		deliver(head);
		pvas_ring_drop(&box->ring, head, false);
	}
	expect(box, count);
	return count;
}

static bool is_over(struct pvas_box *box)
{
	return __atomic_load_n(&box->abandoned, __ATOMIC_ACQUIRE) ||
	       (box->closing && !pvas_alive(box->from, box->gen));
}

int pvas_box_poll(void (*deliver)(union pvas_head *head))
{
	unsigned int i;
	int count = 0;

	for (i = 0; i < component.nr_boxes; i++) {
		struct pvas_box *box = component.boxes[i];
		int n = poll_box(box, deliver);

		count += n;
		if (OPAL_LIKELY(n || !box->closing) || !is_over(box))
			continue;
		component.boxes[i--] = component.boxes[--component.nr_boxes];
		pvas_unmap(box, box_bytes());
		pvas_count(fast_boxes, -1);
	}
	return count;
}

/* ---- the writer; the caller holds the endpoint's lock ---- */

bool pvas_box_enter(struct mca_btl_base_endpoint_t *ep)
{
	struct pvas_box *box = __atomic_load_n(&ep->offer, __ATOMIC_ACQUIRE);

	if (OPAL_LIKELY(!box))
		return false;
	ep->offer = NULL;
	ep->asked = 0;
	ep->sent = 0;
	ep->tail = 0;
	ep->seen = 0;
	box->after = ep->queue_end;
	ep->box = box;
	return true;
}

/*
 * Only when all in it was read: what is sent next goes into the queue, and
 * must not overtake. True: there is no box any more.
 */
bool pvas_box_leave(struct mca_btl_base_endpoint_t *ep)
{
	struct pvas_box *box = ep->box;

	if (OPAL_LIKELY(!__atomic_load_n(&box->closing, __ATOMIC_RELAXED)) ||
	    __atomic_load_n(&box->ring.head, __ATOMIC_ACQUIRE) != ep->tail)
		return false;
	ep->box = NULL;
	__atomic_store_n(&box->abandoned, 1, __ATOMIC_RELEASE);
	return true;
}
