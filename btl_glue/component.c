// SPDX-License-Identifier: LGPL-2.1-or-later
/* The component: its parameters and counters, init, what peers are told. */
#include "btl_pvas.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/pmix/pmix.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

#include "../libpvas/pvas.h"

#define component mca_btl_pvas_component

/* ---- parameters ---- */

/* Not set: decided when the number of ranks is known */
#define SHARE_BY_PROCESSORS UINT_MAX
#define SHARE_LIMIT (32 << 10)

static void register_uint(const char *name, const char *text, unsigned int *where,
			  unsigned int value, mca_base_var_info_lvl_t level)
{
	*where = value;
	mca_base_component_var_register(&component.super.btl_version, name, text,
					MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, 0,
					MCA_BASE_VAR_FLAG_SETTABLE, level,
					MCA_BASE_VAR_SCOPE_LOCAL, where);
}

static void register_int(const char *name, const char *text, int *where, int value)
{
	*where = value;
	mca_base_component_var_register(&component.super.btl_version, name, text,
					MCA_BASE_VAR_TYPE_INT, NULL, 0,
					MCA_BASE_VAR_FLAG_SETTABLE, OPAL_INFO_LVL_9,
					MCA_BASE_VAR_SCOPE_LOCAL, where);
}

static void register_parameters(void)
{
	register_uint("queue_size", "Bytes in the queue that all peers without a fast box share "
		      "(a power of two, default: 64k)", &component.queue_size, 64 << 10,
		      OPAL_INFO_LVL_5);
	register_uint("fbox_threshold", "Messages to a peer before a fast box is asked for "
		      "(0: no fast boxes, default: 16)", &component.box_threshold, 16,
		      OPAL_INFO_LVL_5);
	register_uint("fbox_max", "Fast boxes that this process gives to its peers at a time "
		      "(default: 8)", &component.box_max, 8, OPAL_INFO_LVL_5);
	register_uint("fbox_size", "Bytes in a fast box (a power of two, default: 16k)",
		      &component.box_size, 16 << 10, OPAL_INFO_LVL_5);
	register_uint("share_limit", "Bytes from which on the sender helps to copy a message "
		      "(0: never; default: 32k, or 0 if there are more ranks than processors)",
		      &component.share_limit, SHARE_BY_PROCESSORS, OPAL_INFO_LVL_5);
	register_uint("share_piece", "Fewest bytes that either side copies at a time (default: 16k)",
		      &component.share_piece, 16 << 10, OPAL_INFO_LVL_9);
	register_int("free_list_num", "Fragments of each size to allocate at first (default: 0)",
		     &component.list_num, 0);
	register_int("free_list_max", "Most fragments of each size (-1: no limit, default: 16)",
		     &component.list_max, 16);
	register_int("free_list_inc", "Fragments to add when there are no more (default: 4)",
		     &component.list_inc, 4);
	component.watch = true;
	mca_base_component_var_register(&component.super.btl_version, "watch_peers",
					"End the job if a peer on this node ends before its "
					"MPI_Finalize (default: true)",
					MCA_BASE_VAR_TYPE_BOOL, NULL, 0,
					MCA_BASE_VAR_FLAG_SETTABLE, OPAL_INFO_LVL_5,
					MCA_BASE_VAR_SCOPE_LOCAL, &component.watch);
}

static void register_module(void)
{
	mca_btl_base_module_t *btl = &mca_btl_pvas.super;

	/* Above vader: where both reach a peer, this one is used. */
	btl->btl_exclusivity = MCA_BTL_EXCLUSIVITY_HIGH + 1;
	/* A header of the upper layer beside 4 KiB of data */
	btl->btl_eager_limit = 4096 + 128;
	btl->btl_rndv_eager_limit = btl->btl_eager_limit;
	btl->btl_max_send_size = 32 << 10;
	btl->btl_min_rdma_pipeline_size = INT_MAX;
	btl->btl_rdma_pipeline_send_length = btl->btl_eager_limit;
	btl->btl_rdma_pipeline_frag_size = INT_MAX;
	/*
	 * Not SEND_INPLACE: the upper layer then offers each short message to
	 * btl_sendi first, which puts it where the peer reads it in one copy.
	 */
	btl->btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_RDMA | MCA_BTL_FLAGS_ATOMIC_OPS |
			 MCA_BTL_FLAGS_ATOMIC_FOPS;
	btl->btl_atomic_flags = MCA_BTL_ATOMIC_SUPPORTS_ADD | MCA_BTL_ATOMIC_SUPPORTS_AND |
				MCA_BTL_ATOMIC_SUPPORTS_OR | MCA_BTL_ATOMIC_SUPPORTS_XOR |
				MCA_BTL_ATOMIC_SUPPORTS_SWAP | MCA_BTL_ATOMIC_SUPPORTS_MIN |
				MCA_BTL_ATOMIC_SUPPORTS_MAX | MCA_BTL_ATOMIC_SUPPORTS_CSWAP |
				MCA_BTL_ATOMIC_SUPPORTS_32BIT | MCA_BTL_ATOMIC_SUPPORTS_GLOB;
	/*
	 * Above vader's 40000: vader stays in the list of those that can do RDMA,
	 * and rendezvous is left to us only if we have over half of all.
	 */
	btl->btl_bandwidth = 100000;
	btl->btl_latency = 1;
	mca_btl_base_param_register(&component.super.btl_version, btl);
}

/* ---- counters ---- */

static size_t list_bytes(const opal_free_list_t *list)
{
	return list->fl_num_allocated * list->fl_frag_size;
}

static int read_bytes_held(const struct mca_base_pvar_t *pvar, void *value, void *obj)
{
	(void)pvar;
	(void)obj;
	*(unsigned long long *)value =
		component.counters.bytes_held + list_bytes(&component.small) +
		list_bytes(&component.eager) + list_bytes(&component.large) +
		opal_list_get_size(&component.endpoints) * sizeof(pvas_endpoint_t);
	return OPAL_SUCCESS;
}

static void register_counter(const char *name, const char *text, int var_class,
			     mca_base_get_value_fn_t read, unsigned long long *where)
{
	mca_base_component_pvar_register(&component.super.btl_version, name, text,
					 OPAL_INFO_LVL_4, var_class,
					 MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
					 MCA_BASE_VAR_BIND_NO_OBJECT,
					 MCA_BASE_PVAR_FLAG_READONLY |
						 MCA_BASE_PVAR_FLAG_CONTINUOUS,
					 read, NULL, NULL, where);
}

static void register_counters(void)
{
	struct pvas_counters *c = &component.counters;

	register_counter("bytes_held", "Bytes this process holds for communication",
			 MCA_BASE_PVAR_CLASS_LEVEL, read_bytes_held, NULL);
	register_counter("fast_boxes", "Fast boxes this process gives to its peers",
			 MCA_BASE_PVAR_CLASS_LEVEL, NULL, &c->fast_boxes);
	register_counter("eager", "Fragments put into a peer's queue or fast box",
			 MCA_BASE_PVAR_CLASS_COUNTER, NULL, &c->eager);
	register_counter("references", "Fragments left in place for the peer to read",
			 MCA_BASE_PVAR_CLASS_COUNTER, NULL, &c->references);
	register_counter("rendezvous", "Messages copied straight from a peer's buffer",
			 MCA_BASE_PVAR_CLASS_COUNTER, NULL, &c->gets);
	register_counter("puts", "Copies straight into a peer's buffer",
			 MCA_BASE_PVAR_CLASS_COUNTER, NULL, &c->puts);
	register_counter("atomics", "Atomic operations on a peer's memory",
			 MCA_BASE_PVAR_CLASS_COUNTER, NULL, &c->atomics);
	register_counter("bytes_copied", "Bytes copied by gets and puts",
			 MCA_BASE_PVAR_CLASS_COUNTER, NULL, &c->bytes_copied);
	register_counter("pieces_helped", "Pieces of our messages that we copied for the receiver",
			 MCA_BASE_PVAR_CLASS_COUNTER, NULL, &c->pieces_helped);
	register_counter("waits", "Fragments that had to wait for room at the peer",
			 MCA_BASE_PVAR_CLASS_COUNTER, NULL, &c->waits);
}

static int pvas_register(void)
{
	mca_base_var_group_component_register(&component.super.btl_version,
					      "PVAS byte transfer layer: ranks in one address space");
	register_parameters();
	register_module();
	register_counters();
	return OPAL_SUCCESS;
}

/* ---- open and close ---- */

static int pvas_open(void)
{
	OBJ_CONSTRUCT(&component.small, opal_free_list_t);
	OBJ_CONSTRUCT(&component.eager, opal_free_list_t);
	OBJ_CONSTRUCT(&component.large, opal_free_list_t);
	OBJ_CONSTRUCT(&component.lock, opal_mutex_t);
	OBJ_CONSTRUCT(&component.endpoints, opal_list_t);
	OBJ_CONSTRUCT(&component.done, opal_list_t);
	return OPAL_SUCCESS;
}

static int pvas_close(void)
{
	OBJ_DESTRUCT(&component.done);
	OBJ_DESTRUCT(&component.endpoints);
	OBJ_DESTRUCT(&component.lock);
	OBJ_DESTRUCT(&component.large);
	OBJ_DESTRUCT(&component.eager);
	OBJ_DESTRUCT(&component.small);
	return OPAL_SUCCESS;
}

/* ---- init ---- */

void *pvas_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* A fork child has no use for it, and its copies would cost us faults. */
	madvise(p, bytes, MADV_DONTFORK);
	pvas_count(bytes_held, bytes);
	return p;
}

void pvas_unmap(void *p, size_t bytes)
{
	munmap(p, bytes);
	pvas_count(bytes_held, -bytes);
}

/* Not a task: an ordinary process, or the fork child of one. Not an error. */
static bool find_space(void)
{
	const struct pvas_start *start;
	struct pvas_task_info me;
	int self = pvas_self();

	if (self < 0 || pvas_task(self, &me))
		return false;
	start = (const struct pvas_start *)getauxval(AT_PVAS);
	component.index = self;
	component.gen = start->gen;
	component.shift = start->shift;
	component.space = pvas_space_id();
	component.table = (const struct pvas_part *)start->table;
	return true;
}

static unsigned int power_of_two(unsigned int n, unsigned int least)
{
	unsigned int p = 1U << 12;

	if (n < least)
		n = least;
	while (p < n && p < 1U << 30)
		p <<= 1;
	return p;
}

/* Who waits for a message spins: if each has a processor of its own it may as well help. */
static unsigned int share_limit(void)
{
	if (component.share_limit != SHARE_BY_PROCESSORS)
		return component.share_limit;
	return opal_process_info.num_local_peers < sysconf(_SC_NPROCESSORS_ONLN) ? SHARE_LIMIT : 0;
}

/* What can't be is made what can, and said once a node. */
static void settle(const char *name, unsigned int *value, unsigned int least)
{
	unsigned int good = power_of_two(*value, least);

	if (good != *value && !opal_process_info.my_local_rank)
		opal_output(0, "btl pvas: btl_pvas_%s is %u, not %u (a power of two, at least %u)",
			    name, good, *value, power_of_two(least, least));
	*value = good;
}

/* A ring must hold some of the largest records, or they would wait for long. */
static void check_parameters(void)
{
	unsigned int least = 3 * pvas_ring_need(mca_btl_pvas.super.btl_eager_limit);

	settle("queue_size", &component.queue_size, least);
	settle("fbox_size", &component.box_size, least);
	settle("share_piece", &component.share_piece, 1 << 12);
	if (!component.box_threshold)
		component.box_max = 0;
	component.share_limit = share_limit();
}

static bool make_port(void)
{
	component.port_bytes = sizeof(struct pvas_port) + component.queue_size;
	component.port = pvas_map(component.port_bytes);
	if (!component.port)
		return false;
	pvas_ring_init(&component.port->queue, (char *)(component.port + 1), component.queue_size);
	return true;
}

static int init_list(opal_free_list_t *list, size_t size)
{
	return opal_free_list_init(list, sizeof(pvas_frag_t) + size, opal_cache_line_size,
				   OBJ_CLASS(pvas_frag_t), 0, opal_cache_line_size,
				   component.list_num, component.list_max, component.list_inc,
				   NULL, 0, NULL, NULL, NULL);
}

static bool init_lists(void)
{
	return init_list(&component.small, PVAS_SMALL) == OPAL_SUCCESS &&
	       init_list(&component.eager, mca_btl_pvas.super.btl_eager_limit) == OPAL_SUCCESS &&
	       init_list(&component.large, mca_btl_pvas.super.btl_max_send_size) == OPAL_SUCCESS;
}

static int tell_peers(void)
{
	struct pvas_modex modex = {
		.version = PVAS_BTL_MODEX_VERSION,
		.space = component.space,
		.index = component.index,
		.gen = component.gen,
		.pid = component.table[component.index].pid,
		.eager_limit = mca_btl_pvas.super.btl_eager_limit,
		.port = (uint64_t)component.port,
	};
	int rc;

	OPAL_MODEX_SEND(rc, OPAL_PMIX_LOCAL, &component.super.btl_version, &modex, sizeof(modex));
	return rc;
}

static mca_btl_base_module_t **pvas_init(int *nr, bool progress_threads, bool mpi_threads)
{
	mca_btl_base_module_t **modules;

	(void)progress_threads;
	(void)mpi_threads;
	*nr = 0;
	if (!opal_process_info.num_local_peers || !find_space())
		return NULL;
	check_parameters();
	modules = calloc(1, sizeof(*modules));
	component.boxes = calloc(component.box_max + 1, sizeof(*component.boxes));
	if (!modules || !component.boxes || !make_port() || !init_lists())
		goto err_free;
	if (tell_peers() != OPAL_SUCCESS)
		goto err_free;
	pvas_watch_start();
	modules[0] = &mca_btl_pvas.super;
	*nr = 1;
	return modules;

err_free:
	if (component.port)
		pvas_unmap(component.port, component.port_bytes);
	component.port = NULL;
	free(component.boxes);
	free(modules);
	return NULL;
}

struct pvas_component mca_btl_pvas_component = {
	.super = {
		.btl_version = {
			MCA_BTL_DEFAULT_VERSION("pvas"),
			.mca_open_component = pvas_open,
			.mca_close_component = pvas_close,
			.mca_register_component_params = pvas_register,
		},
		.btl_data = {
			.param_field = MCA_BASE_METADATA_PARAM_NONE,
		},
		.btl_init = pvas_init,
		.btl_progress = pvas_progress,
	},
};
