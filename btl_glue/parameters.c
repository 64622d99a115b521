// SPDX-License-Identifier: LGPL-2.1-or-later
/* MCA parameters: registering them, and clamping invalid values. */
#include "btl_pvas.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "opal/util/output.h"
#include "opal/util/proc.h"

#define component mca_btl_pvas_component

/* ---- registering ---- */

/* A default that depends on the machine and the number of ranks */
#define UNSET UINT_MAX

static void register_uint(const char *name, const char *text, unsigned int *where,
			  unsigned int value, mca_base_var_info_lvl_t level)
{
	*where = value;
	mca_base_component_var_register(&component.super.btl_version, name, text,
					MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, 0,
					MCA_BASE_VAR_FLAG_SETTABLE, level,
					MCA_BASE_VAR_SCOPE_LOCAL, where);
}

static void register_own(void)
{
	register_uint("queue_size", "Bytes mapped for the queue that all peers without a fast box "
		      "share (whole pages, default: 4k)", &component.queue_size, 4 << 10,
		      OPAL_INFO_LVL_5);
	register_uint("fbox_threshold",
		      "Messages to a peer before a fast box is asked for "
		      "(0: no fast boxes, default: 16)",
		      &component.fbox_threshold, 16, OPAL_INFO_LVL_5);
	register_uint("fbox_max",
		      "Fast boxes that this process gives to its peers at a time "
		      "(default: 8)",
		      &component.fbox_max, 8, OPAL_INFO_LVL_5);
	register_uint("fbox_size", "Bytes for a fast box; less for those of many peers "
		      "(whole pages, default: 8k)", &component.fbox_size, 8 << 10, OPAL_INFO_LVL_5);
	register_uint("fbox_idle",
		      "Milliseconds after which a fast box that carried nothing is "
		      "reclaimed (0: never, default: 1000)",
		      &component.fbox_idle, 1000, OPAL_INFO_LVL_5);
	register_uint("copy_limit", "Longest message, with its header, that is copied into the peer's "
		      "memory at once; a longer one stays in place until the peer has it "
		      "(default: 1100, or what the distance of the two ranks suggests)",
		      &component.copy_limit, UNSET, OPAL_INFO_LVL_5);
	register_uint("share_limit",
		      "Bytes from which on the sender helps to copy a message "
		      "(0: never; default: 32k, or 0 if the two ranks share a core or there are more "
		      "ranks than processors)",
		      &component.share_limit, UNSET, OPAL_INFO_LVL_5);
	register_uint("share_piece", "Fewest bytes that either side copies at a time (default: 16k)",
		      &component.share_piece, 16 << 10, OPAL_INFO_LVL_9);
	register_uint("first_touch",
		      "1: the receiver touches each page of its buffer before the sender helps to "
		      "copy, so that new pages are on the receiver's node (default: 1 if there are "
		      "several NUMA nodes)", &component.first_touch, UNSET, OPAL_INFO_LVL_9);
	component.frag_max = 64;
	mca_base_component_var_register(&component.super.btl_version, "free_list_max",
					"Most fragments with a header at a time; an eighth as many "
					"with data (-1: no limit, default: 64)",
					MCA_BASE_VAR_TYPE_INT, NULL, 0,
					MCA_BASE_VAR_FLAG_SETTABLE, OPAL_INFO_LVL_9,
					MCA_BASE_VAR_SCOPE_LOCAL, &component.frag_max);
	component.watch_peers = true;
	mca_base_component_var_register(&component.super.btl_version, "watch_peers",
					"End the job if a peer on this node ends before its "
					"MPI_Finalize (default: true)",
					MCA_BASE_VAR_TYPE_BOOL, NULL, 0, MCA_BASE_VAR_FLAG_SETTABLE,
					OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_LOCAL,
					&component.watch_peers);
}

static void register_module(void)
{
	mca_btl_base_module_t *btl = &mca_btl_pvas.super;

	/* Above vader's: where both reach a peer, this one is used. */
	btl->btl_exclusivity = MCA_BTL_EXCLUSIVITY_HIGH + 1;
	/* 4 KiB of data and a header of the upper layer */
	btl->btl_eager_limit = MCA_BTL_PVAS_EAGER_LIMIT;
	btl->btl_rndv_eager_limit = btl->btl_eager_limit;
	btl->btl_max_send_size = 32 << 10;
	btl->btl_min_rdma_pipeline_size = INT_MAX;
	btl->btl_rdma_pipeline_send_length = btl->btl_eager_limit;
	btl->btl_rdma_pipeline_frag_size = INT_MAX;
	/* SEND_INPLACE: a fragment that does not fit at the peer needs no copy here, either. */
	btl->btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_SEND_INPLACE | MCA_BTL_FLAGS_RDMA |
			 MCA_BTL_FLAGS_ATOMIC_OPS | MCA_BTL_FLAGS_ATOMIC_FOPS;
	btl->btl_atomic_flags = MCA_BTL_ATOMIC_SUPPORTS_ADD | MCA_BTL_ATOMIC_SUPPORTS_AND |
				MCA_BTL_ATOMIC_SUPPORTS_OR | MCA_BTL_ATOMIC_SUPPORTS_XOR |
				MCA_BTL_ATOMIC_SUPPORTS_SWAP | MCA_BTL_ATOMIC_SUPPORTS_CSWAP |
				MCA_BTL_ATOMIC_SUPPORTS_32BIT | MCA_BTL_ATOMIC_SUPPORTS_GLOB;
	/*
	 * Above vader's 40000: ob1 also lists vader for RDMA, and gives us the whole
	 * rendezvous only if we have more than half of the total bandwidth.
	 */
	btl->btl_bandwidth = 100000;
	btl->btl_latency = 1;
	mca_btl_base_param_register(&component.super.btl_version, btl);
}

void mca_btl_pvas_register_parameters(void)
{
	register_own();
	register_module();
}

/* ---- clamping ---- */

static bool first_touch(void)
{
	if (component.first_touch != UNSET)
		return component.first_touch;
	return component.share_limit && mca_btl_pvas_several_nodes();
}

#define MAX_SIZE (1U << 30)

/* An invalid value was clamped: warn once per node. */
static void warn_clamped(const char *name, size_t value, size_t valid)
{
	if (value != valid && !opal_process_info.my_local_rank)
		opal_output(0, "btl pvas: btl_pvas_%s is %zu, not %zu (the %s)", name,
			    valid, value, valid > value ? "minimum" : "maximum");
}

static void clamp_uint(const char *name, unsigned int *value, size_t min, size_t max)
{
	unsigned int valid = mca_btl_pvas_clamp(min, *value, max);

	warn_clamped(name, *value, valid);
	*value = valid;
}

static void clamp_size(const char *name, size_t *value, size_t min, size_t max)
{
	size_t valid = mca_btl_pvas_clamp(min, *value, max);

	warn_clamped(name, *value, valid);
	*value = valid;
}

static unsigned int page_align(size_t bytes)
{
	return (bytes + MCA_BTL_PVAS_PAGE - 1) & ~(MCA_BTL_PVAS_PAGE - 1);
}

static void clamp_pages(const char *name, unsigned int *value, size_t min)
{
	unsigned int valid = page_align(mca_btl_pvas_clamp(min, *value, MAX_SIZE));

	if (valid != *value && !opal_process_info.my_local_rank)
		opal_output(0, "btl pvas: btl_pvas_%s is %u, not %u (whole pages, %u to %u)", name,
			    valid, *value, page_align(min), MAX_SIZE);
	*value = valid;
}

/* For each distance its own default, or for all what was set; at last the longest of all */
static void set_copy_limits(size_t eager_limit)
{
	const unsigned int most = mca_btl_pvas_clamp(MCA_BTL_PVAS_MIN_REFERENCE, eager_limit,
						     MAX_SIZE);
	const bool given = component.copy_limit != UNSET;
	unsigned int i, limit;

	/* No message is longer than @most, so a longer limit needs no warning. */
	if (given && component.copy_limit > most)
		component.copy_limit = most;
	if (given)
		clamp_uint("copy_limit", &component.copy_limit, MCA_BTL_PVAS_MIN_REFERENCE,
			   MAX_SIZE);
	else
		component.copy_limit = 0;
	for (i = 0; i < MCA_BTL_PVAS_DISTANCES; i++) {
		limit = given ? component.copy_limit : mca_btl_pvas_limits_of(i)->copy;
		component.limits[i].copy = limit < most ? limit : most;
		if (component.limits[i].copy > component.copy_limit)
			component.copy_limit = component.limits[i].copy;
	}
}

/* Likewise. A sender that waits spins, so it can help if no other rank needs its processor. */
static void set_share_limits(void)
{
	const bool given = component.share_limit != UNSET;
	unsigned int i;

	for (i = 0; i < MCA_BTL_PVAS_DISTANCES; i++) {
		if (given)
			component.limits[i].share = component.share_limit;
		else
			component.limits[i].share = component.oversubscribed ? 0 :
						    mca_btl_pvas_limits_of(i)->share;
	}
	component.share_limit = component.limits[MCA_BTL_PVAS_FAR].share;
}

/* Open MPI itself rejects an eager_limit that is too small. */
static void check_messages(void)
{
	mca_btl_base_module_t *btl = &mca_btl_pvas.super;

	clamp_size("eager_limit", &btl->btl_eager_limit, 0, MAX_SIZE);
	clamp_size("max_send_size", &btl->btl_max_send_size, btl->btl_eager_limit, MAX_SIZE);
	set_copy_limits(btl->btl_eager_limit);
}

/* A rank cannot give more fast boxes than it has peers; fragments are counted in 16 bits. */
static void check_counts(void)
{
	unsigned int peers = opal_process_info.num_local_peers;
	int frags;

	if (!component.fbox_threshold)
		component.fbox_max = 0;
	if (component.fbox_max > peers)
		component.fbox_max = peers;
	if (component.frag_max < 0 || component.frag_max > INT16_MAX)
		component.frag_max = INT16_MAX;
	frags = mca_btl_pvas_clamp(MCA_BTL_PVAS_MIN_FRAGS, component.frag_max, INT16_MAX);
	warn_clamped("free_list_max", component.frag_max, frags);
	component.frag_max = frags;
}

/* The endpoints and fragments of four ranks */
#define FRAG_BUDGET 1700

void mca_btl_pvas_check_parameters(void)
{
	size_t two_records;

	check_messages();
	check_counts();
	/* The queue has room for two records of maximum length, wherever they begin. */
	two_records = 2 * mca_btl_pvas_record_size(component.copy_limit) + MCA_BTL_PVAS_CACHE_LINE;
	clamp_pages("queue_size", &component.queue_size,
		    sizeof(struct mca_btl_pvas_port) + two_records);
	clamp_pages("fbox_size", &component.fbox_size, MCA_BTL_PVAS_PAGE);
	clamp_pages("share_piece", &component.share_piece, MCA_BTL_PVAS_PAGE);
	component.oversubscribed =
		opal_process_info.num_local_peers >= sysconf(_SC_NPROCESSORS_ONLN);
	set_share_limits();
	component.first_touch = first_touch();
	component.budget = 3 * (size_t)component.fbox_size / 2 + FRAG_BUDGET;
}
