// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fetching data from the sender's buffer, straight into the receiver's.
 *
 * Both sides copy a long message, as in btl/pvas: the receiver describes the copy in the
 * sender's port, then claims and copies pieces until none is left. The sender, which waits for
 * its message to be fetched, finds the description when it next polls, and claims pieces, too.
 * A sender that is busy elsewhere delays nothing: the receiver waits only for claimed pieces.
 *
 * @left counts the pieces that are not claimed, and can go below zero. A claim keeps the copy
 * from ending until that piece is done. The other members are stored before @left, so a late
 * claim reads those of the copy that its piece belongs to.
 */
#include "ring.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define component mca_pml_pvas_component

/* Iterations of the waiting loop between two checks that the peer is alive */
#define CHECK_INTERVAL 4096

#define MAX_PIECE (256 << 10)
#define PAGE 4096U
#define LINE 64U

/* ---- the sender gets its offer back ---- */

static bool put_returned(struct mca_pml_pvas_out *out, struct mca_pml_pvas_offer *offer)
{
	struct mca_pml_pvas_header *header = mca_pml_pvas_reserve(out, MCA_PML_PVAS_SMALL);

	if (!header)
		return false;
	mca_pml_pvas_fault_point("room to return");
	((struct mca_pml_pvas_returned *)header->data)->offer = offer;
	mca_pml_pvas_store_record(out, header, MCA_PML_PVAS_SMALL, MCA_PML_PVAS_RETURNED);
	return true;
}

/* Always possible, but the stack's line and the offer's are in the sender's cache. */
static void push_returned(struct mca_pml_pvas_peer *peer, struct mca_pml_pvas_offer *offer)
{
	struct mca_pml_pvas_offer **returned = &peer->port->returned;
	struct mca_pml_pvas_offer *first = __atomic_load_n(returned, __ATOMIC_RELAXED);

	do {
		mca_pml_pvas_fault_point("stack read");
		offer->next = first;
		mca_pml_pvas_fault_point("stack entry linked");
	} while (!__atomic_compare_exchange_n(returned, &first, offer, true, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
	mca_pml_pvas_fault_point("offer pushed");
}

/* The receiver has the data, and holds the lock. The offer is not to be used after that. */
void mca_pml_pvas_give_back(struct mca_pml_pvas_peer *peer, struct mca_pml_pvas_offer *offer)
{
	component.touching = true;
	if (!peer->out || !put_returned(peer->out, offer))
		push_returned(peer, offer);
	component.touching = false;
}

/* ---- pieces ---- */

static bool claim_piece(struct mca_pml_pvas_shared_copy *sc)
{
	if (__atomic_load_n(&sc->left, __ATOMIC_RELAXED) <= 0)
		return false;
	mca_pml_pvas_fault_point("piece seen");
	return __atomic_fetch_sub(&sc->left, 1, __ATOMIC_ACQUIRE) > 0;
}

/*
 * One side begins at the first piece, the other at the last one; it has copied @done of them.
 * A rank is at the same end as sender and as receiver: where a buffer is sent back, or used
 * again, each copies what is in its own cache.
 */
static int64_t next_piece(const struct mca_pml_pvas_shared_copy *sc, bool last, int64_t done)
{
	return last ? sc->nr - 1 - done : done;
}

static void copy_piece(const struct mca_pml_pvas_shared_copy *sc, int64_t piece)
{
	size_t at = piece * sc->piece;
	size_t len = sc->size - at < sc->piece ? sc->size - at : sc->piece;

	if (sc->strided)
		mca_pml_pvas_copy_blocks(sc->to, &sc->to_strides, sc->from, &sc->from_strides, at,
					 len);
	else
		mca_btl_pvas_memcpy(sc->to + at, sc->from + at, len);
}

/* The sender's part; the caller holds the lock. */
void mca_pml_pvas_help(void)
{
	struct mca_pml_pvas_shared_copy *sc = &component.port->shared_copy;

	component.touching = true;
	while (claim_piece(sc)) {
		mca_pml_pvas_fault_point("piece claimed by the sender");
		copy_piece(sc, next_piece(sc, sc->sender_is_last, sc->copied_by_sender));
		mca_pml_pvas_fault_point("piece copied by the sender");
		__atomic_add_fetch(&sc->copied_by_sender, 1, __ATOMIC_RELEASE);
		mca_pml_pvas_fault_point("piece counted");
		mca_pml_pvas_count(pieces_helped, 1);
	}
	component.touching = false;
}

/* ---- the receiver's part ---- */

/* Large pieces for a long message, but enough of them that both sides end together */
static size_t piece_size(size_t size)
{
	size_t piece = size / 8 & ~(size_t)(PAGE - 1);

	if (piece > MAX_PIECE)
		return MAX_PIECE;
	return piece > component.share_piece ? piece : component.share_piece;
}

static bool worth_sharing(const struct mca_pml_pvas_request *req, size_t bytes)
{
	return component.share_limit && bytes >= component.share_limit &&
	       req->from != component.own_peer;
}

/* False: the description is in use for another peer, or another thread of this rank */
static bool begin_shared_copy(struct mca_pml_pvas_shared_copy *sc,
			      const struct mca_pml_pvas_shared_copy *copy)
{
	/* These two lines come while we wait for the first one. */
	mca_pml_pvas_prefetch_for_store(&sc->left);
	mca_pml_pvas_prefetch_for_store(&sc->copied_by_sender);
	mca_pml_pvas_fault_point("long message matched");
	if (__atomic_exchange_n(&sc->busy, 1, __ATOMIC_ACQUIRE))
		return false;
	mca_pml_pvas_fault_point("copy owned");
	if (component.first_touch && !copy->strided)
		mca_btl_pvas_touch_pages(copy->to, copy->size);
	sc->size = copy->size;
	sc->piece = copy->piece;
	sc->nr = (copy->size + copy->piece - 1) / copy->piece;
	sc->from = copy->from;
	sc->to = copy->to;
	sc->strided = copy->strided;
	if (copy->strided) {
		sc->from_strides = copy->from_strides;
		sc->to_strides = copy->to_strides;
	}
	sc->copied_by_sender = 0;
	sc->sender_is_last = copy->sender_is_last;
	/* The first piece is ours, and claimed without an atomic operation. */
	mca_pml_pvas_fault_point("copy described");
	__atomic_store_n(&sc->left, sc->nr - 1, __ATOMIC_RELEASE);
	mca_pml_pvas_fault_point("copy shared");
	return true;
}

/* Wait for the pieces that the sender has claimed. */
static void end_shared_copy(struct mca_pml_pvas_peer *peer, int64_t ours)
{
	struct mca_pml_pvas_shared_copy *sc = &peer->port->shared_copy;
	unsigned int polls = 0;

	mca_pml_pvas_fault_point("all pieces claimed");
	while (__atomic_load_n(&sc->copied_by_sender, __ATOMIC_ACQUIRE) != sc->nr - ours) {
		__builtin_ia32_pause();
		if (++polls % CHECK_INTERVAL)
			continue;
		if (!mca_pml_pvas_runs(peer->index, peer->gen))
			mca_pml_pvas_lost(peer->index);
		sched_yield();
	}
	mca_pml_pvas_fault_point("all pieces copied");
	__atomic_store_n(&sc->busy, 0, __ATOMIC_RELEASE);
	mca_pml_pvas_fault_point("copy given up");
}

/* Of a short block, in bytes of whole lines */
static size_t cost_on_side(const struct mca_pml_pvas_strides *s)
{
	const size_t step = labs(s->step[0]);

	return step && step < LINE ? step : LINE;
}

/* In so many bytes of contiguous memory: lines, on both sides if they have little in them */
static size_t cost_of(const struct mca_pml_pvas_shared_copy *copy)
{
	const size_t block = copy->to_strides.block;

	if (!copy->strided)
		return copy->size;
	if (block >= LINE)
		return copy->size * block;
	return copy->size * (cost_on_side(&copy->to_strides) + cost_on_side(&copy->from_strides));
}

/* @copy describes it, but for its pieces. */
static void copy_described(const struct mca_pml_pvas_request *req,
			   struct mca_pml_pvas_shared_copy *copy)
{
	struct mca_pml_pvas_peer *peer = req->from;
	struct mca_pml_pvas_shared_copy *sc = &peer->port->shared_copy;
	const size_t cost = cost_of(copy);
	int64_t ours = 0;

	copy->piece = copy->size;
	copy->sender_is_last = peer->index > component.faults.index;
	if (worth_sharing(req, cost)) {
		copy->piece = piece_size(cost);
		if (copy->strided)
			copy->piece = copy->piece * copy->size / cost + 1;
	}
	if (copy->piece >= copy->size || !begin_shared_copy(sc, copy)) {
		copy->piece = copy->size;
		copy_piece(copy, 0);
		return;
	}
	do {
		copy_piece(copy, next_piece(sc, !sc->sender_is_last, ours));
		ours++;
		mca_pml_pvas_fault_point("piece copied by the receiver");
	} while (claim_piece(sc));
	end_shared_copy(peer, ours);
}

static void copy_contiguous(const struct mca_pml_pvas_request *req, char *to, const char *from,
			    size_t bytes)
{
	struct mca_pml_pvas_shared_copy copy;

	if (!worth_sharing(req, bytes)) {
		mca_btl_pvas_memcpy(to, from, bytes);
		return;
	}
	copy.strided = false;
	copy.size = bytes;
	copy.from = from;
	copy.to = to;
	copy_described(req, &copy);
}

/* False: one of the layouts is of another kind, or the end of the data is not one of a block */
static bool copy_strided(const struct mca_pml_pvas_request *req, size_t bytes)
{
	const struct mca_pml_pvas_offer *offer = req->fetch;
	struct mca_pml_pvas_shared_copy copy;

	if (!mca_pml_pvas_find_strides(offer->type, offer->count, &copy.from_strides) ||
	    !mca_pml_pvas_find_strides(req->type, req->count, &copy.to_strides) ||
	    !mca_pml_pvas_match_blocks(&copy.from_strides, &copy.to_strides) ||
	    bytes % copy.to_strides.block)
		return false;
	copy.strided = true;
	copy.size = bytes / copy.to_strides.block;
	copy.from = offer->buf;
	copy.to = req->buf;
	copy_described(req, &copy);
	return true;
}

/*
 * Before something is stored in the memory of a peer, and after data were read there: no fault
 * tells that the peer has executed another program, if that has memory in the same place.
 */
void mca_pml_pvas_expect_same(const struct mca_pml_pvas_peer *peer)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (!mca_pml_pvas_runs(peer->index, peer->gen))
		mca_pml_pvas_lost(peer->index);
}

/* All data of a receive; no lock is held. */
void mca_pml_pvas_fetch(struct mca_pml_pvas_request *req)
{
	const struct mca_pml_pvas_offer *offer = req->fetch;
	const size_t sent = req->super.req_status._ucount;
	const size_t bytes = sent < req->bytes ? sent : req->bytes;
	const char *from = req->direct;
	char *to = NULL;

	mca_pml_pvas_fault_point("reference matched");
	mca_pml_pvas_begin_fetch();
	mca_pml_pvas_expect_same(req->from);
	if (mca_pml_pvas_contiguous(req->type, req->count)) {
		if (!from && mca_pml_pvas_contiguous(offer->type, offer->count))
			from = (const char *)offer->buf + offer->type->super.true_lb;
		to = (char *)req->buf + req->type->super.true_lb;
	}
	if (to && from)
		copy_contiguous(req, to, from, bytes);
	else if (bytes && !copy_strided(req, bytes))
		mca_coll_pvas_copy_data(req->buf, req->count, req->type, offer->buf, offer->count,
					offer->type);
	mca_pml_pvas_expect_same(req->from);
	mca_pml_pvas_end_fetch();
	mca_pml_pvas_fault_point("data fetched");
	mca_pml_pvas_lock();
	mca_pml_pvas_give_back(req->from, req->fetch);
	mca_pml_pvas_unlock();
	req->fetch = NULL;
	mca_pml_pvas_count(fetched, 1);
	mca_pml_pvas_count(bytes_fetched, bytes);
}
