// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copying between our memory and a peer's.
 *
 * A long message is copied by both sides. The receiver puts a *job* into the
 * sender's port, and takes pieces of it until none is left; the sender, which
 * waits for its message to be fetched, finds the job when it next polls, and
 * takes pieces too. If it is busy elsewhere it takes none, and nobody waits
 * for it: only a piece that it has begun is waited for.
 *
 * @left of a job counts the pieces that nobody has taken, and goes below zero.
 * Who takes one by an atomic step holds the job: it is not over before that
 * piece is done. Its other members are stored before @left, so whoever got a
 * piece reads what belongs to it, no matter how late it comes.
 */
#include "btl_pvas.h"

#include <sched.h>
#include <string.h>

#define component mca_btl_pvas_component

/* Turns of a waiting loop between two looks at whether the peer still lives */
#define LOOK_EVERY 4096

#define PAGE 4096
#define LARGEST_PIECE (256 << 10)

static bool take_piece(struct pvas_job *job, int64_t *piece)
{
	if (__atomic_load_n(&job->left, __ATOMIC_RELAXED) <= 0)
		return false;
	*piece = __atomic_fetch_sub(&job->left, 1, __ATOMIC_ACQUIRE) - 1;
	return *piece >= 0;
}

static void copy_piece(const struct pvas_job *job, int64_t piece)
{
	size_t at = piece * job->piece;
	size_t len = job->size - at < job->piece ? job->size - at : job->piece;

	memcpy(job->to + at, job->from + at, len);
}

/* ---- the sender ---- */

static void help(struct pvas_job *job)
{
	int64_t piece;

	while (take_piece(job, &piece)) {
		copy_piece(job, piece);
		__atomic_add_fetch(&job->helped, 1, __ATOMIC_RELEASE);
		pvas_count(pieces_helped, 1);
	}
}

/* The receiver's death must not be ours: what it left of the job is nobody's. */
void pvas_copy_help(void)
{
	sigjmp_buf back;

	if (!sigsetjmp(back, 0)) {
		pvas_may_fault = &back;
		help(&component.port->job);
	}
	pvas_may_fault = NULL;
}

/* ---- the receiver ---- */

/* Few steps for a long message, but enough of them that both end together. */
static size_t piece_of(size_t size)
{
	size_t piece = size / 8 & ~(size_t)(PAGE - 1);

	if (piece > LARGEST_PIECE)
		return LARGEST_PIECE;
	return piece > component.share_piece ? piece : component.share_piece;
}

static struct pvas_job *begin_job(struct mca_btl_base_endpoint_t *ep, char *to, const char *from,
				  size_t size)
{
	struct pvas_job *job = &ep->port->job;

	/* Another peer's, or another of our threads': we copy alone. */
	if (__atomic_exchange_n(&job->busy, 1, __ATOMIC_ACQUIRE))
		return NULL;
	job->to = to;
	job->from = from;
	job->size = size;
	job->piece = piece_of(size);
	job->helped = 0;
	job->nr = (size + job->piece - 1) / job->piece;
	__atomic_store_n(&job->left, job->nr, __ATOMIC_RELEASE);
	return job;
}

/* The pieces that the peer has begun. False: it is gone, and so is what it had to copy. */
static bool end_job(struct mca_btl_base_endpoint_t *ep, struct pvas_job *job, int64_t ours)
{
	unsigned int turns = 0;

	while (__atomic_load_n(&job->helped, __ATOMIC_ACQUIRE) != job->nr - ours) {
		__builtin_ia32_pause();
		if (++turns % LOOK_EVERY)
			continue;
		if (!pvas_alive(ep->index, ep->gen))
			return false;
		sched_yield();
	}
	__atomic_store_n(&job->busy, 0, __ATOMIC_RELEASE);
	return true;
}

static bool copy_together(struct mca_btl_base_endpoint_t *ep, struct pvas_job *job)
{
	int64_t piece, ours = 0;

	while (take_piece(job, &piece)) {
		copy_piece(job, piece);
		ours++;
	}
	return end_job(ep, job, ours);
}

bool pvas_copy_from(struct mca_btl_base_endpoint_t *ep, void *to, const void *from, size_t size)
{
	struct pvas_job *job = NULL;

	if (ep && component.share_limit && size >= component.share_limit)
		job = begin_job(ep, to, from, size);
	if (job)
		return copy_together(ep, job);
	memcpy(to, from, size);
	return true;
}
