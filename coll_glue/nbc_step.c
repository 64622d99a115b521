// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The steps of a non-blocking operation, none of which waits: post our data; fetch others', or
 * combine all; finish; and be complete when those who read our buffers have finished.
 */
#include "nbc.h"
#include "neighbor.h"

static struct mca_coll_pvas_posts posts_of(const struct mca_coll_pvas_request *r)
{
	return mca_coll_pvas_nbc_posts(r->nbc, r->line);
}

static struct mca_coll_pvas_line *line_of(const struct mca_coll_pvas_request *r, int rank)
{
	return mca_coll_pvas_post_of(posts_of(r), rank);
}

static bool has_finished(const struct mca_coll_pvas_line *line, uint64_t op)
{
	return atomic_load_explicit(&line->finished, memory_order_acquire) >= op;
}

static bool all_finished(struct mca_coll_pvas_posts posts, int size, uint64_t op)
{
	int i;

	for (i = 0; i < size; i++)
		if (!has_finished(mca_coll_pvas_post_of(posts, i), op))
			return false;
	return true;
}

static bool is_persistent(const struct mca_coll_pvas_request *r)
{
	return r->super.super.req_persistent;
}

/* ---- posting ---- */

/* Our data, if they are to be copied in blocks */
static bool in_blocks(const struct mca_coll_pvas_request *r, struct mca_coll_pvas_blocks *blocks)
{
	const struct mca_coll_pvas_call *call = &r->call;
	const bool neighbors = call->readers == MCA_COLL_PVAS_NEIGHBORS;

	*blocks = (struct mca_coll_pvas_blocks) {
		.buffers = &call->from, .kind = call->from_kind, .nr = call->nr_blocks,
		.own = neighbors ? -1 : r->m->rank,
		.receivers = neighbors ? r->m->neighbors->destinations : NULL,
	};
	return call->from_kind != MCA_COLL_PVAS_BUFFERS_SAME &&
	       (neighbors || call->from.counts || call->from_kind != MCA_COLL_PVAS_BUFFERS);
}

/* Bytes of our data when they are copied; more than an annex has: they are described. */
static size_t copied_bytes(const struct mca_coll_pvas_request *r)
{
	const struct mca_coll_pvas_call *call = &r->call;
	struct mca_coll_pvas_blocks blocks;

	if (call->described)
		return SIZE_MAX;
	if (in_blocks(r, &blocks))
		return mca_coll_pvas_blocks_bytes(&blocks, r->nbc->annex_bytes);
	return call->from.count * call->nr_blocks *
	       ((const struct ompi_datatype_t *)call->from.type)->super.size;
}

/* Are the line and, if it is needed, the annex no longer in use by other operations? */
static bool have_memory(struct mca_coll_pvas_request *r, size_t bytes)
{
	struct mca_coll_pvas_nbc *nbc = r->nbc;
	const uint64_t again = is_persistent(r) ? 1 : nbc->nr_lines;
	uint64_t *annexed;

	if (r->op > again && !all_finished(posts_of(r), r->m->size, r->op - again))
		return false;
	if (bytes <= MCA_COLL_PVAS_INLINE || bytes > nbc->annex_bytes)
		return true;
	/* Operations are complete in any order, so only the last use tells. */
	annexed = &nbc->annexed[r->op & (nbc->nr_annexes - 1)];
	if (*annexed &&
	    !all_finished(mca_coll_pvas_nbc_posts(nbc, *annexed), r->m->size, *annexed))
		return false;
	*annexed = r->op;
	return true;
}

/*
 * Were the order of posts not the same at all ranks, two operations could wait for each
 * other's annex.
 */
static bool is_next(const struct mca_coll_pvas_request *r)
{
	return is_persistent(r) || r->op == r->nbc->posted + 1;
}

static void post_data(struct mca_coll_pvas_request *r, size_t bytes)
{
	const struct mca_coll_pvas_call *call = &r->call;
	struct mca_coll_pvas_line *line = line_of(r, r->m->rank);
	struct mca_coll_pvas_record record = { 0 };
	struct mca_coll_pvas_blocks blocks;

	r->copied = bytes <= mca_coll_pvas_nbc_most_copied(r->nbc);
	if (r->copied && bytes > MCA_COLL_PVAS_INLINE)
		record = mca_coll_pvas_nbc_annex(r);
	if (!r->copied) {
		mca_coll_pvas_describe(line, r->op, &call->from, call->from_kind);
	} else if (in_blocks(r, &blocks)) {
		mca_coll_pvas_copy_blocks_in(line, r->op, &record, &blocks);
	} else {
		record.length = bytes;
		mca_coll_pvas_copy_in(line, r->op, &record, call->from.buf,
				      call->from.count * call->nr_blocks, call->from.type);
	}
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

/* MPI_IN_PLACE: blocks are sent from a copy in the same layout, so that others can be stored. */
static void copy_blocks(struct mca_coll_pvas_request *r)
{
	const struct mca_coll_pvas_call *call = &r->call;
	struct mca_coll_pvas_piece from, to;
	int i;

	for (i = 0; i < r->m->size; i++) {
		from = mca_coll_pvas_piece(&call->to, call->to_kind, i);
		to = mca_coll_pvas_piece(&call->from, call->from_kind, i);
		mca_coll_pvas_copy(to.at, to.count, to.type, from.at, from.count, from.type);
	}
}

/* False: an earlier operation still uses the memory, or has not posted itself. */
static bool post(struct mca_coll_pvas_request *r)
{
	const bool posts = r->call.readers != MCA_COLL_PVAS_NONE;
	const size_t bytes = posts ? copied_bytes(r) : 0;

	if (!is_next(r) || !have_memory(r, bytes))
		return false;
	r->nbc->posted = r->op;
	if (r->call.swap)
		copy_blocks(r);
	if (posts)
		post_data(r, bytes);
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

/* True: all that contribute have posted, and this rank has done its part. */
static bool combine(struct mca_coll_pvas_request *r)
{
	const int nr = mca_coll_pvas_contributors(r->m, &r->call.reduction);

	for (; r->at < nr; r->at++)
		if (!mca_coll_pvas_has_posted(line_of(r, r->at), r->op))
			return false;
	r->call.reduction.posts = posts_of(r);
	note(r, r->call.combine(r->m, &r->call.reduction));
	return true;
}

/* ---- the end ---- */

static void finish(struct mca_coll_pvas_request *r)
{
	atomic_store_explicit(&line_of(r, r->m->rank)->finished, r->op, memory_order_release);
	r->state = MCA_COLL_PVAS_FINISHED;
}

static bool neighbors_finished(const struct mca_coll_pvas_request *r)
{
	const struct mca_coll_pvas_neighbors *n = r->m->neighbors;
	int i;

	for (i = 0; i < n->nr_destinations; i++)
		if (n->destinations[i] != MPI_PROC_NULL &&
		    !has_finished(line_of(r, n->destinations[i]), r->op))
			return false;
	return true;
}

static bool readers_finished(const struct mca_coll_pvas_request *r)
{
	const int readers = r->call.readers;

	if (r->copied || readers == MCA_COLL_PVAS_NONE)
		return true;
	if (readers == MCA_COLL_PVAS_ALL)
		return all_finished(posts_of(r), r->m->size, r->op);
	if (readers == MCA_COLL_PVAS_NEIGHBORS)
		return neighbors_finished(r);
	return has_finished(line_of(r, readers), r->op);
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
	if (r->nbc->state == MCA_COLL_PVAS_ATTACHING)
		return false;
	if (r->nbc->state == MCA_COLL_PVAS_PASSING) {
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
