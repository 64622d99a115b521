// SPDX-License-Identifier: LGPL-2.1-or-later
/* Making and freeing windows, and their memory. */
#include "osc_pvas.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ompi/runtime/mpiruntime.h"

#define component mca_osc_pvas_component

/* Each rank tells it the others; @state NULL: it could not map the window's memory. */
struct proposal {
	struct mca_osc_pvas_state *state;
	char *base;
	size_t bytes;
	int disp_unit;
};

static const ompi_osc_base_module_t functions = {
	.osc_win_shared_query = mca_osc_pvas_shared_query,
	.osc_win_attach = mca_osc_pvas_attach,
	.osc_win_detach = mca_osc_pvas_detach,
	.osc_free = mca_osc_pvas_free,
	.osc_put = mca_osc_pvas_put,
	.osc_get = mca_osc_pvas_get,
	.osc_accumulate = mca_osc_pvas_accumulate,
	.osc_compare_and_swap = mca_osc_pvas_compare_and_swap,
	.osc_fetch_and_op = mca_osc_pvas_fetch_and_op,
	.osc_get_accumulate = mca_osc_pvas_get_accumulate,
	.osc_rput = mca_osc_pvas_rput,
	.osc_rget = mca_osc_pvas_rget,
	.osc_raccumulate = mca_osc_pvas_raccumulate,
	.osc_rget_accumulate = mca_osc_pvas_rget_accumulate,
	.osc_fence = mca_osc_pvas_fence,
	.osc_start = mca_osc_pvas_start,
	.osc_complete = mca_osc_pvas_complete_epoch,
	.osc_post = mca_osc_pvas_post,
	.osc_wait = mca_osc_pvas_wait,
	.osc_test = mca_osc_pvas_test,
	.osc_lock = mca_osc_pvas_lock,
	.osc_unlock = mca_osc_pvas_unlock,
	.osc_lock_all = mca_osc_pvas_lock_all,
	.osc_unlock_all = mca_osc_pvas_unlock_all,
	.osc_sync = mca_osc_pvas_sync,
	.osc_flush = mca_osc_pvas_flush,
	.osc_flush_all = mca_osc_pvas_flush_all,
	.osc_flush_local = mca_osc_pvas_flush,
	.osc_flush_local_all = mca_osc_pvas_flush_all,
};

/* ---- memory ---- */

static size_t state_bytes(int size)
{
	return sizeof(struct mca_osc_pvas_state) + size * sizeof(uint32_t);
}

static void *map(struct mca_osc_pvas_module *m, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	m->memory = at;
	m->mapped = bytes;
	mca_osc_pvas_count(bytes_held, bytes);
	return at;
}

static void release_module(struct mca_osc_pvas_module *m)
{
	if (m->memory)
		munmap(m->memory, m->mapped);
	mca_osc_pvas_count(bytes_held, -m->mapped);
	if (m->own)
		mca_osc_pvas_free_regions(m->own->regions);
	free(m->own);
	free(m->targets);
	free(m);
}

static struct mca_osc_pvas_module *new_module(struct ompi_communicator_t *comm, int flavor)
{
	const size_t size = ompi_comm_size(comm);
	struct mca_osc_pvas_module *m = calloc(1, sizeof(*m));
	void *own, *targets;

	if (!m)
		return NULL;
	m->super = functions;
	m->rank = ompi_comm_rank(comm);
	m->size = size;
	m->flavor = flavor;
	m->nr_started = -1;
	if (!posix_memalign(&own, MCA_OSC_PVAS_LINES, state_bytes(size)))
		m->own = memset(own, 0, state_bytes(size));
	if (!posix_memalign(&targets, _Alignof(struct mca_osc_pvas_target),
			    size * sizeof(*m->targets)))
		m->targets = memset(targets, 0, size * sizeof(*m->targets));
	if (m->own && m->targets)
		return m;
	release_module(m);
	return NULL;
}

/* ---- contiguous shared memory ---- */

/* Too much for an address, or the sizes' sum: no memory */
static size_t sum_of_sizes(const struct mca_osc_pvas_module *m)
{
	size_t sum = 0;
	int i;

	for (i = 0; i < m->size; i++)
		if (__builtin_add_overflow(sum, m->targets[i].bytes, &sum))
			return SIZE_MAX;
	return sum;
}

/* Rank 0 maps the memory of all, one after another, and tells where it is. */
static bool share(struct mca_osc_pvas_module *m)
{
	const size_t sum = sum_of_sizes(m);
	char *at;
	int i;

	if (!m->rank) {
		at = sum ? map(m, sum) : NULL;
		m->own->shared = sum && !at ? MAP_FAILED : at;
	}
	mca_osc_pvas_barrier(m);
	at = m->targets[0].state->shared;
	if (at == MAP_FAILED) {
		/* Rank 0 must not free its state before all have read this. */
		mca_osc_pvas_barrier(m);
		return false;
	}
	for (i = 0; i < m->size; i++) {
		m->targets[i].base = m->targets[i].bytes ? at : NULL;
		at += m->targets[i].bytes;
	}
	return true;
}

/* ---- making a window ---- */

static bool fill_target(struct mca_osc_pvas_module *m, struct ompi_communicator_t *comm, int rank,
			const struct proposal *proposal)
{
	struct mca_osc_pvas_target *target = &m->targets[rank];

	if (!mca_osc_pvas_find_member(comm->c_local_group, rank, target))
		return false;
	target->state = proposal->state;
	target->base = proposal->base;
	target->bytes = proposal->bytes;
	target->disp_unit = proposal->disp_unit;
	return true;
}

/*
 * Either all ranks make the window, or none, and all with the same layout: infos may differ, and
 * segments lie apart only if all ranks allow it.
 */
static int agree(struct mca_osc_pvas_module *m, struct ompi_communicator_t *comm, bool has_memory)
{
	int all[] = { has_memory, has_memory && m->noncontig };
	int rc = comm->c_coll->coll_allreduce(MPI_IN_PLACE, all, 2, MPI_INT, MPI_MIN, comm,
					      comm->c_coll->coll_allreduce_module);

	if (rc != OMPI_SUCCESS)
		return rc;
	if (!all[0])
		return OMPI_ERR_OUT_OF_RESOURCE;
	m->noncontig = all[1];
	return OMPI_SUCCESS;
}

/* All ranks see the same proposals, so they come to the same result. */
static int exchange(struct mca_osc_pvas_module *m, struct ompi_communicator_t *comm,
		    const struct proposal *ours, struct proposal *all)
{
	int i, rc = comm->c_coll->coll_allgather((void *)ours, sizeof(*ours), MPI_BYTE, all,
						 sizeof(*ours), MPI_BYTE, comm,
						 comm->c_coll->coll_allgather_module);

	for (i = 0; rc == OMPI_SUCCESS && i < m->size; i++) {
		if (!all[i].state)
			rc = OMPI_ERR_OUT_OF_RESOURCE;
		else if (!fill_target(m, comm, i, &all[i]))
			rc = OMPI_ERR_UNREACH;
	}
	return rc;
}

static bool is_shared_contiguous(const struct mca_osc_pvas_module *m)
{
	return m->flavor == MPI_WIN_FLAVOR_SHARED && !m->noncontig;
}

static struct proposal propose(struct mca_osc_pvas_module *m, void *base, size_t bytes,
			       int disp_unit)
{
	struct proposal ours = { m->own, base, bytes, disp_unit };

	if (m->flavor == MPI_WIN_FLAVOR_DYNAMIC) {
		/* Displacements are addresses. */
		ours.base = NULL;
		ours.bytes = 0;
		ours.disp_unit = 1;
	} else if (m->flavor != MPI_WIN_FLAVOR_CREATE) {
		ours.base = bytes && !is_shared_contiguous(m) ? map(m, bytes) : NULL;
		if (bytes && !is_shared_contiguous(m) && !ours.base)
			ours.state = NULL;
	}
	return ours;
}

/* Open MPI asks with the key's new value; the answer is the value in force. */
static char *answer_noncontig(opal_infosubscriber_t *object, char *key, char *value)
{
	const ompi_win_t *win = (ompi_win_t *)object;

	(void)key;
	(void)value;
	return win->w_osc_module && mca_osc_pvas_module_of(win)->noncontig ? "true" : "false";
}

static void read_info(struct mca_osc_pvas_module *m, struct opal_info_t *info)
{
	bool noncontig = false;
	int found = 0;

	if (info && m->flavor == MPI_WIN_FLAVOR_SHARED &&
	    opal_info_get_bool(info, "alloc_shared_noncontig", &noncontig, &found) == OPAL_SUCCESS)
		m->noncontig = found && noncontig;
}

static int make(struct mca_osc_pvas_module *m, struct proposal *all, void *base, size_t size,
		int disp_unit, struct ompi_communicator_t *comm)
{
	struct proposal ours;
	int rc = agree(m, comm, m && all);

	if (rc != OMPI_SUCCESS)
		return rc;
	ours = propose(m, base, size, disp_unit);
	rc = exchange(m, comm, &ours, all);
	if (rc == OMPI_SUCCESS && is_shared_contiguous(m) && !share(m))
		rc = OMPI_ERR_OUT_OF_RESOURCE;
	return rc;
}

int mca_osc_pvas_select(ompi_win_t *win, void **base, size_t size, int disp_unit,
			struct ompi_communicator_t *comm, struct opal_info_t *info, int flavor,
			int *model)
{
	struct mca_osc_pvas_module *m = new_module(comm, flavor);
	struct proposal *all = malloc(ompi_comm_size(comm) * sizeof(*all));
	int rc;

	if (m)
		read_info(m, info);
	component.making = m;
	/* Of dynamic windows, @base is NULL. */
	rc = make(m, all, base ? *base : NULL, size, disp_unit, comm);
	free(all);
	if (rc != OMPI_SUCCESS) {
		component.making = NULL;
		if (m)
			release_module(m);
		return rc;
	}
	/* Nobody touches a state before all have their table. */
	mca_osc_pvas_barrier(m);
	component.making = NULL;
	if (flavor == MPI_WIN_FLAVOR_ALLOCATE || flavor == MPI_WIN_FLAVOR_SHARED)
		*base = m->targets[m->rank].base;
	win->w_osc_module = &m->super;
	if (flavor == MPI_WIN_FLAVOR_SHARED)
		opal_infosubscribe_subscribe(&win->super, "alloc_shared_noncontig", "false",
					     answer_noncontig);
	*model = MPI_WIN_UNIFIED;
	mca_osc_pvas_count(windows, 1);
	return OMPI_SUCCESS;
}

/* ---- and freeing it ---- */

/*
 * Collective. Forgotten windows are freed by Open MPI in MPI_Finalize, when all ranks have
 * met there and have finished with it: they may end before we would have heard of them.
 */
int mca_osc_pvas_free(ompi_win_t *win)
{
	struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);
	const bool forgotten = ompi_mpi_state >= OMPI_MPI_STATE_FINALIZE_STARTED;

	if (!m)
		return OMPI_SUCCESS;
	if (!forgotten && (m->nr_locks || m->lock_all || m->nr_started >= 0 || m->exposed))
		return OMPI_ERR_RMA_SYNC;
	if (!forgotten)
		mca_osc_pvas_barrier(m);
	win->w_osc_module = NULL;
	free(m->started);
	release_module(m);
	mca_osc_pvas_count(windows, -1);
	return OMPI_SUCCESS;
}

/* MPI_PROC_NULL: the lowest rank that has memory */
int mca_osc_pvas_shared_query(ompi_win_t *win, int rank, size_t *size, int *disp_unit,
			      void *baseptr)
{
	const struct mca_osc_pvas_module *m = mca_osc_pvas_module_of(win);

	if (m->flavor != MPI_WIN_FLAVOR_SHARED)
		return OMPI_ERR_RMA_FLAVOR;
	if (rank == MPI_PROC_NULL)
		for (rank = 0; rank < m->size - 1 && !m->targets[rank].bytes; rank++)
			;
	*size = m->targets[rank].bytes;
	*disp_unit = m->targets[rank].disp_unit;
	*(void **)baseptr = m->targets[rank].base;
	return OMPI_SUCCESS;
}
