// SPDX-License-Identifier: LGPL-2.1-or-later
/* The component, and for which communicators it is selected. */
#include "coll_pretend.h"

#include <stdlib.h>

#include "opal/mca/base/mca_base_var.h"

#define component mca_coll_pretend_component

/* ---- the module ---- */

static void construct(mca_coll_pretend_module_t *m)
{
	m->existing = NULL;
	m->stand_in = NULL;
	m->nr = 0;
}

static void destruct(mca_coll_pretend_module_t *m)
{
	free(m->existing);
	free(m->stand_in);
}

OBJ_CLASS_INSTANCE(mca_coll_pretend_module_t, mca_coll_base_module_t, construct, destruct);

uint32_t mca_coll_pretend_world_rank(struct ompi_communicator_t *comm, int rank)
{
	return ompi_group_get_proc_name(comm->c_local_group, rank).vpid;
}

static bool find_existing(mca_coll_pretend_module_t *m, struct ompi_communicator_t *comm)
{
	uint32_t world;
	int rank, i;

	m->existing = malloc(component.ranks * sizeof(*m->existing));
	m->stand_in = malloc(component.ranks * sizeof(*m->stand_in));
	if (!m->existing || !m->stand_in)
		return false;
	for (i = 0; i < component.ranks; i++)
		m->stand_in[i] = -1;
	for (rank = 0; rank < ompi_comm_size(comm) && m->nr < component.ranks; rank++) {
		world = mca_coll_pretend_world_rank(comm, rank);
		if (world >= (uint32_t)component.ranks)
			continue;
		m->stand_in[world] = rank;
		m->existing[m->nr++] = rank;
	}
	return m->nr > 0;
}

static int enable(mca_coll_base_module_t *module, struct ompi_communicator_t *comm)
{
	(void)module;
	(void)comm;
	return OMPI_SUCCESS;
}

static mca_coll_base_module_t *query(struct ompi_communicator_t *comm, int *priority)
{
	mca_coll_pretend_module_t *m;

	if (!component.ranks || OMPI_COMM_IS_INTER(comm))
		return NULL;
	m = OBJ_NEW(mca_coll_pretend_module_t);
	if (!m || !find_existing(m, comm) || m->nr == ompi_comm_size(comm)) {
		if (m)
			OBJ_RELEASE(m);
		return NULL;
	}
	mca_coll_pretend_share_group(comm->c_local_group);
	*priority = component.priority;
	m->super.coll_module_enable = enable;
	m->super.coll_allgather = mca_coll_pretend_allgather;
	m->super.coll_allreduce = mca_coll_pretend_allreduce;
	m->super.coll_barrier = mca_coll_pretend_barrier;
	m->super.coll_bcast = mca_coll_pretend_bcast;
	m->super.coll_iallreduce = mca_coll_pretend_iallreduce;
	m->super.coll_ibarrier = mca_coll_pretend_ibarrier;
	return &m->super;
}

/* ---- the component ---- */

static int register_component(void)
{
	component.ranks = 0;
	component.priority = 90;
	mca_base_component_var_register(&component.super.collm_version, "ranks",
					"How many ranks of MPI_COMM_WORLD exist, from 0; 0: all. Set by "
					"pvasrun --pretend",
					MCA_BASE_VAR_TYPE_INT, NULL, 0, MCA_BASE_VAR_FLAG_SETTABLE,
					OPAL_INFO_LVL_9, MCA_BASE_VAR_SCOPE_READONLY,
					&component.ranks);
	mca_base_component_var_register(&component.super.collm_version, "priority",
					"Priority of this component (default: 90)",
					MCA_BASE_VAR_TYPE_INT, NULL, 0, MCA_BASE_VAR_FLAG_SETTABLE,
					OPAL_INFO_LVL_9, MCA_BASE_VAR_SCOPE_READONLY,
					&component.priority);
	return OMPI_SUCCESS;
}

static int init_query(bool progress_threads, bool mpi_threads)
{
	(void)progress_threads;
	(void)mpi_threads;
	return component.ranks > 0 ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}

mca_coll_pretend_component_t mca_coll_pretend_component = {
	.super = {
		.collm_version = {
			MCA_COLL_BASE_VERSION_2_0_0,
			.mca_component_name = "pretend",
			MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
					      OMPI_RELEASE_VERSION),
			.mca_register_component_params = register_component,
		},
		.collm_data = { .param_field = MCA_BASE_METADATA_PARAM_NONE },
		.collm_init_query = init_query,
		.collm_comm_query = query,
	},
};
