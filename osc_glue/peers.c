// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which processes are tasks of our space and have this component, and do they still run? */
#include "osc_pvas.h"

#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "ompi/runtime/mpiruntime.h"
#include "opal/mca/pmix/pmix.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

#include "../libpvas/pvas.h"

#define component mca_osc_pvas_component

/* False if this process is not a task of a space, which is not an error */
bool mca_osc_pvas_find_self(void)
{
	const struct pvas_start *start = (const struct pvas_start *)getauxval(AT_PVAS);
	struct mca_btl_pvas_faults *faults = &component.faults;
	int self = pvas_task_get_index();

	if (!start || self < 0)
		return false;
	faults->lost = mca_osc_pvas_lost;
	faults->table = (const struct pvas_part *)start->table;
	faults->shift = start->shift;
	faults->index = self;
	component.modex.space = pvas_space_get_id(NULL);
	component.modex.version = MCA_OSC_PVAS_MODEX_VERSION;
	component.modex.index = self;
	component.modex.gen = faults->table[self].gen;
	component.modex.pid = faults->table[self].pid;
	return true;
}

/* A rank with another priority might choose another component for the same window. */
bool mca_osc_pvas_publish(void)
{
	bool in_space;

	component.modex.priority = component.priority;
	return mca_btl_pvas_publish(&component.super.osc_version, MCA_OSC_PVAS_NAME,
				    &component.modex, sizeof(component.modex),
				    &in_space) == OMPI_SUCCESS &&
	       (in_space || opal_pmix_base_async_modex);
}

/* As in coll/pvas, PMIx is asked only if ranks have not met since they published. */
static bool find_modex(const opal_process_name_t *name, struct mca_osc_pvas_modex *modex)
{
	if (opal_pmix_base_async_modex)
		return mca_btl_pvas_look_up(&component.super.osc_version, MCA_OSC_PVAS_NAME, name,
					    modex, sizeof(*modex));
	return mca_btl_pvas_look_up_in_space(MCA_OSC_PVAS_NAME, name, modex, sizeof(*modex));
}

static bool alike(const struct mca_osc_pvas_modex *modex, const opal_process_name_t *name)
{
	static bool warned;

	if (modex->version == component.modex.version &&
	    modex->priority == component.modex.priority)
		return true;
	if (!__atomic_exchange_n(&warned, true, __ATOMIC_RELAXED))
		opal_output(0, "osc pvas: not used with rank %u, which has another version or "
			    "priority", (unsigned int)name->vpid);
	return false;
}

/* Ids of spaces repeat on other nodes, so the peer's partition must also match its modex. */
bool mca_osc_pvas_find_member(const struct ompi_group_t *group, int rank,
			      struct mca_osc_pvas_target *target)
{
	const opal_process_name_t name = ompi_group_get_proc_name((ompi_group_t *)group, rank);
	struct mca_osc_pvas_modex modex = component.modex;
	const bool self = name.jobid == OPAL_PROC_MY_NAME.jobid &&
			  name.vpid == OPAL_PROC_MY_NAME.vpid;

	if (!self && (!find_modex(&name, &modex) || modex.space != component.modex.space ||
		      modex.index >= PVAS_MAX_TASKS + 2 ||
		      !mca_osc_pvas_runs(&component.faults.table[modex.index], modex.gen) ||
		      component.faults.table[modex.index].pid != modex.pid ||
		      !alike(&modex, &name)))
		return false;
	target->vpid = name.vpid;
	target->part = &component.faults.table[modex.index];
	target->gen = modex.gen;
	mca_btl_pvas_expect_faults(modex.index, modex.gen);
	return true;
}

/* All ranks come to the same answer: it follows from what all of them have published. */
bool mca_osc_pvas_same_space(struct ompi_communicator_t *comm)
{
	struct mca_osc_pvas_target target;
	int i;

	for (i = 0; i < ompi_comm_size(comm); i++)
		if (!mca_osc_pvas_find_member(comm->c_local_group, i, &target))
			return false;
	return true;
}

/* ---- peers that have ended ---- */

void mca_osc_pvas_end_job(const struct mca_osc_pvas_module *m, int rank)
{
	opal_output(0, "osc pvas: rank %u on this node ended before MPI_Finalize",
		    m->targets[rank].vpid);
	ompi_mpi_abort(&ompi_mpi_comm_world.comm, 1);
}

/* If it is time for that: do all peers still run? */
void mca_osc_pvas_watch(struct mca_osc_pvas_module *m)
{
	int i;

	if (!mca_btl_pvas_check_is_due(&m->next_check))
		return;
	for (i = 0; i < m->size; i++)
		if (!mca_osc_pvas_alive(&m->targets[i]))
			mca_osc_pvas_end_job(m, i);
}

static int rank_in(const struct mca_osc_pvas_module *m, uint32_t index)
{
	int r;

	for (r = 0; r < m->size; r++)
		if (m->targets[r].part == &component.faults.table[index])
			return m->targets[r].vpid;
	return -1;
}

/* The rank of MPI_COMM_WORLD that was in that partition; -1: none of our windows' */
static int rank_of(uint32_t index)
{
	int i, rank = component.making ? rank_in(component.making, index) : -1;
	const ompi_win_t *win;

	/* Not by a function of the array: that takes a lock. */
	for (i = 1; rank < 0 && i < ompi_mpi_windows.size; i++) {
		win = ompi_mpi_windows.addr[i];
		if (win && win->w_osc_module && win->w_osc_module->osc_put == mca_osc_pvas_put)
			rank = rank_in(mca_osc_pvas_module_of(win), index);
	}
	return rank;
}

/*
 * Called by the fault handler: this rank was using the memory of a task that has ended, in one
 * of our functions or by a pointer into a shared window. The exit status ends the job.
 */
void mca_osc_pvas_lost(uint32_t index)
{
	const int rank = rank_of(index);
	char text[100];
	int len;

	/* Without a window with that task, the fault is another component's, or the program's. */
	if (rank < 0)
		return;
	/* snprintf() of numbers takes no lock and no memory. */
	len = snprintf(text, sizeof(text),
		       "osc pvas: rank %d on this node ended before MPI_Finalize\n", rank);
	if (write(STDERR_FILENO, text, len) < len)
		_exit(1);
	_exit(1);
}
