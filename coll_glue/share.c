// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Long copies between a root and another rank are made by both, as in btl/pvas. The root
 * publishes its buffers; the other rank posts where its data are, or are to be, claims pieces
 * and copies them. The root claims some, too, if it has nothing else to do.
 */
#include "post.h"

#include <string.h>

#define component mca_coll_pvas_component

#define PAGE 4096
#define LEAST_PIECE (16 << 10)
#define MOST_PIECE (256 << 10)

/* Blocks of a scatter are shared from so many times @share_copy on. */
#define LEAST_SCATTER 4

/* Where contiguous data begin; NULL if these are not */
static char *contiguous(const struct mca_coll_pvas_piece *piece)
{
	const opal_datatype_t *type = &piece->type->super;

	if (!(type->flags & OPAL_DATATYPE_FLAG_CONTIGUOUS) ||
	    (piece->count > 1 && !(type->flags & OPAL_DATATYPE_FLAG_NO_GAPS)))
		return NULL;
	return piece->at + type->true_lb;
}

/* Few, large pieces, but enough of them that both end at about the same time */
static size_t piece_bytes(size_t bytes)
{
	const size_t piece = bytes / 8 / PAGE * PAGE;

	if (piece > MOST_PIECE)
		return MOST_PIECE;
	return piece > LEAST_PIECE ? piece : LEAST_PIECE;
}

/* Copy the next piece between the poster's memory and @other; false: there is none. */
static bool copy_piece(struct mca_coll_pvas_share *share, char *other, bool to_poster)
{
	size_t offset, n;

	if (atomic_load_explicit(&share->claimed, memory_order_relaxed) >= share->bytes)
		return false;
	offset = atomic_fetch_add_explicit(&share->claimed, share->piece, memory_order_relaxed);
	if (offset >= share->bytes)
		return false;
	n = share->bytes - offset < share->piece ? share->bytes - offset : share->piece;
	if (to_poster)
		mca_btl_pvas_memcpy(share->at + offset, other + offset, n);
	else
		mca_btl_pvas_memcpy(other + offset, share->at + offset, n);
	mca_coll_pvas_count(bytes_copied, n);
	atomic_fetch_add_explicit(&share->copied, n, memory_order_release);
	return true;
}

/* Is it worth while to copy this together? A root that has no processor can't help. */
bool mca_coll_pvas_is_long(const struct mca_coll_pvas_piece *ours)
{
	return !component.yield && contiguous(ours) &&
	       ours->count * ours->type->super.size >= component.share_copy;
}

/*
 * A rank that is not the root: copy @ours from or to what the root has published in @slot. False
 * if that is not to be shared.
 */
bool mca_coll_pvas_share(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_line *slot,
			 const struct mca_coll_pvas_piece *ours, int root, bool receive)
{
	const size_t bytes = ours->count * ours->type->super.size;
	const unsigned int kind = mca_coll_pvas_kind(slot);
	struct mca_coll_pvas_piece theirs;
	struct mca_coll_pvas_share *share;
	char *other;

	if (!mca_coll_pvas_is_long(ours) ||
	    (kind != MCA_COLL_PVAS_BUFFERS && kind != MCA_COLL_PVAS_BUFFERS_SAME))
		return false;
	/* The root of a scatter, unlike that of a broadcast, has a block of its own to copy. */
	if (receive && kind == MCA_COLL_PVAS_BUFFERS &&
	    bytes < LEAST_SCATTER * component.share_copy)
		return false;
	theirs = mca_coll_pvas_piece(&slot->buffers, kind, m->rank);
	other = contiguous(&theirs);
	if (!other || theirs.count * theirs.type->super.size != bytes)
		return false;
	share = mca_coll_pvas_post_share(m, contiguous(ours), bytes, piece_bytes(bytes), root);
	while (copy_piece(share, other, receive))
		;
	mca_coll_pvas_wait_until(m, atomic_load_explicit(&share->copied,
							 memory_order_acquire) == bytes);
	return true;
}

/*
 * The root: copy a piece that rank @r needs from or has for @ours; false: there is none. One look
 * at the line: a rank that shares nothing may be operations ahead, and share something else there.
 * One that shares waits for us.
 */
bool mca_coll_pvas_help(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_buffers *ours,
			enum mca_coll_pvas_kind kind, int r, bool send)
{
	struct mca_coll_pvas_line *line = mca_coll_pvas_line(m, r);
	struct mca_coll_pvas_piece piece;

	if (atomic_load_explicit(&line->word, memory_order_acquire) !=
	    (m->op << 8 | MCA_COLL_PVAS_SHARE))
		return false;
	piece = mca_coll_pvas_piece(ours, kind, r);
	return copy_piece(&line->share, contiguous(&piece), send);
}

/* The root: help all others until they have finished. */
void mca_coll_pvas_help_all(struct mca_coll_pvas_module *m,
			    const struct mca_coll_pvas_buffers *ours,
			    enum mca_coll_pvas_kind kind)
{
	unsigned int polls = 0;
	bool busy, helped;
	int r;

	do {
		busy = helped = false;
		for (r = 0; r < m->size; r++) {
			if (r == m->rank ||
			    atomic_load_explicit(&mca_coll_pvas_line(m, r)->finished,
						 memory_order_acquire) >= m->op)
				continue;
			busy = true;
			helped |= mca_coll_pvas_help(m, ours, kind, r, true);
		}
		if (busy && !helped)
			mca_coll_pvas_pause(m, &polls);
	} while (busy);
}
