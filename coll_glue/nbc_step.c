// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The steps of a non-blocking operation, none of which waits: post our data; fetch others', or
 * combine all; finish; and be complete when those who read our buffers have finished.
 */
#include "nbc.h"
#include "neighbor.h"

static struct mca_coll_pvas_line *line_of(const struct mca_coll_pvas_request *r, int rank)
{
	return mca_coll_pvas_post_of(mca_coll_pvas_nbc_posts(r), rank);
}

/* Have all ranks finished an operation that used the same lines? */
static bool all_finished(struct mca_coll_pvas_request *r, uint64_t op)
{
	while (r->at < r->m->size &&
	       atomic_load_explicit(&line_of(r, r->at)->finished, memory_order_acquire) >= op)
		r->at++;
	return r->at == r->m->size;
}

/* ---- posting ---- */

static bool in_blocks(const struct mca_coll_pvas_call *call)
{
	return call->from.counts || call->from_kind == MCA_COLL_PVAS_BUFFERS_W ||
	       call->from_kind == MCA_COLL_PVAS_BUFFERS_WA ||
	       call->readers == MCA_COLL_PVAS_NEIGHBORS;
}

/* Post our data as they are, if they are short; false: they were not. */
static bool post_copy(struct mca_coll_pvas_request *r, struct mca_coll_pvas_line *line)
{
	const struct mca_coll_pvas_call *call = &r->call;
	struct mca_coll_pvas_record record = mca_coll_pvas_nbc_annex(r);
	const struct mca_coll_pvas_blocks blocks = {
		.buffers = &call->from, .kind = call->from_kind, .nr = call->nr_blocks,
		.receivers = call->readers == MCA_COLL_PVAS_NEIGHBORS ?
				     r->m->neighbors->destinations : NULL,
	};
	size_t bytes;

	if (call->described)
		return false;
	if (in_blocks(call) && call->from_kind != MCA_COLL_PVAS_BUFFERS_SAME) {
		if (!mca_coll_pvas_blocks_fit(&blocks, record.length))
			return false;
		mca_coll_pvas_copy_blocks_in(line, r->op, &record, &blocks);
		return true;
	}
	bytes = call->from.count * call->nr_blocks *
		((const struct ompi_datatype_t *)call->from.type)->super.size;
	if (bytes > record.length && bytes > MCA_COLL_PVAS_INLINE)
		return false;
	record.length = bytes;
	mca_coll_pvas_copy_in(line, r->op, &record, call->from.buf,
			      call->from.count * call->nr_blocks, call->from.type);
	return true;
}

static void note(struct mca_coll_pvas_request *r, int rc)
{
	if (rc)
		r->rc = rc;
}

static void copy_own(struct mca_coll_pvas_request *r)
{
	const struct mca_coll_pvas_call *call = &r->call;
	const struct mca_coll_pvas_piece from =
		mca_coll_pvas_piece(&call->from, call->from_kind, r->m->rank);
	const struct mca_coll_pvas_piece to =
		mca_coll_pvas_piece(&call->to, call->to_kind, r->m->rank);

	note(r, mca_coll_pvas_copy(to.at, to.count, to.type, from.at, from.count, from.type));
}

/* False: an earlier operation still uses the line. */
static bool post(struct mca_coll_pvas_request *r)
{
	const unsigned int nr_lines = r->m->nbc.nr_lines;
	struct mca_coll_pvas_line *line = line_of(r, r->m->rank);

	if (r->op > nr_lines && !all_finished(r, r->op - nr_lines))
		return false;
	r->at = 0;
	if (r->call.readers != MCA_COLL_PVAS_NONE)
		r->copied = post_copy(r, line);
	if (r->call.readers != MCA_COLL_PVAS_NONE && !r->copied)
		mca_coll_pvas_describe(line, r->op, &r->call.from, r->call.from_kind);
	if (r->call.own)
		copy_own(r);
	r->state = MCA_COLL_PVAS_POSTED;
	return true;
}

/* ---- fetching ---- */

int mca_coll_pvas_nr_sources(const struct mca_coll_pvas_module *m, int sources)
{
	if (sources == MCA_COLL_PVAS_NONE)
		return 0;
	if (sources == MCA_COLL_PVAS_NEIGHBORS)
		return m->neighbors->nr_sources;
	return sources == MCA_COLL_PVAS_ALL ? m->size - 1 : 1;
}

/* The @i-th source; ranks begin with different ones. */
static int source_at(const struct mca_coll_pvas_request *r, int i)
{
	const int sources = r->call.sources;

	if (sources == MCA_COLL_PVAS_NEIGHBORS)
		return r->m->neighbors->sources[i];
	return sources == MCA_COLL_PVAS_ALL ? (r->m->rank + 1 + i) % r->m->size : sources;
}

/* Which block of what our @i-th source has posted is for us? Negative: none */
static int block_of(struct mca_coll_pvas_request *r, const struct mca_coll_pvas_line *line, int i)
{
	struct mca_coll_pvas_neighbors *n = r->m->neighbors;
	const struct mca_coll_pvas_neighbors *theirs;

	if (r->call.sources != MCA_COLL_PVAS_NEIGHBORS ||
	    r->call.from_kind == MCA_COLL_PVAS_BUFFERS_SAME)
		return r->call.block;
	/* In a distributed graph, the source's list is with its buffers. */
	if (n->block[i] < 0 && !mca_coll_pvas_was_copied(mca_coll_pvas_kind(line))) {
		theirs = (const struct mca_coll_pvas_neighbors *)line->buffers.result;
		n->block[i] = mca_coll_pvas_find_block(r->m, i, theirs->destinations,
						       theirs->nr_destinations);
	}
	return n->block[i];
}

static int fetch_from(struct mca_coll_pvas_request *r, const struct mca_coll_pvas_line *line,
		      int source, int i)
{
	const struct mca_coll_pvas_call *call = &r->call;
	const int which = call->sources == MCA_COLL_PVAS_NEIGHBORS ? i : source;
	const struct mca_coll_pvas_piece to = mca_coll_pvas_piece(&call->to, call->to_kind, which);
	const int block = block_of(r, line, i);

	if (block < 0)
		return MPI_ERR_TOPOLOGY;
	return mca_coll_pvas_fetch(line, block, call->nr_blocks, to.at, to.count, to.type);
}

/* Fetch from those that have posted; true: from all. */
static bool fetch(struct mca_coll_pvas_request *r)
{
	const int nr = mca_coll_pvas_nr_sources(r->m, r->call.sources);
	const struct mca_coll_pvas_line *line;
	int i, source;

	for (i = 0; i < nr && r->nr_left; i++) {
		if (r->fetched[i])
			continue;
		source = source_at(r, i);
		if (source != MPI_PROC_NULL) {
			line = line_of(r, source);
			if (!mca_coll_pvas_has_posted(line, r->op))
				continue;
			note(r, fetch_from(r, line, source, i));
		}
		r->fetched[i] = true;
		r->nr_left--;
	}
	return !r->nr_left;
}

/* ---- reductions ---- */

/* True: all have posted, and this rank has done its part. */
static bool combine(struct mca_coll_pvas_request *r)
{
	while (r->at < r->m->size && mca_coll_pvas_has_posted(line_of(r, r->at), r->op))
		r->at++;
	if (r->at < r->m->size)
		return false;
	r->call.reduction.posts = mca_coll_pvas_nbc_posts(r);
	note(r, r->call.combine(r->m, &r->call.reduction));
	return true;
}

/* ---- the end ---- */

static void finish(struct mca_coll_pvas_request *r)
{
	atomic_store_explicit(&line_of(r, r->m->rank)->finished, r->op, memory_order_release);
	r->at = 0;
	r->state = MCA_COLL_PVAS_FINISHED;
}

static bool neighbors_finished(struct mca_coll_pvas_request *r)
{
	const struct mca_coll_pvas_neighbors *n = r->m->neighbors;
	int rank;

	for (; r->at < n->nr_destinations; r->at++) {
		rank = n->destinations[r->at];
		if (rank != MPI_PROC_NULL &&
		    atomic_load_explicit(&line_of(r, rank)->finished, memory_order_acquire) < r->op)
			return false;
	}
	return true;
}

static bool readers_finished(struct mca_coll_pvas_request *r)
{
	const int readers = r->call.readers;

	if (r->copied || readers == MCA_COLL_PVAS_NONE)
		return true;
	if (readers == MCA_COLL_PVAS_ALL)
		return all_finished(r, r->op);
	if (readers == MCA_COLL_PVAS_NEIGHBORS)
		return neighbors_finished(r);
	return atomic_load_explicit(&line_of(r, readers)->finished, memory_order_acquire) >= r->op;
}

static void store_kept_result(struct mca_coll_pvas_request *r)
{
	const struct mca_coll_pvas_reduction *reduction = &r->call.reduction;

	if (r->call.in_place && !r->rc)
		note(r, mca_coll_pvas_copy(r->call.in_place, reduction->own, reduction->type,
					   reduction->result, reduction->own, reduction->type));
}

/* Go on as far as possible; true: the operation is complete. */
bool mca_coll_pvas_step(struct mca_coll_pvas_request *r)
{
	if (!mca_coll_pvas_nbc_attached(r->m))
		return false;
	if (r->m->nbc.state == MCA_COLL_PVAS_PASSING) {
		r->rc = OMPI_ERR_OUT_OF_RESOURCE;
		return true;
	}
	if (r->state == MCA_COLL_PVAS_STARTED && !post(r))
		return false;
	if (r->state == MCA_COLL_PVAS_POSTED) {
		if (!(r->call.combine ? combine(r) : fetch(r)))
			return false;
		finish(r);
	}
	if (!readers_finished(r))
		return false;
	store_kept_result(r);
	return true;
}
