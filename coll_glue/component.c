// SPDX-License-Identifier: LGPL-2.1-or-later
/* The component: its parameters and counters, open and close. */
#include "nbc.h"

#include <stdlib.h>
#include <unistd.h>

#include "ompi/runtime/mpiruntime.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/util/output.h"

#include "../btl_glue/open_mpi.h"

#define component mca_coll_pvas_component
#define version component.super.collm_version

/* ---- parameters ---- */

static void register_variable(const char *name, const char *text, void *where,
			      mca_base_var_type_t type, mca_base_var_info_lvl_t level)
{
	mca_base_component_var_register(&version, name, text, type, NULL, 0,
					MCA_BASE_VAR_FLAG_SETTABLE, level,
					MCA_BASE_VAR_SCOPE_READONLY, where);
}

static void register_parameters(void)
{
	/* Above tuned's 30; below 50, so that coll/sync, which wraps others, finds us. */
	component.priority = 45;
	component.ring_limit = MCA_COLL_PVAS_SEGMENT;
	component.share = 4 << 10;
	component.share_copy = 8 << 10;
	component.segment = 64 << 10;
	component.most_ranks = 4096;
	component.devices = 1;
	component.device_latency = 50;
	component.device_bandwidth = 0;
	component.device_ahead = 0;
	component.node_ranks = 0;
	component.spin = 64;
	component.oversubscribed = -1;
	component.when_oversubscribed = -1;
	register_variable("priority", "Priority of this component; -1: not used (default: 45)",
			  &component.priority, MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_6);
	register_variable("ring_limit",
			  "Longest message in bytes that the root of a broadcast copies, without "
			  "waiting for its peers to have it; of a scatter, at most 4k of it "
			  "(default, and at most: 16k)",
			  &component.ring_limit, MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_5);
	register_variable("share",
			  "Fewest bytes of a reduction that a rank combines for the others "
			  "(default: 4k)", &component.share, MCA_BASE_VAR_TYPE_UNSIGNED_INT,
			  OPAL_INFO_LVL_5);
	register_variable("share_copy",
			  "Fewest bytes that a root and another rank copy together; not done if ranks "
			  "outnumber processors (default: 8k)", &component.share_copy,
			  MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_5);
	register_variable("segment",
			  "Bytes of a segment of long data that go from node to node, while others are "
			  "copied inside the nodes; 0: no operations over several nodes (default: 64k)",
			  &component.segment, MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_5);
	register_variable("most_ranks",
			  "Most ranks of a communicator over several nodes for which this component is "
			  "used: all of them are looked up (default: 4096)", &component.most_ranks,
			  MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6);
	register_variable("devices",
			  "Are messages to neighbors on other nodes cut into segments so that several "
			  "network devices are busy all the time? 0: no, 1: if that is faster "
			  "(default: 1)", &component.devices, MCA_BASE_VAR_TYPE_UNSIGNED_INT,
			  OPAL_INFO_LVL_5);
	register_variable("device_latency",
			  "Microseconds that a segment takes besides its transfer; with the bandwidth "
			  "it determines the shortest message that is cut (default: 50)",
			  &component.device_latency, MCA_BASE_VAR_TYPE_UNSIGNED_INT,
			  OPAL_INFO_LVL_5);
	register_variable("device_bandwidth",
			  "Mbit/s of a network device; 0: as its BTL says (default: 0)",
			  &component.device_bandwidth, MCA_BASE_VAR_TYPE_UNSIGNED_INT,
			  OPAL_INFO_LVL_5);
	register_variable("device_ahead",
			  "Segments of a network device that are in progress at a time; 0: all, so that "
			  "it is busy while one waits for acknowledgements (default: 0)",
			  &component.device_ahead, MCA_BASE_VAR_TYPE_UNSIGNED_INT,
			  OPAL_INFO_LVL_6);
	register_variable("node_ranks",
			  "For tests: so many ranks count as a node of their own; 0: those of a space "
			  "(default: 0)", &component.node_ranks, MCA_BASE_VAR_TYPE_UNSIGNED_INT,
			  OPAL_INFO_LVL_9);
	register_variable("spin",
			  "Iterations of a waiting loop between two calls of Open MPI's progress "
			  "function; always 1 if ranks outnumber processors (default: 64)",
			  &component.spin, MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_9);
	register_variable("oversubscribed",
			  "Do ranks outnumber processors? 0 or 1; -1: find out (default: -1)",
			  &component.oversubscribed, MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_9);
	register_variable("when_oversubscribed",
			  "Is this component used if ranks outnumber processors? 0: no, 1: yes, "
			  "-1: for operations that it makes faster (default: -1)",
			  &component.when_oversubscribed, MCA_BASE_VAR_TYPE_INT,
			  OPAL_INFO_LVL_6);
}

static void check_unsigned(const char *name, unsigned int *value, unsigned int least,
			   unsigned int most)
{
	unsigned int valid = *value < least ? least : *value < most ? *value : most;

	if (valid != *value && !opal_process_info.my_local_rank)
		opal_output(0, "coll pvas: coll_pvas_%s is %u, not %u (the %s)", name, valid,
			    *value, valid > *value ? "minimum" : "maximum");
	*value = valid;
}

static void check_parameters(void)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	check_unsigned("ring_limit", &component.ring_limit, 0, MCA_COLL_PVAS_SEGMENT);
	check_unsigned("share", &component.share, 1, 1U << 30);
	check_unsigned("share_copy", &component.share_copy, 1, 1U << 30);
	check_unsigned("spin", &component.spin, 1, 1U << 30);
	component.yield = component.oversubscribed > 0;
	if (component.oversubscribed < 0)
		component.yield = opal_process_info.num_local_peers >= processors;
	/* More ranks than the machine has processors are too many, wherever they are bound. */
	component.look = component.oversubscribed < 0 && !component.yield;
}

/* ---- counters ---- */

static const struct {
	const char *name, *text;
	int class;
	unsigned long long *value;
} counters[] = {
#define COUNTER(name, class, text) \
	{ #name, text, MCA_BASE_PVAR_CLASS_##class, &component.counters.name }
	COUNTER(operations, COUNTER, "Operations of this process that this component did"),
	COUNTER(passed_on, COUNTER, "Operations passed on to another component"),
	COUNTER(posts_copied, COUNTER, "Times that short data were copied for peers to read"),
	COUNTER(posts_in_place, COUNTER, "Times that peers were told where to read data in place"),
	COUNTER(posts_shared, COUNTER, "Times that this process and a peer shared a copy"),
	COUNTER(segments, COUNTER, "Segments that went over a network device of our choice"),
	COUNTER(bytes_copied, COUNTER, "Bytes that this process copied"),
	COUNTER(waits, COUNTER, "Calls of the progress function while waiting for a peer"),
	COUNTER(communicators, LEVEL, "Communicators for which this process is set up"),
	COUNTER(bytes_held, LEVEL, "Bytes that this process holds for communicators"),
#undef COUNTER
#define COUNTER(name) { "calls_" #name, "Calls of " #name " that this component did, in any form", \
			MCA_BASE_PVAR_CLASS_COUNTER, &component.counters.calls.name },
	MCA_COLL_PVAS_NAMES(COUNTER)
#undef COUNTER
};

static void register_counters(void)
{
	size_t i;

	for (i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		mca_base_component_pvar_register(
			&version, counters[i].name, counters[i].text, OPAL_INFO_LVL_4,
			counters[i].class, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
			MCA_BASE_VAR_BIND_NO_OBJECT,
			MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, NULL, NULL,
			NULL, counters[i].value);
}

static int register_component(void)
{
	if (!mca_btl_pvas_fits_open_mpi(&version, MCA_COLL_PVAS_NAME))
		return OMPI_ERR_NOT_AVAILABLE;
	register_parameters();
	register_counters();
	return OMPI_SUCCESS;
}

/* ---- open and close ---- */

/*
 * Components are initialised after the modex has been exchanged, so publish it here; but
 * not in ompi_info, which opens components, too.
 */
static int open_component(void)
{
	OBJ_CONSTRUCT(&component.lock, opal_mutex_t);
	OBJ_CONSTRUCT(&component.devices_lock, opal_mutex_t);
	OBJ_CONSTRUCT(&component.nbc_lock, opal_mutex_t);
	OBJ_CONSTRUCT(&component.requests, opal_list_t);
	if (ompi_mpi_state < OMPI_MPI_STATE_INIT_STARTED || component.priority < 0 ||
	    (!opal_process_info.num_local_peers && !mca_coll_pvas_several_nodes()) ||
	    !mca_coll_pvas_find_self())
		return OMPI_SUCCESS;
	check_parameters();
	component.choose = component.yield && component.when_oversubscribed < 0;
	if (!component.yield || component.when_oversubscribed)
		component.ready = mca_coll_pvas_publish();
	return OMPI_SUCCESS;
}

static int close_component(void)
{
	if (component.ready)
		mca_coll_pvas_progress_end();
	mca_btl_pvas_restore_fault_handlers();
	mca_coll_pvas_unmap_blocks(true);
	free(component.peers);
	component.peers = NULL;
	component.nr_peers = 0;
	OBJ_DESTRUCT(&component.requests);
	OBJ_DESTRUCT(&component.nbc_lock);
	OBJ_DESTRUCT(&component.devices_lock);
	OBJ_DESTRUCT(&component.lock);
	return OMPI_SUCCESS;
}

/*
 * After the BTLs, whose fault handlers are then called by ours; the framework is closed
 * before theirs.
 */
static int init_query(bool progress_threads, bool mpi_threads)
{
	(void)progress_threads;
	(void)mpi_threads;
	if (!component.ready)
		return OMPI_ERR_NOT_AVAILABLE;
	mca_btl_pvas_install_fault_handlers(&component.faults);
	mca_coll_pvas_progress_begin();
	return OMPI_SUCCESS;
}

struct mca_coll_pvas_component mca_coll_pvas_component = {
	.super = {
		.collm_version = {
			MCA_COLL_PVAS_BASE_VERSION,
			.mca_component_name = "pvas",
			MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
					      OMPI_RELEASE_VERSION),
			.mca_open_component = open_component,
			.mca_close_component = close_component,
			.mca_register_component_params = register_component,
		},
		.collm_data = {
			.param_field = MCA_BASE_METADATA_PARAM_NONE,
		},
		.collm_init_query = init_query,
		.collm_comm_query = mca_coll_pvas_comm_query,
	},
};
