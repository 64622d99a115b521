// SPDX-License-Identifier: LGPL-2.1-or-later
/* The component: its counters, open, init and close, and publishing the modex. */
#include "btl_pvas.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "opal/mca/base/mca_base_pvar.h"
#include "opal/util/proc.h"

#include "../libpvas/pvas.h"

#define component mca_btl_pvas_component

/* ---- counters ---- */

static const struct {
	const char *name, *text;
	int class;
	unsigned long long *value;
} counters[] = {
#define COUNTER(name, member, class, text) \
	{ name, text, MCA_BASE_PVAR_CLASS_##class, &component.counters.member }
	COUNTER("bytes_held", bytes_held, LEVEL, "Bytes this process holds for communication"),
	COUNTER("bytes_most", bytes_most, HIGHWATERMARK,
		"Most bytes this process ever held for communication"),
	COUNTER("fast_boxes", fast_boxes, LEVEL, "Fast boxes this process gives to its peers"),
	COUNTER("eager", eager, COUNTER, "Fragments put into a peer's queue or fast box"),
	COUNTER("references", references, COUNTER, "Fragments left in place for the peer to read"),
	COUNTER("rendezvous", gets, COUNTER, "Messages copied straight from a peer's buffer"),
	COUNTER("puts", puts, COUNTER, "Copies straight into a peer's buffer"),
	COUNTER("atomics", atomics, COUNTER, "Atomic operations on a peer's memory"),
	COUNTER("bytes_copied", bytes_copied, COUNTER, "Bytes copied by gets and puts"),
	COUNTER("pieces_helped", pieces_helped, COUNTER,
		"Pieces of our messages that we copied for the receiver"),
	COUNTER("waits", waits, COUNTER, "Times that something found no room at the peer"),
#undef COUNTER
};

static void register_counters(void)
{
	size_t i;

	for (i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		mca_base_component_pvar_register(
			&component.super.btl_version, counters[i].name, counters[i].text,
			OPAL_INFO_LVL_4, counters[i].class, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG,
			NULL, MCA_BASE_VAR_BIND_NO_OBJECT,
			MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, NULL, NULL,
			NULL, counters[i].value);
}

static int mca_btl_pvas_component_register(void)
{
	if (!mca_btl_pvas_fits_open_mpi(&component.super.btl_version, MCA_BTL_PVAS_NAME))
		return OPAL_ERR_NOT_AVAILABLE;
	mca_base_var_group_component_register(&component.super.btl_version,
					      "PVAS byte transfer layer: ranks in one address space");
	mca_btl_pvas_register_parameters();
	register_counters();
	return OPAL_SUCCESS;
}

/* ---- open and close ---- */

static int mca_btl_pvas_component_open(void)
{
	int i;

	for (i = 0; i < MCA_BTL_PVAS_NR_LOCKS; i++)
		OBJ_CONSTRUCT(&component.locks[i], opal_mutex_t);
	OBJ_CONSTRUCT(&component.lock, opal_mutex_t);
	OBJ_CONSTRUCT(&component.pending, opal_list_t);
	OBJ_CONSTRUCT(&component.completed, opal_list_t);
	return OPAL_SUCCESS;
}

static int mca_btl_pvas_component_close(void)
{
	int i;

	mca_btl_pvas_restore_timer_slack();
	OBJ_DESTRUCT(&component.completed);
	OBJ_DESTRUCT(&component.pending);
	OBJ_DESTRUCT(&component.lock);
	for (i = 0; i < MCA_BTL_PVAS_NR_LOCKS; i++)
		OBJ_DESTRUCT(&component.locks[i]);
	return OPAL_SUCCESS;
}

/* ---- init ---- */

/* False if this process is not a task of a space, which is not an error */
static bool find_space(void)
{
	const struct pvas_start *start;
	struct pvas_task_info me;
	int self = pvas_task_get_index();

	if (self < 0 || pvas_task_get(self, &me))
		return false;
	start = (const struct pvas_start *)getauxval(AT_PVAS);
	component.index = self;
	component.gen = start->gen;
	component.shift = start->shift;
	component.space = pvas_space_get_id(NULL);
	component.table = (const struct pvas_part *)start->table;
	return true;
}

static bool make_port(void)
{
	component.port = mca_btl_pvas_map(component.queue_size);
	if (!component.port)
		return false;
	mca_btl_pvas_ring_init(&component.port->queue, (char *)(component.port + 1),
			       component.queue_size - sizeof(*component.port));
	component.queue_batch = 1;
	return true;
}

static int publish_modex(void)
{
	struct mca_btl_pvas_modex *modex = &component.port->modex;
	bool in_space;

	*modex = (struct mca_btl_pvas_modex) {
		.version = MCA_BTL_PVAS_MODEX_VERSION,
		.space = component.space,
		.index = component.index,
		.gen = component.gen,
		.pid = component.table[component.index].pid,
		.eager_limit = mca_btl_pvas.super.btl_eager_limit,
		.port = (uint64_t)component.port,
	};
	return mca_btl_pvas_publish(&component.super.btl_version, MCA_BTL_PVAS_NAME, modex,
				    sizeof(*modex), &in_space);
}

static mca_btl_base_module_t **mca_btl_pvas_component_init(int *nr, bool progress_threads,
							   bool mpi_threads)
{
	mca_btl_base_module_t **modules;

	(void)progress_threads;
	(void)mpi_threads;
	*nr = 0;
	if (!opal_process_info.num_local_peers || !find_space())
		return NULL;
	mca_btl_pvas_check_parameters();
	modules = calloc(1, sizeof(*modules));
	component.fbox_in = calloc(component.fbox_max + 1, sizeof(*component.fbox_in));
	if (!modules || !component.fbox_in || !make_port())
		goto err_free;
	if (publish_modex() != OPAL_SUCCESS)
		goto err_unmap;
	mca_btl_pvas_account((component.fbox_max + 1) * sizeof(*component.fbox_in));
	mca_btl_pvas_catch_faults();
	mca_btl_pvas_raise_timer_slack();
	modules[0] = &mca_btl_pvas.super;
	*nr = 1;
	return modules;

err_unmap:
	mca_btl_pvas_unmap(component.port, component.queue_size);
	component.port = NULL;
err_free:
	free(component.fbox_in);
	free(modules);
	return NULL;
}

struct mca_btl_pvas_component mca_btl_pvas_component = {
	.super = {
		.btl_version = {
			MCA_BTL_DEFAULT_VERSION("pvas"),
			.mca_open_component = mca_btl_pvas_component_open,
			.mca_close_component = mca_btl_pvas_component_close,
			.mca_register_component_params = mca_btl_pvas_component_register,
		},
		.btl_data = {
			.param_field = MCA_BASE_METADATA_PARAM_NONE,
		},
		.btl_init = mca_btl_pvas_component_init,
		.btl_progress = mca_btl_pvas_component_progress,
	},
};
