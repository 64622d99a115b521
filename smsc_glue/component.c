// SPDX-License-Identifier: LGPL-2.1-or-later
/* The component: its parameters and counters, and whether it is used. */
#include "smsc_pvas.h"

#include "opal/mca/base/mca_base_pvar.h"

#define component mca_smsc_pvas_component
#define us (&mca_smsc_pvas_component.super.smsc_version)

/* Above those of Open MPI 5.0, of which xpmem's is highest with 42 */
#define DEFAULT_PRIORITY 60

static const struct {
	const char *name, *text;
	unsigned long long *value;
} counters[] = {
	{ "copies", "Copies to or from a peer's memory", &component.counters.copies },
	{ "bytes_copied", "Bytes of these copies", &component.counters.bytes_copied },
	{ "mapped", "Regions of a peer's memory that were used in place",
	  &component.counters.mapped },
};

static void register_counters(void)
{
	size_t i;

	for (i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		mca_base_component_pvar_register(
			us, counters[i].name, counters[i].text, OPAL_INFO_LVL_4,
			MCA_BASE_PVAR_CLASS_COUNTER, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
			MCA_BASE_VAR_BIND_NO_OBJECT,
			MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, NULL, NULL,
			NULL, counters[i].value);
}

static int register_component(void)
{
	if (!mca_btl_pvas_fits_open_mpi(us, MCA_SMSC_PVAS_NAME))
		return OPAL_ERR_NOT_AVAILABLE;
	component.super.priority = DEFAULT_PRIORITY;
	mca_base_component_var_register(us, "priority",
					"Priority of the component; below 0: not used",
					MCA_BASE_VAR_TYPE_INT, NULL, 0, MCA_BASE_VAR_FLAG_SETTABLE,
					OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_ALL_EQ,
					&component.super.priority);
	component.watch_peers = true;
	mca_base_component_var_register(us, "watch_peers",
					"End the process if a peer ends before its MPI_Finalize",
					MCA_BASE_VAR_TYPE_BOOL, NULL, 0, MCA_BASE_VAR_FLAG_SETTABLE,
					OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_LOCAL,
					&component.watch_peers);
	register_counters();
	return OPAL_SUCCESS;
}

static int close_component(void)
{
	mca_smsc_pvas_watch_end();
	return OPAL_SUCCESS;
}

static int query(void)
{
	if (component.super.priority < 0 || !opal_process_info.num_local_peers ||
	    !mca_smsc_pvas_find_self())
		return OPAL_ERR_NOT_AVAILABLE;
	return OPAL_SUCCESS;
}

/*
 * Only a rank that uses this component publishes its modex, so that peers know: a rank
 * that uses another could not read a message that was left in place for it.
 */
static mca_smsc_module_t *enable(void)
{
	bool in_space;

	if (mca_btl_pvas_publish(us, MCA_SMSC_PVAS_NAME, &component.port.modex,
				 sizeof(component.port.modex), &in_space) != OPAL_SUCCESS)
		return NULL;
	mca_smsc_pvas_watch_begin();
	return &mca_smsc_pvas_module;
}

struct mca_smsc_pvas_component mca_smsc_pvas_component = {
	.super = {
		.smsc_version = {
			MCA_SMSC_DEFAULT_VERSION("pvas"),
			.mca_close_component = close_component,
			.mca_register_component_params = register_component,
		},
		.smsc_data = {
			.param_field = MCA_BASE_METADATA_PARAM_NONE,
		},
		.query = query,
		.enable = enable,
	},
};
