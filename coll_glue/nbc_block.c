// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The memory of a communicator's non-blocking operations: lines and annexes of each rank, as
 * for blocking ones, but a line of each rank for each operation in progress. A rank may not
 * wait for others when it starts an operation, so where rank 0 has mapped the block is told
 * by a non-blocking broadcast of the component below us; operations begin when that is there.
 */
#include "nbc.h"

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

static void add_attaching(struct mca_coll_pvas_module *m, struct mca_coll_pvas_nbc *nbc)
{
	nbc->m = m;
	OPAL_THREAD_LOCK(&component.nbc_lock);
	nbc->state = MCA_COLL_PVAS_ATTACHING;
	nbc->next = component.attaching;
	component.attaching = nbc;
	component.nr_unfinished++;
	OPAL_THREAD_UNLOCK(&component.nbc_lock);
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
	/* The broadcast uses both, even if the user frees the communicator and all requests. */
	OBJ_RETAIN(m->comm);
	atomic_fetch_add(&nbc->users, 1);
	add_attaching(m, nbc);
}

static void use_block(struct mca_coll_pvas_module *m, struct mca_coll_pvas_nbc *nbc)
{
	nbc->lines = (struct mca_coll_pvas_line *)mca_coll_pvas_block_memory(nbc->block);
	nbc->annexes = (char *)(nbc->lines + nbc->nr_lines * m->size);
	nbc->state = MCA_COLL_PVAS_READY;
	mca_coll_pvas_count(communicators, 1);
}

/*
 * Those whose block is known now. If there was no memory, their state is MCA_COLL_PVAS_PASSING:
 * operations fail. The caller holds the lock.
 */
struct mca_coll_pvas_nbc *mca_coll_pvas_nbc_take_attached(void)
{
	struct mca_coll_pvas_nbc **link = &component.attaching, *nbc, *attached = NULL;

	while ((nbc = *link)) {
		if (!REQUEST_COMPLETE(nbc->attaching)) {
			link = &nbc->next;
			continue;
		}
		*link = nbc->next;
		component.nr_unfinished--;
		ompi_request_free(&nbc->attaching);
		if (nbc->block)
			use_block(nbc->m, nbc);
		else
			nbc->state = MCA_COLL_PVAS_PASSING;
		nbc->next = attached;
		attached = nbc;
	}
	return attached;
}

/* The broadcasts use them no more. The caller doesn't hold the lock: communicators may end. */
void mca_coll_pvas_nbc_attached(struct mca_coll_pvas_nbc *attached)
{
	struct mca_coll_pvas_nbc *nbc;
	struct ompi_communicator_t *comm;

	while ((nbc = attached)) {
		attached = nbc->next;
		comm = nbc->m->comm;
		if (nbc != &nbc->m->nbc)
			mca_coll_pvas_put_persistent(nbc->m, nbc);
		OBJ_RELEASE(comm);
	}
}

/* In MPI_Finalize, communicators end even if they are in use. */
void mca_coll_pvas_nbc_forget(struct mca_coll_pvas_module *m)
{
	struct mca_coll_pvas_nbc **link = &component.attaching;

	OPAL_THREAD_LOCK(&component.nbc_lock);
	while (*link) {
		if ((*link)->m != m) {
			link = &(*link)->next;
			continue;
		}
		*link = (*link)->next;
		component.nr_unfinished--;
	}
	OPAL_THREAD_UNLOCK(&component.nbc_lock);
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
