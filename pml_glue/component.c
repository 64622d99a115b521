// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The component: its parameters and counters, and how it gets in front of ob1.
 *
 * Open MPI selects one PML and closes the others. We let it select ob1, and when it then
 * closes us, we take the place of ob1's module, as pml/monitoring does. That is so if parameter
 * pml names us, or names nothing and this is a task of a space. "--mca pml pvas" alone would
 * leave ob1 out, so it is changed into "ob1,pvas", and ob1 is loaded.
 */
#include "pml_pvas.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "ompi/runtime/mpiruntime.h"
#include "opal/mca/base/mca_base_component_repository.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/argv.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

#define component mca_pml_pvas_component
#define version component.super.pmlm_version
#define framework ompi_pml_base_framework

#define STEP 32U
#define MIN_RING 1024U

/* A default that depends on the machine and the number of ranks */
#define UNSET UINT_MAX

/* ---- parameters ---- */

static void register_uint(const char *name, const char *text, unsigned int *where,
			  unsigned int value, mca_base_var_info_lvl_t level)
{
	*where = value;
	mca_base_component_var_register(&version, name, text, MCA_BASE_VAR_TYPE_UNSIGNED_INT,
					NULL, 0, MCA_BASE_VAR_FLAG_SETTABLE, level,
					MCA_BASE_VAR_SCOPE_READONLY, where);
}

static void register_lengths(void)
{
	register_uint("ring_size", "Bytes for the ring of a peer that sends to this process "
		      "(default: 16k, less with more than 7 ranks)", &component.ring_size, UNSET,
		      OPAL_INFO_LVL_5);
	register_uint("copy_limit", "Longest message that is copied into the peer's ring "
		      "(default: 2k)", &component.copy_limit, 2048, OPAL_INFO_LVL_5);
	register_uint("burst_limit", "Longest message that is copied by a non-blocking send which "
		      "follows another one (default: 256, or 128 if there are more ranks than "
		      "processors)", &component.burst_limit, UNSET,
		      OPAL_INFO_LVL_5);
	register_uint("unexpected_limit", "Longest message that is copied although no receive "
		      "is posted; a longer one waits with its sender (default: 4k)",
		      &component.unexpected_limit, 4096, OPAL_INFO_LVL_5);
	register_uint("unexpected_max", "Bytes of messages of a peer that this process copies "
		      "although no receive is posted; more wait with their sender (default: 1m)",
		      &component.unexpected_max, 1 << 20, OPAL_INFO_LVL_5);
}

static void register_parameters(void)
{
	register_lengths();
	register_uint("share_limit", "Bytes from which on the sender helps to copy a message "
		      "(0: never; default: 32k, or 0 if there are more ranks than processors)",
		      &component.share_limit, UNSET, OPAL_INFO_LVL_5);
	register_uint("share_piece", "Fewest bytes that either side copies at a time "
		      "(default: 16k)", &component.share_piece, 16 << 10, OPAL_INFO_LVL_9);
	register_uint("first_touch", "1: the receiver touches each page of its buffer before the "
		      "sender helps to copy, so that new pages are on the receiver's node "
		      "(default: 1 if there are several NUMA nodes)", &component.first_touch,
		      UNSET, OPAL_INFO_LVL_9);
	register_uint("spin", "Looks into the rings between two calls of Open MPI's progress "
		      "function (default: 16, or 1 if there are more ranks than processors)",
		      &component.spin, UNSET, OPAL_INFO_LVL_9);
	component.watch_peers = true;
	mca_base_component_var_register(&version, "watch_peers", "End the job if a peer in this "
					"space ends before its MPI_Finalize (default: true)",
					MCA_BASE_VAR_TYPE_BOOL, NULL, 0,
					MCA_BASE_VAR_FLAG_SETTABLE, OPAL_INFO_LVL_5,
					MCA_BASE_VAR_SCOPE_READONLY, &component.watch_peers);
}

static unsigned int clamp(const char *name, unsigned int value, unsigned int least,
			  unsigned int most)
{
	unsigned int valid = value < least ? least : value < most ? value : most;

	if (valid != value && !component.active && !opal_process_info.my_local_rank)
		opal_output(0, "pml pvas: pml_pvas_%s is %u, not %u (the %s)", name, valid, value,
			    valid > value ? "minimum" : "maximum");
	return valid;
}

/*
 * All rings of a rank that exchanges messages with all others take no more than 96 KiB, as long as
 * that is enough. With 16 ranks a ring has room for a message of 1 KiB and 63 references, a window
 * of OSU's benchmarks: a sender that must wait for room costs two context switches.
 */
static unsigned int default_ring_size(unsigned int peers)
{
	const unsigned int most = 16 << 10, size = peers ? (96 << 10) / peers & ~(STEP - 1) : most;

	return size > most ? most : size > MIN_RING ? size : MIN_RING;
}

static void check_parameters(void)
{
	const unsigned int peers = opal_process_info.num_local_peers;
	const bool oversubscribed = peers >= sysconf(_SC_NPROCESSORS_ONLN);

	component.oversubscribed = oversubscribed;
	if (component.ring_size == UNSET)
		component.ring_size = default_ring_size(peers);
	component.ring_size = clamp("ring_size", component.ring_size, MIN_RING, 1 << 20);
	component.ring_size = (component.ring_size + STEP - 1) & ~(STEP - 1);
	component.unexpected_limit = clamp("unexpected_limit", component.unexpected_limit, 0,
					   1 << 30);
	component.share_piece = clamp("share_piece", component.share_piece, 4096, 1 << 30);
	if (component.burst_limit == UNSET)
		component.burst_limit = oversubscribed ? 128 : 256;
	if (component.share_limit == UNSET)
		component.share_limit = oversubscribed ? 0 : 32 << 10;
	if (component.first_touch == UNSET)
		component.first_touch = component.share_limit && mca_btl_pvas_several_nodes();
	if (component.spin == UNSET)
		component.spin = oversubscribed ? 1 : 16;
}

/* ---- counters ---- */

static void register_counter(const char *name, int class, unsigned long long *value,
			     const char *text)
{
	mca_base_component_pvar_register(&version, name, text, OPAL_INFO_LVL_4, class,
					 MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
					 MCA_BASE_VAR_BIND_NO_OBJECT,
					 MCA_BASE_PVAR_FLAG_READONLY |
					 MCA_BASE_PVAR_FLAG_CONTINUOUS, NULL, NULL, NULL, value);
}

#define COUNTER(name, class, text) \
	register_counter(#name, MCA_BASE_PVAR_CLASS_##class, &component.counters.name, text)

static void register_counters(void)
{
	COUNTER(eager, COUNTER, "Messages copied into a peer's ring");
	COUNTER(references, COUNTER, "Messages left in place for the peer to fetch");
	COUNTER(local, COUNTER, "Messages from this process to itself");
	COUNTER(fetched, COUNTER, "Messages copied straight from the sender's buffer");
	COUNTER(bytes_fetched, COUNTER, "Bytes of them");
	COUNTER(pieces_helped, COUNTER, "Pieces of our messages that we copied for the receiver");
	COUNTER(unexpected, COUNTER, "Messages that came before their receive");
	COUNTER(unexpected_bytes, LEVEL, "Bytes this process holds for them");
	COUNTER(unexpected_most, HIGHWATERMARK, "Most bytes it ever held for them");
	COUNTER(waits, COUNTER, "Sends that found no room in the peer's ring");
	COUNTER(communicators, LEVEL, "Communicators that this component owns");
}

/* ---- getting ob1 ---- */

/* Does MCA parameter pml name what is to be used? Else Open MPI takes ob1 or another one. */
static bool is_selected_by_name(void)
{
	const char *selection = framework.framework_selection;

	return selection && selection[0] && selection[0] != '^';
}

/* If it does: us? */
static bool is_named(void)
{
	const char *selection = framework.framework_selection;
	bool found = false;
	char **names;
	int i;

	names = opal_argv_split(selection, ',');
	for (i = 0; names && names[i]; i++)
		found |= !strcmp(names[i], "pvas");
	opal_argv_free(names);
	return found;
}

static const mca_base_component_t *find_ob1(void)
{
	mca_base_component_list_item_t *item;

	OPAL_LIST_FOREACH(item, &framework.framework_components, mca_base_component_list_item_t)
		if (!strcmp(item->cli_component->mca_component_name, "ob1"))
			return item->cli_component;
	return NULL;
}

/* Open MPI compares the beginning of the parameter with the names: ob1 must be the first. */
static bool load_ob1(void)
{
	static const char both[] = "ob1,pvas";
	const mca_base_component_t *ob1 = find_ob1();
	int var = mca_base_var_find("ompi", "pml", NULL, NULL);

	if (var < 0 || mca_base_var_set_value(var, both, sizeof(both), MCA_BASE_VAR_SOURCE_SET,
					      NULL) != OPAL_SUCCESS)
		return false;
	if (ob1)
		return true;
	if (mca_base_component_find(NULL, &framework, false, true) != OPAL_SUCCESS)
		return false;
	ob1 = find_ob1();
	return ob1 && ob1->mca_register_component_params() == OPAL_SUCCESS;
}

/* Open MPI forgets the variables of a component that it closes: do it again when in use. */
void mca_pml_pvas_register_again(void)
{
	register_parameters();
	check_parameters();
	register_counters();
}

/* An error would end MPI_Init if "pml" names ob1 and us: we are not opened, which is none. */
static int register_component(void)
{
	const bool by_name = is_selected_by_name();

	component.requested = false;
	if (!mca_btl_pvas_fits_open_mpi(&version, MCA_PML_PVAS_NAME))
		return OMPI_SUCCESS;
	register_parameters();
	register_counters();
	component.requested = by_name ? is_named() : getauxval(AT_PVAS) != 0;
	if (component.requested && by_name && !load_ob1()) {
		opal_output(0, "pml pvas: needs pml ob1, which can't be loaded");
		return OMPI_ERR_NOT_AVAILABLE;
	}
	return OMPI_SUCCESS;
}

/* ---- getting in front of it ---- */

static bool prepare(void)
{
	if (!mca_pml_pvas_find_self())
		return false;
	check_parameters();
	OBJ_CONSTRUCT(&component.lock, opal_mutex_t);
	mca_pml_pvas_list_init(&component.early);
	component.arrived = 1;
	return mca_pml_pvas_make_port() && mca_pml_pvas_publish();
}

static void get_in_front(void)
{
	component.ob1 = mca_pml;
	component.ob1_component = mca_pml_base_selected_component;
	mca_pml_pvas_module.pml_max_contextid = mca_pml.pml_max_contextid;
	if (mca_pml_pvas_module.pml_max_contextid >= MCA_PML_PVAS_CONTEXTS)
		mca_pml_pvas_module.pml_max_contextid = MCA_PML_PVAS_CONTEXTS - 1;
	mca_pml_pvas_module.pml_max_tag = mca_pml.pml_max_tag;
	mca_pml_pvas_module.pml_flags = mca_pml.pml_flags;
	mca_pml = mca_pml_pvas_module;
	mca_pml_base_selected_component.pmlm_finalize = component.super.pmlm_finalize;
	/* After the BTLs', whose handlers are then called by ours */
	mca_btl_pvas_install_fault_handlers(&component.faults);
	component.active = true;
}

static int open_component(void)
{
	return component.requested ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}

/*
 * Open MPI has selected a PML, or gives up. It publishes what we published before the ranks
 * meet. The reference keeps our variables.
 */
static int close_component(void)
{
	const char *selected = mca_pml_base_selected_component.pmlm_version.mca_component_name;

	if (!component.requested || component.active ||
	    ompi_mpi_state < OMPI_MPI_STATE_INIT_STARTED || strcmp(selected, "ob1") || !prepare())
		return OMPI_SUCCESS;
	if (mca_base_component_repository_retain_component("pml", "pvas") == OPAL_SUCCESS)
		get_in_front();
	return OMPI_SUCCESS;
}

/* Never selected: see above. */
static mca_pml_base_module_t *init_component(int *priority, bool progress_threads,
					     bool mpi_threads)
{
	(void)progress_threads;
	(void)mpi_threads;
	*priority = -1;
	return NULL;
}

/* The port stays until the process ends: a peer that has not yet finalized may look at it. */
static int finalize_component(void)
{
	opal_progress_unregister(mca_pml_pvas_progress);
	mca_pml_pvas_notify_finalize();
	mca_btl_pvas_restore_fault_handlers();
	mca_pml_base_selected_component = component.ob1_component;
	mca_pml = component.ob1;
	component.active = false;
	mca_pml_pvas_free_requests();
	mca_pml_pvas_free_readers();
	mca_pml_pvas_free_peers();
	return component.ob1_component.pmlm_finalize();
}

struct mca_pml_pvas_component mca_pml_pvas_component = {
	.super = {
		.pmlm_version = {
			.mca_register_component_params = register_component,
			.mca_open_component = open_component,
			.mca_close_component = close_component,
			MCA_PML_BASE_VERSION_2_0_0,
			MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
					      OMPI_RELEASE_VERSION),
			.mca_component_name = "pvas",
		},
		.pmlm_init = init_component,
		.pmlm_finalize = finalize_component,
		.pmlm_data = { .param_field = MCA_BASE_METADATA_PARAM_NONE },
	},
};
