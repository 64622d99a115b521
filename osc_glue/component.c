// SPDX-License-Identifier: LGPL-2.1-or-later
/* The component: its parameters and counters, open and close, and for which windows it is. */
#include "osc_pvas.h"

#include <unistd.h>

#include "ompi/runtime/mpiruntime.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/util/proc.h"

#define component mca_osc_pvas_component
#define version component.super.osc_version

static void register_parameter(const char *name, const char *text, mca_base_var_type_t type,
			       mca_base_var_info_lvl_t level, void *where)
{
	mca_base_component_var_register(&version, name, text, type, NULL, 0,
					MCA_BASE_VAR_FLAG_SETTABLE, level,
					MCA_BASE_VAR_SCOPE_READONLY, where);
}

static void register_parameters(void)
{
	/* Above osc/rdma's 101 and osc/sm's 100 */
	component.priority = 120;
	component.spin = 64;
	component.poll_interval = 64;
	register_parameter("priority", "Priority of this component; -1: not used (default: 120)",
			   MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_6, &component.priority);
	register_parameter("spin", "Iterations of a waiting loop between two calls of Open MPI's "
			   "progress function; always 1 if ranks outnumber processors (default: 64)",
			   MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_9, &component.spin);
	register_parameter("poll_interval", "Calls of MPI_Win_flush(), MPI_Win_sync() and others "
			   "that a program may poll with between two calls of the progress "
			   "function (default: 64, or 8 if ranks outnumber processors)",
			   MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_9, &component.poll_interval);
}

static void check_parameters(void)
{
	component.yield = opal_process_info.num_local_peers >= sysconf(_SC_NPROCESSORS_ONLN);
	if (component.yield && component.poll_interval > 8)
		component.poll_interval = 8;
	if (!component.spin)
		component.spin = 1;
	if (component.poll_interval < 1)
		component.poll_interval = 1;
}

#define COUNTER(name, class, text) \
	mca_base_component_pvar_register(&version, #name, text, OPAL_INFO_LVL_4, \
					 MCA_BASE_PVAR_CLASS_##class, \
					 MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, \
					 MCA_BASE_VAR_BIND_NO_OBJECT, \
					 MCA_BASE_PVAR_FLAG_READONLY | \
					 MCA_BASE_PVAR_FLAG_CONTINUOUS, NULL, NULL, NULL, \
					 &component.counters.name)

static void register_counters(void)
{
	COUNTER(puts, COUNTER, "Calls of MPI_Put() and MPI_Rput()");
	COUNTER(gets, COUNTER, "Calls of MPI_Get() and MPI_Rget()");
	COUNTER(accumulates, COUNTER, "Accumulates, also those that fetch or compare");
	COUNTER(locked_accumulates, COUNTER, "Those of them that took a lock");
	COUNTER(locks, COUNTER, "Targets locked by MPI_Win_lock() and MPI_Win_lock_all()");
	COUNTER(bytes_copied, COUNTER, "Bytes that this process put and got");
	COUNTER(waits, COUNTER, "Calls of the progress function while waiting for a peer");
	COUNTER(windows, LEVEL, "Windows that this component does");
	COUNTER(bytes_held, LEVEL, "Bytes that this process has mapped for them");
}

static int register_component(void)
{
	if (!mca_btl_pvas_fits_open_mpi(&version, MCA_OSC_PVAS_NAME))
		return OMPI_ERR_NOT_AVAILABLE;
	register_parameters();
	register_counters();
	return OMPI_SUCCESS;
}

/* The modex is exchanged later in MPI_Init; ompi_info opens components, too. */
static int open_component(void)
{
	if (ompi_mpi_state < OMPI_MPI_STATE_INIT_STARTED || component.priority < 0 ||
	    !mca_osc_pvas_find_self())
		return OMPI_SUCCESS;
	check_parameters();
	component.ready = mca_osc_pvas_publish();
	return OMPI_SUCCESS;
}

/* After the BTLs, whose fault handlers are then called by ours */
static int init(bool progress_threads, bool mpi_threads)
{
	(void)progress_threads;
	(void)mpi_threads;
	if (!component.ready)
		return OMPI_ERR_NOT_AVAILABLE;
	mca_btl_pvas_install_fault_handlers(&component.faults);
	return OMPI_SUCCESS;
}

static int finalize(void)
{
	mca_btl_pvas_restore_fault_handlers();
	return OMPI_SUCCESS;
}

/* Called for each window, in each rank by itself */
static int query(ompi_win_t *win, void **base, size_t size, int disp_unit,
		 struct ompi_communicator_t *comm, struct opal_info_t *info, int flavor)
{
	(void)win;
	(void)base;
	(void)size;
	(void)disp_unit;
	(void)info;
	(void)flavor;
	if (OMPI_COMM_IS_INTER(comm) || !mca_osc_pvas_same_space(comm))
		return -1;
	return component.priority;
}

struct mca_osc_pvas_component mca_osc_pvas_component = {
	.super = {
		.osc_version = {
			OMPI_OSC_BASE_VERSION_3_0_0,
			.mca_component_name = "pvas",
			MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
					      OMPI_RELEASE_VERSION),
			.mca_open_component = open_component,
			.mca_register_component_params = register_component,
		},
		.osc_data = {
			.param_field = MCA_BASE_METADATA_PARAM_NONE,
		},
		.osc_init = init,
		.osc_query = query,
		.osc_select = mca_osc_pvas_select,
		.osc_finalize = finalize,
	},
};
