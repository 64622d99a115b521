// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copying from a peer's memory.
 *
 * Both sides copy a long message. The receiver describes the copy in the sender's port
 * (struct mca_btl_pvas_shared_copy), then claims and copies pieces until none is left.
 * The sender, which waits for its message to be fetched, finds the description when it
 * next polls, and claims pieces, too. A sender that is busy elsewhere claims none, and
 * delays nothing: the receiver waits only for pieces that the sender has claimed.
 *
 * @left counts the pieces that are not claimed, and can go below zero. A claim keeps
 * the copy from ending until that piece is done. The other members are stored before
 * @left, so a late claim reads those of the copy that its piece belongs to.
 */
#include "btl_pvas.h"

#include <sched.h>
#include <string.h>

#define component mca_btl_pvas_component

/* Iterations of the waiting loop between two checks that the peer is alive */
#define CHECK_INTERVAL 4096

#define MAX_PIECE (256 << 10)

static bool claim_piece(struct mca_btl_pvas_shared_copy *sc, int64_t *piece)
{
	if (__atomic_load_n(&sc->left, __ATOMIC_RELAXED) <= 0)
		return false;
	*piece = __atomic_fetch_sub(&sc->left, 1, __ATOMIC_ACQUIRE) - 1;
	return *piece >= 0;
}

static void copy_piece(const struct mca_btl_pvas_shared_copy *sc, int64_t piece)
{
	size_t at = piece * sc->piece;
	size_t len = sc->size - at < sc->piece ? sc->size - at : sc->piece;

	mca_btl_pvas_memcpy(sc->to + at, sc->from + at, len);
}

/* ---- the sender ---- */

static void help(struct mca_btl_pvas_shared_copy *sc)
{
	int64_t piece;

	while (claim_piece(sc, &piece)) {
		copy_piece(sc, piece);
		__atomic_add_fetch(&sc->copied_by_sender, 1, __ATOMIC_RELEASE);
		mca_btl_pvas_count(pieces_helped, 1);
	}
}

/* If the receiver has ended, a store faults: abandon the copy. */
void mca_btl_pvas_copy_help(void)
{
	sigjmp_buf back;

	if (!sigsetjmp(back, 0)) {
		mca_btl_pvas_fault_return = &back;
		help(&component.port->shared_copy);
	}
	mca_btl_pvas_fault_return = NULL;
}

/* ---- the receiver ---- */

/* Large pieces for a long message, but enough of them that both sides end together */
static size_t piece_size(size_t size)
{
	size_t piece = size / 8 & ~(size_t)(MCA_BTL_PVAS_PAGE - 1);

	if (piece > MAX_PIECE)
		return MAX_PIECE;
	return piece > component.share_piece ? piece : component.share_piece;
}

static struct mca_btl_pvas_shared_copy *begin_shared_copy(struct mca_btl_base_endpoint_t *ep,
							  char *to, const char *from, size_t size)
{
	struct mca_btl_pvas_shared_copy *sc = &ep->port->shared_copy;

	/* In use by another peer, or by another thread: copy alone. */
	if (__atomic_exchange_n(&sc->busy, 1, __ATOMIC_ACQUIRE))
		return NULL;
	if (component.first_touch)
		mca_btl_pvas_touch_pages(to, size);
	sc->to = to;
	sc->from = from;
	sc->size = size;
	sc->piece = piece_size(size);
	sc->copied_by_sender = 0;
	sc->nr = (size + sc->piece - 1) / sc->piece;
	__atomic_store_n(&sc->left, sc->nr, __ATOMIC_RELEASE);
	return sc;
}

/* Wait for the pieces that the peer has claimed. False: it has ended, so they are lost. */
static bool end_shared_copy(struct mca_btl_base_endpoint_t *ep, struct mca_btl_pvas_shared_copy *sc,
			    int64_t ours)
{
	unsigned int polls = 0;

	while (__atomic_load_n(&sc->copied_by_sender, __ATOMIC_ACQUIRE) != sc->nr - ours) {
		__builtin_ia32_pause();
		if (++polls % CHECK_INTERVAL)
			continue;
		if (!mca_btl_pvas_peer_alive(ep->index, ep->gen))
			return false;
		sched_yield();
	}
	__atomic_store_n(&sc->busy, 0, __ATOMIC_RELEASE);
	return true;
}

static bool copy_with_sender(struct mca_btl_base_endpoint_t *ep,
			     struct mca_btl_pvas_shared_copy *sc)
{
	int64_t piece, ours = 0;

	while (claim_piece(sc, &piece)) {
		copy_piece(sc, piece);
		ours++;
	}
	return end_shared_copy(ep, sc, ours);
}

static bool is_shared(const struct mca_btl_base_endpoint_t *ep, size_t size)
{
	const unsigned int limit = component.limits[ep->distance].share;

	return limit && size >= limit;
}

bool mca_btl_pvas_copy_from(struct mca_btl_base_endpoint_t *ep, void *to, const void *from,
			    size_t size)
{
	struct mca_btl_pvas_shared_copy *sc = NULL;

	if (ep && is_shared(ep, size))
		sc = begin_shared_copy(ep, to, from, size);
	if (sc)
		return copy_with_sender(ep, sc);
	mca_btl_pvas_memcpy(to, from, size);
	return true;
}
