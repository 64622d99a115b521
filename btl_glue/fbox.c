// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fast boxes: each of the busiest peers has a ring of its own.
 *
 * A peer that has sent enough messages requests a fast box. If the limit allows it,
 * the reader creates one and stores its address where the request says. The reader
 * closes a fast box that carried nothing for some time, or nothing since the previous
 * request that had to be refused. The writer releases it when it next sends or checks
 * its peers, and then the reader frees it.
 */
#include "btl_pvas.h"

#include <stdlib.h>

#define component mca_btl_pvas_component

/* ---- the reader ---- */

/*
 * Close each fast box that carried nothing since the previous check of this kind.
 * The kinds are separate: a burst of requests must not make a box look idle to the timer.
 */
static void close_idle(enum mca_btl_pvas_idle_check check)
{
	unsigned int i;

	for (i = 0; i < component.nr_fboxes_in; i++) {
		struct mca_btl_pvas_fbox_in *in = &component.fbox_in[i];
		uint64_t head = in->fbox->ring.head;

		if (in->last_head[check] == head) {
			in->closing = true;
			__atomic_store_n(&in->fbox->ring.closing, 1, __ATOMIC_RELAXED);
		}
		in->last_head[check] = head;
	}
}

void mca_btl_pvas_close_idle_fboxes(void)
{
	close_idle(MCA_BTL_PVAS_IDLE_ON_TIMER);
}

/* A peer can repeat its request before it sees the fast box. */
static bool has_fbox(uint32_t from, uint32_t gen)
{
	unsigned int i;

	for (i = 0; i < component.nr_fboxes_in; i++)
		if (component.fbox_in[i].from == from && component.fbox_in[i].gen == gen)
			return true;
	return false;
}

/* Less than a page comes from the heap. */
static struct mca_btl_pvas_fbox *new_fbox(size_t bytes)
{
	struct mca_btl_pvas_fbox *fbox;

	if (bytes < MCA_BTL_PVAS_PAGE) {
		fbox = aligned_alloc(MCA_BTL_PVAS_CACHE_LINE, bytes);
		mca_btl_pvas_account(fbox ? bytes : 0);
	} else {
		fbox = mca_btl_pvas_map(bytes);
	}
	if (!fbox)
		return NULL;
	mca_btl_pvas_ring_init(&fbox->ring, fbox->data, bytes - sizeof(*fbox));
	/* The writer's earlier fragments may still be in the queue. */
	fbox->ring.needs_barrier = 1;
	return fbox;
}

static void delete_fbox(struct mca_btl_pvas_fbox *fbox, size_t bytes)
{
	if (bytes < MCA_BTL_PVAS_PAGE) {
		free(fbox);
		mca_btl_pvas_account(-(long)bytes);
	} else {
		mca_btl_pvas_unmap(fbox, bytes);
	}
}

/* If the peer has ended meanwhile, the fault handler returns here: false. */
static bool offer_fbox(struct mca_btl_pvas_fbox **offer, struct mca_btl_pvas_fbox *fbox)
{
	volatile bool done = false;
	sigjmp_buf back;

	if (!sigsetjmp(back, 0)) {
		mca_btl_pvas_fault_return = &back;
		__atomic_store_n(offer, fbox, __ATOMIC_RELEASE);
		done = true;
	}
	mca_btl_pvas_fault_return = NULL;
	return done;
}

/* One more, or one less. Only the progress function changes their number. */
static void count_fboxes(int change, size_t bytes)
{
	component.nr_fboxes_in += change;
	component.fbox_bytes += change * (long)bytes;
	mca_btl_pvas_count(fast_boxes, change);
}

void mca_btl_pvas_fbox_requested(uint32_t from, uint32_t gen, struct mca_btl_pvas_fbox **offer)
{
	const size_t bytes = mca_btl_pvas_next_fbox_bytes();
	struct mca_btl_pvas_fbox *fbox;

	if (has_fbox(from, gen))
		return;
	if (!bytes) {
		close_idle(MCA_BTL_PVAS_IDLE_ON_REQUEST);
		return;
	}
	if (!mca_btl_pvas_peer_alive(from, gen))
		return;
	fbox = new_fbox(bytes);
	if (!fbox)
		return;
	component.fbox_in[component.nr_fboxes_in] = (struct mca_btl_pvas_fbox_in) {
		.fbox = fbox,
		.bytes = bytes,
		.batch = 1,
		.from = from,
		.gen = gen,
		/* Not idle at the first check: its writer has just been told */
		.last_head = { UINT64_MAX, UINT64_MAX },
	};
	if (offer_fbox(offer, fbox))
		count_fboxes(1, bytes);
	else
		delete_fbox(fbox, bytes);
}

static bool is_released(const struct mca_btl_pvas_fbox_in *in)
{
	return __atomic_load_n(&in->fbox->ring.released, __ATOMIC_ACQUIRE) ||
	       !mca_btl_pvas_peer_alive(in->from, in->gen);
}

/* Free a closed fast box once it is released. True: the last of the array has taken its place. */
bool mca_btl_pvas_fbox_reclaim(struct mca_btl_pvas_fbox_in *in)
{
	if (!is_released(in))
		return false;
	delete_fbox(in->fbox, in->bytes);
	count_fboxes(-1, in->bytes);
	*in = component.fbox_in[component.nr_fboxes_in];
	return true;
}

/* ---- the writer; the caller holds the endpoint's lock ---- */

/*
 * Only an empty fast box is released: the next fragment goes into the queue and must
 * not overtake. True: there is no fast box any more.
 */
bool mca_btl_pvas_fbox_release(struct mca_btl_base_endpoint_t *ep, struct mca_btl_pvas_fbox *fbox)
{
	if (!mca_btl_pvas_fbox_is_closing(fbox) || !mca_btl_pvas_ring_empty(&fbox->ring))
		return false;
	ep->fbox_out = NULL;
	ep->sent = 0;
	__atomic_store_n(&fbox->ring.released, 1, __ATOMIC_RELEASE);
	return true;
}
