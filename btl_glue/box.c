// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fast boxes: a ring of one's own for each of the busiest peers.
 *
 * A peer that has sent enough asks; if there is room the reader makes a box
 * and writes its address where the peer said. A box is asked back if nothing
 * came through it for some time, or since somebody asked in vain; the peer
 * leaves it when it next sends or looks after its peers.
 */
#include "btl_pvas.h"

#define component mca_btl_pvas_component

/* ---- the reader ---- */

/*
 * Ask back each box through which nothing came since the last look. Looks because
 * somebody asked in vain, and those because time has passed, are apart.
 */
static void close_idle(enum pvas_look look)
{
	unsigned int i;

	for (i = 0; i < component.nr_given; i++) {
		struct pvas_given *given = &component.given[i];
		uint64_t head = given->box->ring.head;

		if (given->head_at[look] == head) {
			given->closing = true;
			__atomic_store_n(&given->box->closing, 1, __ATOMIC_RELAXED);
		}
		given->head_at[look] = head;
	}
}

void pvas_box_tick(void)
{
	close_idle(PVAS_LOOK_TICKED);
}

/* It may ask again before it sees what it was given. */
static bool has_box(uint32_t from, uint32_t gen)
{
	unsigned int i;

	for (i = 0; i < component.nr_given; i++)
		if (component.given[i].from == from && component.given[i].gen == gen)
			return true;
	return false;
}

static struct pvas_box *make_box(void)
{
	struct pvas_box *box = pvas_map(component.box_size);

	if (!box)
		return NULL;
	pvas_ring_init(&box->ring, box->data, component.box_size - sizeof(*box));
	/* What its writer sent before is in the queue. */
	box->behind = 1;
	return box;
}

void pvas_box_asked(uint32_t from, uint32_t gen, struct pvas_box **offer)
{
	struct pvas_box *box;

	if (has_box(from, gen))
		return;
	if (component.nr_given >= component.box_limit) {
		close_idle(PVAS_LOOK_ASKED);
		return;
	}
	if (!pvas_alive(from, gen))
		return;
	box = make_box();
	if (!box)
		return;
	component.given[component.nr_given++] = (struct pvas_given) {
		.box = box,
		.at_once = 1,
		.from = from,
		.gen = gen,
		/* Not idle before its writer has had the time to begin */
		.head_at = { UINT64_MAX, UINT64_MAX },
	};
	pvas_count(fast_boxes, 1);
	__atomic_store_n(offer, box, __ATOMIC_RELEASE);
}

static bool is_over(const struct pvas_given *given)
{
	return __atomic_load_n(&given->box->abandoned, __ATOMIC_ACQUIRE) ||
	       !pvas_alive(given->from, given->gen);
}

int pvas_box_poll(void)
{
	unsigned int i;
	int count = 0;

	for (i = 0; i < component.nr_given; i++) {
		struct pvas_given *given = &component.given[i];
		int n = pvas_read(&given->box->ring, &given->at_once);

		count += n;
		if (OPAL_LIKELY(n || !given->closing) || !is_over(given))
			continue;
		pvas_unmap(given->box, component.box_size);
		pvas_count(fast_boxes, -1);
		*given = component.given[--component.nr_given];
		i--;
	}
	return count;
}

/* ---- the writer; the caller holds the endpoint's lock ---- */

/*
 * Only when all in it was read: what is sent next goes into the queue, and
 * must not overtake. True: there is no box any more.
 */
bool pvas_box_leave(struct mca_btl_base_endpoint_t *ep, struct pvas_box *box)
{
	if (OPAL_LIKELY(!__atomic_load_n(&box->closing, __ATOMIC_RELAXED)) ||
	    !pvas_ring_empty(&box->ring))
		return false;
	ep->box = NULL;
	ep->sent = 0;
	__atomic_store_n(&box->abandoned, 1, __ATOMIC_RELEASE);
	return true;
}
