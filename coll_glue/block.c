// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The memory that the ranks of a communicator share. Rank 0 maps it in the first operation,
 * and tells the others where by a broadcast of the component below us, because selection is
 * not collective in Open MPI 4.1. A rank that frees the communicator says so in the block;
 * the owner unmaps it once all have, the next time that it makes or leaves a block.
 */
#include "coll_pvas.h"

#include <sys/mman.h>

#include "ompi/runtime/mpiruntime.h"

#define component mca_coll_pvas_component

static size_t round_down(size_t n)
{
	return n / MCA_COLL_PVAS_CACHE_LINE * MCA_COLL_PVAS_CACHE_LINE;
}

static size_t lines_bytes(int size, unsigned int nr)
{
	return nr * size * sizeof(struct mca_coll_pvas_line);
}

/* Bytes of a block for short messages of so many ranks, behind its header */
size_t mca_coll_pvas_block_bytes(int size)
{
	return lines_bytes(size, MCA_COLL_PVAS_LEAST_LINES) + MCA_COLL_PVAS_BLOCK_EXTRA -
	       sizeof(struct mca_coll_pvas_block);
}

/* Map a block of so many bytes behind its header. */
struct mca_coll_pvas_block *mca_coll_pvas_map_block(struct mca_coll_pvas_module *m, size_t bytes)
{
	struct mca_coll_pvas_block *block;

	bytes += sizeof(*block);
	block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (block == MAP_FAILED)
		return NULL;
	/* A fork child has no use for it, and copy-on-write would cost us page faults. */
	madvise(block, bytes, MADV_DONTFORK);
	mca_coll_pvas_count(bytes_held, bytes);
	block->size = m->size;
	block->bytes = bytes;
	return block;
}

/* Behind the header, which is a cache line */
char *mca_coll_pvas_block_memory(struct mca_coll_pvas_block *block)
{
	_Static_assert(sizeof(*block) == MCA_COLL_PVAS_CACHE_LINE, "one cache line");
	return (char *)(block + 1);
}

static unsigned int nr_lines(int size)
{
	if (size <= MCA_COLL_PVAS_FEW_RANKS)
		return MCA_COLL_PVAS_LINES;
	return size <= MCA_COLL_PVAS_SOME_RANKS ? MCA_COLL_PVAS_SOME_LINES :
						  MCA_COLL_PVAS_LEAST_LINES;
}

static void use_block(struct mca_coll_pvas_module *m, struct mca_coll_pvas_block *block)
{
	char *end = (char *)block + lines_bytes(m->size, MCA_COLL_PVAS_LEAST_LINES) +
		    MCA_COLL_PVAS_BLOCK_EXTRA;

	m->block = block;
	m->nr_lines = nr_lines(m->size);
	m->nr_annexes = m->nr_lines < MCA_COLL_PVAS_ANNEXES ? m->nr_lines : MCA_COLL_PVAS_ANNEXES;
	m->lines = (struct mca_coll_pvas_line *)mca_coll_pvas_block_memory(block);
	m->slots = m->lines + m->nr_lines * m->size;
	m->ring = (char *)(m->slots + MCA_COLL_PVAS_SLOTS);
	m->segment_bytes = round_down((end - m->ring) / MCA_COLL_PVAS_SEGMENTS);
	if (m->segment_bytes > MCA_COLL_PVAS_SEGMENT)
		m->segment_bytes = MCA_COLL_PVAS_SEGMENT;
	m->annex_bytes = round_down((end - m->ring - MCA_COLL_PVAS_SEGMENTS * m->segment_bytes) /
				    (m->nr_annexes * m->size));
	if (m->annex_bytes > MCA_COLL_PVAS_ANNEX)
		m->annex_bytes = MCA_COLL_PVAS_ANNEX;
	m->piece_bytes = round_down(m->annex_bytes * m->nr_annexes / m->nr_lines);
	m->state = MCA_COLL_PVAS_READY;
	mca_coll_pvas_count(communicators, 1);
}

int mca_coll_pvas_attach(struct mca_coll_pvas_module *m)
{
	struct mca_coll_pvas_block *block = NULL;
	int rc;

	if (m->rank == 0) {
		mca_coll_pvas_unmap_blocks(false);
		block = mca_coll_pvas_map_block(m, mca_coll_pvas_block_bytes(m->size));
	}
	rc = mca_coll_pvas_pass_on(m, bcast, &block, sizeof(block), &ompi_mpi_byte.dt, 0);
	if (rc == OMPI_SUCCESS && block) {
		use_block(m, block);
		return OMPI_SUCCESS;
	}
	/* Without memory all ranks pass on what comes. */
	m->state = MCA_COLL_PVAS_PASSING;
	return OMPI_ERR_OUT_OF_RESOURCE;
}

/*
 * In MPI_Finalize a peer can have ended already, and blocks are no longer used by anyone when
 * communicators are destroyed: all ranks have met in a barrier.
 */
void mca_coll_pvas_leave_block(struct mca_coll_pvas_module *m, struct mca_coll_pvas_block *block)
{
	mca_coll_pvas_count(communicators, -1);
	if (m->rank == 0) {
		OPAL_THREAD_LOCK(&component.lock);
		block->next = component.left_blocks;
		component.left_blocks = block;
		OPAL_THREAD_UNLOCK(&component.lock);
	}
	if (ompi_mpi_state >= OMPI_MPI_STATE_FINALIZE_STARTED)
		return;
	mca_coll_pvas_inside++;
	atomic_fetch_add(&block->left, 1);
	mca_coll_pvas_inside--;
	if (m->rank == 0)
		mca_coll_pvas_unmap_blocks(false);
}

/* Unmap our blocks that all ranks have left, or really all. */
void mca_coll_pvas_unmap_blocks(bool all)
{
	struct mca_coll_pvas_block **link = &component.left_blocks, *block;

	OPAL_THREAD_LOCK(&component.lock);
	while ((block = *link)) {
		if (!all && atomic_load(&block->left) < block->size) {
			link = &block->next;
			continue;
		}
		*link = block->next;
		mca_coll_pvas_count(bytes_held, -block->bytes);
		munmap(block, block->bytes);
	}
	OPAL_THREAD_UNLOCK(&component.lock);
}
