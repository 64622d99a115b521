// SPDX-License-Identifier: LGPL-2.1-or-later
/* The module: for which communicators it is selected, and to whom it passes operations on. */
#include "nbc_operations.h"
#include "nodes.h"
#include "operations.h"

#include <stdlib.h>
#include <string.h>

#define component mca_coll_pvas_component

__thread int mca_coll_pvas_inside;

static void construct(mca_coll_pvas_module_t *m)
{
	memset(&m->previous, 0, sizeof(*m) - offsetof(mca_coll_pvas_module_t, previous));
}

static void destruct(mca_coll_pvas_module_t *m)
{
	if (m->block)
		mca_coll_pvas_leave_block(m, m->block);
	mca_coll_pvas_nbc_forget(m);
	mca_coll_pvas_nbc_leave(m, &m->nbc);
	if (m->persistent)
		mca_coll_pvas_put_persistent(m, m->persistent);
	free(m->neighbors);
#define RELEASE(name, type)					\
	if (m->previous.name##_module)				\
		OBJ_RELEASE(m->previous.name##_module);
	MCA_COLL_PVAS_OPERATIONS(RELEASE)
#undef RELEASE
}

OBJ_CLASS_INSTANCE(mca_coll_pvas_module_t, mca_coll_base_module_t, construct, destruct);

/* Modules are enabled by rising priority: the functions selected now are those below ours. */
static int enable(mca_coll_base_module_t *module, struct ompi_communicator_t *comm)
{
	mca_coll_pvas_module_t *m = (mca_coll_pvas_module_t *)module;

	/* The first operations of a communicator, and those without memory, need them. */
	if (!comm->c_coll->coll_bcast || !comm->c_coll->coll_ibcast)
		return OMPI_ERROR;
#define SAVE(name, type) MCA_COLL_PVAS_SAVE(m, comm, name)
	MCA_COLL_PVAS_OPERATIONS(SAVE)
#undef SAVE
	m->comm = comm;
	m->rank = ompi_comm_rank(comm);
	m->size = ompi_comm_size(comm);
	mca_coll_pvas_nbc_plan(m);
	mca_coll_pvas_look_at_processors();
	return OMPI_SUCCESS;
}

/*
 * All ranks must come to the same answer, without asking each other: it follows from what
 * all of them have published.
 */
mca_coll_base_module_t *mca_coll_pvas_comm_query(struct ompi_communicator_t *comm, int *priority)
{
	mca_coll_pvas_module_t *m;

	if (!component.ready || OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2)
		return NULL;
	if (ompi_group_have_remote_peers(comm->c_local_group) || !mca_coll_pvas_same_space(comm))
		return mca_coll_pvas_nodes_query(comm, priority);
	m = OBJ_NEW(mca_coll_pvas_module_t);
	if (!m)
		return NULL;
	*priority = component.priority;
	m->super.coll_module_enable = enable;
#define SET(name, type) m->super.coll_##name = mca_coll_pvas_##name;
	MCA_COLL_PVAS_OPERATIONS(SET)
#undef SET
	return &m->super;
}
