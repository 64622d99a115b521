// SPDX-License-Identifier: LGPL-2.1-or-later
/* The component's parameters: what there is, and what of it can be. */
#include "btl_pvas.h"

#include <limits.h>
#include <unistd.h>

#include "opal/util/output.h"
#include "opal/util/proc.h"

#define component mca_btl_pvas_component

/* ---- what there is ---- */

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

static void register_ours(void)
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
	component.frag_max = 8;
	mca_base_component_var_register(&component.super.btl_version, "free_list_max",
					"Most fragments with a header, and most with data, at a "
					"time (-1: no limit, default: 8)",
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

void pvas_register_parameters(void)
{
	register_ours();
	register_module();
}

/* ---- what can be ---- */

/* Who waits for a message spins: if each has a processor of its own it may as well help. */
static unsigned int share_limit(void)
{
	if (component.share_limit != SHARE_BY_PROCESSORS)
		return component.share_limit;
	return opal_process_info.num_local_peers < sysconf(_SC_NPROCESSORS_ONLN) ? SHARE_LIMIT : 0;
}

#define PAGE 4096U
#define MOST (1U << 30)

/* What can't be is made what can, and said once a node. */
static void say(const char *name, size_t value, size_t good)
{
	if (value != good && !opal_process_info.my_local_rank)
		opal_output(0, "btl pvas: btl_pvas_%s is %zu, not %zu (that is the %s)", name, good,
			    value, good > value ? "least" : "most");
}

static void settle(const char *name, unsigned int *value, size_t least, size_t most)
{
	unsigned int good = pvas_between(least, *value, most);

	say(name, *value, good);
	*value = good;
}

static void settle_size(const char *name, size_t *value, size_t least, size_t most)
{
	size_t good = pvas_between(least, *value, most);

	say(name, *value, good);
	*value = good;
}

static unsigned int whole_pages(size_t bytes)
{
	return (bytes + PAGE - 1) & ~(PAGE - 1);
}

static void settle_pages(const char *name, unsigned int *value, size_t least)
{
	unsigned int good = whole_pages(pvas_between(least, *value, MOST));

	if (good != *value && !opal_process_info.my_local_rank)
		opal_output(0, "btl pvas: btl_pvas_%s is %u, not %u (whole pages, %u to %u)",
			    name, good, *value, whole_pages(least), MOST);
	*value = good;
}

/* A too small eager_limit Open MPI itself refuses. */
static void check_messages(void)
{
	mca_btl_base_module_t *btl = &mca_btl_pvas.super;

	settle_size("eager_limit", &btl->btl_eager_limit, 0, MOST);
	settle_size("max_send_size", &btl->btl_max_send_size, btl->btl_eager_limit, MOST);
	/* There are no longer ones: not worth a word. */
	if (component.copy_limit > btl->btl_eager_limit)
		component.copy_limit = pvas_between(PVAS_WORTH_A_REFERENCE, btl->btl_eager_limit,
						    MOST);
	settle("copy_limit", &component.copy_limit, PVAS_WORTH_A_REFERENCE, MOST);
}

/* Nobody has more peers than there are, and fragments are counted in 16 bits. */
static void check_counts(void)
{
	unsigned int peers = opal_process_info.num_local_peers;
	int frags;

	if (!component.box_threshold)
		component.box_max = 0;
	if (component.box_max > peers)
		component.box_max = peers;
	if (component.frag_max < 0 || component.frag_max > INT16_MAX)
		component.frag_max = INT16_MAX;
	frags = pvas_between(PVAS_FEWEST_FRAGS, component.frag_max, INT16_MAX);
	say("free_list_max", component.frag_max, frags);
	component.frag_max = frags;
}

/* Bytes that peers, 16 or so, may take before boxes and fragments get fewer */
#define FEW_PEERS 640

void pvas_check_parameters(void)
{
	const size_t boxes = component.box_max;
	size_t two;

	check_messages();
	check_counts();
	/* The queue has room for two of the longest records, wherever they begin. */
	two = 2 * pvas_ring_need(component.copy_limit) + PVAS_LINE;
	settle_pages("queue_size", &component.queue_size, sizeof(struct pvas_port) + two);
	settle_pages("fbox_size", &component.box_size, PAGE);
	settle_pages("share_piece", &component.share_piece, PAGE);
	component.share_limit = share_limit();
	component.budget = boxes * component.box_size + component.frag_max * PVAS_SMALL_FRAG +
			   FEW_PEERS;
}
