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

static void register_parameters(void)
{
	register_uint("queue_size", "Bytes mapped for the queue that all peers without a fast box "
		      "share (whole pages, default: 8k)", &component.queue_size, 8 << 10,
		      OPAL_INFO_LVL_5);
	register_uint("fbox_threshold", "Messages to a peer before a fast box is asked for "
		      "(0: no fast boxes, default: 16)", &component.box_threshold, 16,
		      OPAL_INFO_LVL_5);
	register_uint("fbox_max", "Fast boxes that this process gives to its peers at a time "
		      "(default: 2)", &component.box_max, 2, OPAL_INFO_LVL_5);
	register_uint("fbox_size", "Bytes mapped for a fast box (whole pages, default: 4k)",
		      &component.box_size, 4 << 10, OPAL_INFO_LVL_5);
	register_uint("fbox_idle", "Milliseconds after which a fast box that carried nothing is "
		      "taken back (0: never, default: 1000)", &component.idle_ms, 1000,
		      OPAL_INFO_LVL_5);
	register_uint("copy_limit", "Longest message, with its header, that is copied into the peer's "
		      "memory at once; a longer one stays in place until the peer has it "
		      "(default: 1920)", &component.copy_limit, 1920, OPAL_INFO_LVL_5);
	register_uint("share_limit", "Bytes from which on the sender helps to copy a message "
		      "(0: never; default: 32k, or 0 if there are more ranks than processors)",
		      &component.share_limit, SHARE_BY_PROCESSORS, OPAL_INFO_LVL_5);
	register_uint("share_piece", "Fewest bytes that either side copies at a time (default: 16k)",
		      &component.share_piece, 16 << 10, OPAL_INFO_LVL_9);
	component.frag_max = 16;
	mca_base_component_var_register(&component.super.btl_version, "free_list_max",
					"Most fragments with a header, and most with data, at a "
					"time (-1: no limit, default: 16)",
					MCA_BASE_VAR_TYPE_INT, NULL, 0,
					MCA_BASE_VAR_FLAG_SETTABLE, OPAL_INFO_LVL_9,
					MCA_BASE_VAR_SCOPE_LOCAL, &component.frag_max);
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
	/* In place: what finds no room at the peer needs none of ours. */
	btl->btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_SEND_INPLACE | MCA_BTL_FLAGS_RDMA |
			 MCA_BTL_FLAGS_ATOMIC_OPS | MCA_BTL_FLAGS_ATOMIC_FOPS;
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

static void register_counter(const char *name, const char *text, int var_class,
			     unsigned long long *where)
{
	mca_base_component_pvar_register(&component.super.btl_version, name, text,
					 OPAL_INFO_LVL_4, var_class,
					 MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
					 MCA_BASE_VAR_BIND_NO_OBJECT,
					 MCA_BASE_PVAR_FLAG_READONLY |
						 MCA_BASE_PVAR_FLAG_CONTINUOUS,
					 NULL, NULL, NULL, where);
}

static void register_counters(void)
{
	struct pvas_counters *c = &component.counters;

	register_counter("bytes_held", "Bytes this process holds for communication",
			 MCA_BASE_PVAR_CLASS_LEVEL, &c->bytes_held);
	register_counter("bytes_most", "Most bytes this process ever held for communication",
			 MCA_BASE_PVAR_CLASS_HIGHWATERMARK, &c->bytes_most);
	register_counter("fast_boxes", "Fast boxes this process gives to its peers",
			 MCA_BASE_PVAR_CLASS_LEVEL, &c->fast_boxes);
	register_counter("eager", "Fragments put into a peer's queue or fast box",
			 MCA_BASE_PVAR_CLASS_COUNTER, &c->eager);
	register_counter("references", "Fragments left in place for the peer to read",
			 MCA_BASE_PVAR_CLASS_COUNTER, &c->references);
	register_counter("rendezvous", "Messages copied straight from a peer's buffer",
			 MCA_BASE_PVAR_CLASS_COUNTER, &c->gets);
	register_counter("puts", "Copies straight into a peer's buffer",
			 MCA_BASE_PVAR_CLASS_COUNTER, &c->puts);
	register_counter("atomics", "Atomic operations on a peer's memory",
			 MCA_BASE_PVAR_CLASS_COUNTER, &c->atomics);
	register_counter("bytes_copied", "Bytes copied by gets and puts",
			 MCA_BASE_PVAR_CLASS_COUNTER, &c->bytes_copied);
	register_counter("pieces_helped", "Pieces of our messages that we copied for the receiver",
			 MCA_BASE_PVAR_CLASS_COUNTER, &c->pieces_helped);
	register_counter("waits", "Times that something found no room at the peer",
			 MCA_BASE_PVAR_CLASS_COUNTER, &c->waits);
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
	int i;

	for (i = 0; i < PVAS_LOCKS; i++)
		OBJ_CONSTRUCT(&component.locks[i], opal_mutex_t);
	OBJ_CONSTRUCT(&component.lock, opal_mutex_t);
	OBJ_CONSTRUCT(&component.pending, opal_list_t);
	OBJ_CONSTRUCT(&component.done, opal_list_t);
	return OPAL_SUCCESS;
}

static int pvas_close(void)
{
	int i;

	OBJ_DESTRUCT(&component.done);
	OBJ_DESTRUCT(&component.pending);
	OBJ_DESTRUCT(&component.lock);
	for (i = 0; i < PVAS_LOCKS; i++)
		OBJ_DESTRUCT(&component.locks[i]);
	return OPAL_SUCCESS;
}

/* ---- init ---- */

void pvas_hold(long bytes)
{
	struct pvas_counters *c = &component.counters;

	c->bytes_held += bytes;
	if (c->bytes_most < c->bytes_held)
		c->bytes_most = c->bytes_held;
}

void *pvas_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* A fork child has no use for it, and its copies would cost us faults. */
	madvise(p, bytes, MADV_DONTFORK);
	pvas_hold(bytes);
	return p;
}

void pvas_unmap(void *p, size_t bytes)
{
	munmap(p, bytes);
	pvas_hold(-(long)bytes);
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

/* Who waits for a message spins: if each has a processor of its own it may as well help. */
static unsigned int share_limit(void)
{
	if (component.share_limit != SHARE_BY_PROCESSORS)
		return component.share_limit;
	return opal_process_info.num_local_peers < sysconf(_SC_NPROCESSORS_ONLN) ? SHARE_LIMIT : 0;
}

#define PAGE 4096U

static unsigned int whole_pages(size_t bytes)
{
	return bytes > 1U << 30 ? 1U << 30 : (bytes + PAGE - 1) & ~(PAGE - 1);
}

/* What can't be is made what can, and said once a node. */
static void settle(const char *name, unsigned int *value, size_t least)
{
	unsigned int good = whole_pages(*value > least ? *value : least);

	if (good != *value && !opal_process_info.my_local_rank)
		opal_output(0, "btl pvas: btl_pvas_%s is %u, not %u (whole pages, at least %u)",
			    name, good, *value, whole_pages(least));
	*value = good;
}

/* The queue has room for two of the longest records, wherever they begin. */
static void check_parameters(void)
{
	size_t two;

	if (component.copy_limit > mca_btl_pvas.super.btl_eager_limit)
		component.copy_limit = mca_btl_pvas.super.btl_eager_limit;
	two = 2 * pvas_ring_need(component.copy_limit) + PVAS_LINE;
	settle("queue_size", &component.queue_size, sizeof(struct pvas_port) + two);
	settle("fbox_size", &component.box_size, PAGE);
	settle("share_piece", &component.share_piece, PAGE);
	if (!component.box_threshold)
		component.box_max = 0;
	/* It is counted in 16 bits. */
	if (component.frag_max < 0 || component.frag_max > INT16_MAX)
		component.frag_max = INT16_MAX;
	component.share_limit = share_limit();
}

static bool make_port(void)
{
	component.port = pvas_map(component.queue_size);
	if (!component.port)
		return false;
	pvas_ring_init(&component.port->queue, (char *)(component.port + 1),
		       component.queue_size - sizeof(*component.port));
	component.queue_at_once = 1;
	return true;
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
	component.given = calloc(component.box_max + 1, sizeof(*component.given));
	if (!modules || !component.given || !make_port())
		goto err_free;
	if (tell_peers() != OPAL_SUCCESS)
		goto err_unmap;
	pvas_hold((component.box_max + 1) * sizeof(*component.given));
	pvas_watch_start();
	modules[0] = &mca_btl_pvas.super;
	*nr = 1;
	return modules;

err_unmap:
	pvas_unmap(component.port, component.queue_size);
	component.port = NULL;
err_free:
	free(component.given);
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
