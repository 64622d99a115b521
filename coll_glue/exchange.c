// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Operations in which all ranks send and receive. Each rank copies what it receives, in an
 * order that has no two of them begin at one sender (Chakraborty et al., CLUSTER 2017).
 */
#include "operations.h"

#include <stdlib.h>
#include <string.h>

/* All ranks have seen all others' posts, so nobody needs to be told more. */
int mca_coll_pvas_barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;

	(void)comm;
	if (!mca_coll_pvas_prefers(m->size >= MCA_COLL_PVAS_LEAST_BARRIER_RANKS) ||
	    !mca_coll_pvas_begin(m, barrier))
		return m->previous.barrier(m->comm, m->previous.barrier_module);
	mca_coll_pvas_post_nothing(m);
	mca_coll_pvas_wait_posts(m);
	return mca_coll_pvas_end(OMPI_SUCCESS);
}

/*
 * Receive from all others what they have posted, into @to. Of each post, take the block
 * @block of @nr_blocks. @copied: our own post was not a description.
 */
static int receive(struct mca_coll_pvas_module *m, bool copied, int block, int nr_blocks,
		   const struct mca_coll_pvas_buffers *to, enum mca_coll_pvas_kind kind)
{
	struct mca_coll_pvas_piece piece;
	struct mca_coll_pvas_line *line;
	int i, r, err, rc = OMPI_SUCCESS;
	bool awaited = !copied;

	for (i = 1; i < m->size; i++) {
		r = (m->rank + i) % m->size;
		line = mca_coll_pvas_wait_post(m, r);
		awaited = awaited || !mca_coll_pvas_was_copied(mca_coll_pvas_kind(line));
		piece = mca_coll_pvas_piece(to, kind, r);
		err = mca_coll_pvas_fetch(line, block, nr_blocks, piece.at, piece.count,
					  piece.type);
		if (err)
			rc = err;
	}
	if (m->all_finished < m->op - 1)
		m->all_finished = m->op - 1;
	/* If all data were in the lines, nobody waits to hear of this. */
	if (awaited)
		mca_coll_pvas_finish(m);
	if (!copied)
		mca_coll_pvas_wait_readers(m);
	return rc;
}

/* ---- allgather ---- */

static int allgather(struct mca_coll_pvas_module *m, const void *sbuf, size_t scount,
		     const struct ompi_datatype_t *stype, const struct mca_coll_pvas_buffers *to)
{
	const struct mca_coll_pvas_piece own = mca_coll_pvas_piece(to, MCA_COLL_PVAS_BUFFERS,
								   m->rank);
	int err = OMPI_SUCCESS, rc;
	bool copied;

	if (sbuf == MPI_IN_PLACE) {
		copied = mca_coll_pvas_post(m, own.at, own.count, 1, own.type, MCA_COLL_PVAS_ALL);
	} else {
		copied = mca_coll_pvas_post(m, sbuf, scount, 1, stype, MCA_COLL_PVAS_ALL);
		err = mca_coll_pvas_copy(own.at, own.count, own.type, sbuf, scount, stype);
	}
	rc = receive(m, copied, 0, 1, to, MCA_COLL_PVAS_BUFFERS);
	return err ? err : rc;
}

int mca_coll_pvas_allgather(const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf,
			    int rcount, struct ompi_datatype_t *rtype,
			    struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;

	(void)comm;
	if (!mca_coll_pvas_begin(m, allgather))
		return mca_coll_pvas_pass_on(m, allgather, sbuf, scount, stype, rbuf, rcount,
					     rtype);
	return mca_coll_pvas_end(allgather(m, sbuf, scount, stype,
					   &(struct mca_coll_pvas_buffers) {
		.buf = rbuf, .type = rtype, .count = rcount,
	}));
}

int mca_coll_pvas_allgatherv(const void *sbuf, int scount, struct ompi_datatype_t *stype,
			     void *rbuf, const int *rcounts, const int *displs,
			     struct ompi_datatype_t *rtype, struct ompi_communicator_t *comm,
			     mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;

	(void)comm;
	if (!mca_coll_pvas_begin(m, allgatherv))
		return mca_coll_pvas_pass_on(m, allgatherv, sbuf, scount, stype, rbuf, rcounts,
					     displs, rtype);
	return mca_coll_pvas_end(allgather(m, sbuf, scount, stype,
					   &(struct mca_coll_pvas_buffers) {
		.buf = rbuf, .type = rtype, .counts = rcounts, .displs = displs,
	}));
}

/* ---- alltoall ---- */

/* Bytes that are exchanged at a time: both copies stay in the nearest cache. */
#define SWAP_STEP 4096

/* Each byte is loaded from and stored to main memory once. Blocks of two ranks don't overlap. */
static void swap_bytes(char *ours, char *peers, size_t bytes)
{
	char copy[SWAP_STEP];
	size_t at, n;

	for (at = 0; at < bytes; at += n) {
		n = bytes - at < SWAP_STEP ? bytes - at : SWAP_STEP;
		memcpy(copy, peers + at, n);
		memcpy(peers + at, ours + at, n);
		memcpy(ours + at, copy, n);
	}
	mca_coll_pvas_count(bytes_copied, 2 * bytes);
}

/* Exchange a block of ours with a peer's, in place, or, if one has gaps, through a copy of it. */
static int swap(const struct mca_coll_pvas_piece *ours, const struct mca_coll_pvas_piece *peers)
{
	const size_t bytes = ours->count * ours->type->super.size;
	const struct ompi_datatype_t *byte = &ompi_mpi_byte.dt;
	char *copy;

	if (bytes != peers->count * peers->type->super.size)
		return MPI_ERR_TRUNCATE;
	if (mca_coll_pvas_is_plain(ours->type) && mca_coll_pvas_is_plain(peers->type)) {
		swap_bytes(ours->at, peers->at, bytes);
		return OMPI_SUCCESS;
	}
	copy = malloc(bytes + 1);
	if (!copy)
		return OMPI_ERR_OUT_OF_RESOURCE;
	mca_coll_pvas_copy(copy, bytes, byte, peers->at, peers->count, peers->type);
	mca_coll_pvas_copy(peers->at, peers->count, peers->type, ours->at, ours->count, ours->type);
	mca_coll_pvas_copy(ours->at, ours->count, ours->type, copy, bytes, byte);
	free(copy);
	return OMPI_SUCCESS;
}

/* MPI_IN_PLACE: of two ranks, one swaps the blocks that they have for each other. */
static int swap_all(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_buffers *ours,
		    enum mca_coll_pvas_kind kind)
{
	struct mca_coll_pvas_piece mine, peers;
	struct mca_coll_pvas_line *line;
	int r, err, rc = OMPI_SUCCESS;

	mca_coll_pvas_post_buffers(m, ours, kind, MCA_COLL_PVAS_ALL);
	for (r = 0; r < m->size; r++) {
		/* About half of the pairs each */
		if (r == m->rank || (r < m->rank) == ((r + m->rank) % 2 == 0))
			continue;
		line = mca_coll_pvas_wait_post(m, r);
		if (mca_coll_pvas_kind(line) != kind) {
			rc = MPI_ERR_TRUNCATE;
			continue;
		}
		mine = mca_coll_pvas_piece(ours, kind, r);
		peers = mca_coll_pvas_piece(&line->buffers, kind, m->rank);
		err = swap(&mine, &peers);
		if (err)
			rc = err;
	}
	mca_coll_pvas_finish(m);
	mca_coll_pvas_wait_readers(m);
	return rc;
}

static int copy_own(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_buffers *from,
		    const struct mca_coll_pvas_buffers *to, enum mca_coll_pvas_kind kind)
{
	const struct mca_coll_pvas_piece source = mca_coll_pvas_piece(from, kind, m->rank);
	const struct mca_coll_pvas_piece target = mca_coll_pvas_piece(to, kind, m->rank);

	return mca_coll_pvas_copy(target.at, target.count, target.type, source.at, source.count,
				  source.type);
}

static int alltoall(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_buffers *from,
		    const struct mca_coll_pvas_buffers *to, enum mca_coll_pvas_kind kind)
{
	bool copied = false;
	int err, rc;

	if (from->buf == MPI_IN_PLACE)
		return swap_all(m, to, kind);
	if (kind == MCA_COLL_PVAS_BUFFERS && !from->counts)
		copied = mca_coll_pvas_post(m, from->buf, from->count, m->size, from->type,
					    MCA_COLL_PVAS_ALL);
	else
		copied = mca_coll_pvas_post_blocks(m, &(struct mca_coll_pvas_blocks) {
			.buffers = from, .kind = kind, .nr = m->size, .own = m->rank,
		}, MCA_COLL_PVAS_ALL);
	err = copy_own(m, from, to, kind);
	rc = receive(m, copied, m->rank, m->size, to, kind);
	return err ? err : rc;
}

int mca_coll_pvas_alltoall(const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf,
			   int rcount, struct ompi_datatype_t *rtype,
			   struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers from = mca_coll_pvas_equal_blocks(sbuf, scount, stype),
	to = mca_coll_pvas_equal_blocks(rbuf, rcount, rtype);
	const size_t bytes = mca_coll_pvas_bytes(rcount, rtype);

	(void)comm;
	if (!mca_coll_pvas_begin_if(m, alltoall, bytes >= MCA_COLL_PVAS_LEAST_ALLTOALL))
		return mca_coll_pvas_pass_on(m, alltoall, sbuf, scount, stype, rbuf, rcount,
					     rtype);
	return mca_coll_pvas_end(alltoall(m, &from, &to, MCA_COLL_PVAS_BUFFERS));
}

int mca_coll_pvas_alltoallv(const void *sbuf, const int *scounts, const int *sdispls,
			    struct ompi_datatype_t *stype, void *rbuf, const int *rcounts,
			    const int *rdispls, struct ompi_datatype_t *rtype,
			    struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers from = mca_coll_pvas_runs(sbuf, scounts, sdispls, stype),
	to = mca_coll_pvas_runs(rbuf, rcounts, rdispls, rtype);

	(void)comm;
	if (!mca_coll_pvas_prefers(false) || !mca_coll_pvas_begin(m, alltoallv))
		return mca_coll_pvas_pass_on(m, alltoallv, sbuf, scounts, sdispls, stype, rbuf,
					     rcounts, rdispls, rtype);
	return mca_coll_pvas_end(alltoall(m, &from, &to, MCA_COLL_PVAS_BUFFERS));
}

int mca_coll_pvas_alltoallw(const void *sbuf, const int *scounts, const int *sdispls,
			    struct ompi_datatype_t *const *stypes, void *rbuf, const int *rcounts,
			    const int *rdispls, struct ompi_datatype_t *const *rtypes,
			    struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;
	const struct mca_coll_pvas_buffers
	from = mca_coll_pvas_runs(sbuf, scounts, sdispls, stypes),
	to = mca_coll_pvas_runs(rbuf, rcounts, rdispls, rtypes);

	(void)comm;
	if (!mca_coll_pvas_begin(m, alltoallw))
		return mca_coll_pvas_pass_on(m, alltoallw, sbuf, scounts, sdispls, stypes, rbuf,
					     rcounts, rdispls, rtypes);
	return mca_coll_pvas_end(alltoall(m, &from, &to, MCA_COLL_PVAS_BUFFERS_W));
}
