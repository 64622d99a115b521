// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The memory of a communicator's non-blocking operations: lines and annexes of each rank, as
 * for blocking ones, but a line of each rank for each operation in progress. A rank may not
 * wait for others when it starts an operation, so where rank 0 has mapped the block is told
 * by a non-blocking broadcast of the component below us; operations begin when that is there.
 */
#include "nbc.h"

#include <stdlib.h>

#define component mca_coll_pvas_component

/* Rather few annexes than shorter ones */
#define LEAST_ANNEXES 2
#define WANTED_ANNEX (1 << 10)

/*
 * Up to half of the memory is for lines. It depends on the number of ranks only, so that all
 * ranks agree before they know the block.
 */
void mca_coll_pvas_nbc_plan(struct mca_coll_pvas_module *m)
{
	struct mca_coll_pvas_nbc *nbc = &m->nbc;
	const size_t line = m->size * sizeof(struct mca_coll_pvas_line);
	size_t bytes = mca_coll_pvas_block_bytes(m->size);

	nbc->nr_lines = MCA_COLL_PVAS_NBC_LINES;
	while (nbc->nr_lines > 1 && nbc->nr_lines * line > bytes / 2)
		nbc->nr_lines /= 2;
	bytes -= nbc->nr_lines * line;
	nbc->nr_annexes = nbc->nr_lines < MCA_COLL_PVAS_NBC_ANNEXES ? nbc->nr_lines :
								     MCA_COLL_PVAS_NBC_ANNEXES;
	while (nbc->nr_annexes > LEAST_ANNEXES &&
	       bytes / (nbc->nr_annexes * m->size) < WANTED_ANNEX)
		nbc->nr_annexes /= 2;
	nbc->annex_bytes = bytes / (nbc->nr_annexes * m->size) / MCA_COLL_PVAS_CACHE_LINE *
			   MCA_COLL_PVAS_CACHE_LINE;
	if (nbc->annex_bytes > MCA_COLL_PVAS_ANNEX)
		nbc->annex_bytes = MCA_COLL_PVAS_ANNEX;
}

size_t mca_coll_pvas_nbc_most_copied(const struct mca_coll_pvas_nbc *nbc)
{
	return nbc->annex_bytes > MCA_COLL_PVAS_INLINE ? nbc->annex_bytes : MCA_COLL_PVAS_INLINE;
}

/* Persistent operations have a line of each rank, without annexes. */
static size_t block_bytes(const struct mca_coll_pvas_module *m)
{
	if (m->initializing)
		return MCA_COLL_PVAS_PERSISTENT_LINES * m->size * sizeof(struct mca_coll_pvas_line);
	return mca_coll_pvas_block_bytes(m->size);
}

/* Called when an operation is started or initialized, in the same order by all ranks */
void mca_coll_pvas_nbc_begin_next(struct mca_coll_pvas_module *m)
{
	struct mca_coll_pvas_nbc *nbc = mca_coll_pvas_nbc(m);

	if (nbc->state != MCA_COLL_PVAS_NEW)
		return;
	if (m->rank == 0) {
		mca_coll_pvas_unmap_blocks(false);
		nbc->block = mca_coll_pvas_map_block(m, block_bytes(m));
	}
	if (mca_coll_pvas_pass_on_nbc(m, ibcast, &nbc->attaching, &nbc->block, sizeof(nbc->block),
				      &ompi_mpi_byte.dt, 0) != OMPI_SUCCESS) {
		nbc->state = MCA_COLL_PVAS_PASSING;
		return;
	}
	/* The broadcast uses it, even if the user frees it and all requests. */
	OBJ_RETAIN(m->comm);
	nbc->m = m;
	OPAL_THREAD_LOCK(&component.nbc_lock);
	nbc->state = MCA_COLL_PVAS_ATTACHING;
	nbc->next = component.attaching;
	component.attaching = nbc;
	OPAL_THREAD_UNLOCK(&component.nbc_lock);
}

static void use_block(struct mca_coll_pvas_module *m, struct mca_coll_pvas_nbc *nbc)
{
	nbc->lines = (struct mca_coll_pvas_line *)mca_coll_pvas_block_memory(nbc->block);
	nbc->annexes = (char *)(nbc->lines + nbc->nr_lines * m->size);
	nbc->state = MCA_COLL_PVAS_READY;
	mca_coll_pvas_count(communicators, 1);
}

static bool attach(struct mca_coll_pvas_module *m, struct mca_coll_pvas_nbc *nbc)
{
	struct mca_coll_pvas_nbc **at = &component.attaching;

	if (!REQUEST_COMPLETE(nbc->attaching))
		return false;
	ompi_request_free(&nbc->attaching);
	while (*at != nbc)
		at = &(*at)->next;
	*at = nbc->next;
	if (nbc->block)
		use_block(m, nbc);
	else
		nbc->state = MCA_COLL_PVAS_PASSING;
	return true;
}

/*
 * False: not yet. If there was no memory, the state is MCA_COLL_PVAS_PASSING: operations fail.
 * The caller holds the lock.
 */
bool mca_coll_pvas_nbc_attached(struct mca_coll_pvas_module *m, struct mca_coll_pvas_nbc *nbc)
{
	if (nbc->state != MCA_COLL_PVAS_ATTACHING)
		return true;
	if (!attach(m, nbc))
		return false;
	/* The request that asks retains it, too. */
	OBJ_RELEASE(m->comm);
	return true;
}

/*
 * Of operations that may never be started: the communicator of one whose broadcast is complete.
 * The caller holds the lock, and releases the communicator without it.
 */
struct ompi_communicator_t *mca_coll_pvas_nbc_attach_one(void)
{
	struct mca_coll_pvas_module *m;
	struct mca_coll_pvas_nbc *nbc;

	for (nbc = component.attaching; nbc; nbc = nbc->next) {
		m = nbc->m;
		if (!attach(m, nbc))
			continue;
		if (nbc != &m->nbc && !nbc->users) {
			mca_coll_pvas_nbc_leave(m, nbc);
			free(nbc);
		}
		return m->comm;
	}
	return NULL;
}

void mca_coll_pvas_nbc_leave(struct mca_coll_pvas_module *m, struct mca_coll_pvas_nbc *nbc)
{
	if (nbc->state == MCA_COLL_PVAS_READY)
		mca_coll_pvas_leave_block(m, nbc->block);
}

/* Where short data of a non-blocking operation go */
struct mca_coll_pvas_record mca_coll_pvas_nbc_annex(const struct mca_coll_pvas_request *r)
{
	const struct mca_coll_pvas_nbc *nbc = &r->m->nbc;
	const size_t annex = r->m->rank * nbc->nr_annexes + (r->op & (nbc->nr_annexes - 1));

	return (struct mca_coll_pvas_record) {
		.at = nbc->annexes + annex * nbc->annex_bytes, .length = nbc->annex_bytes,
	};
}
