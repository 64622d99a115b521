// SPDX-License-Identifier: LGPL-2.1-or-later
/* The module: adding, removing and finalizing endpoints. */
#include "btl_pvas.h"

#include <stdlib.h>
#include <string.h>

#include "opal/util/proc.h"

#define component mca_btl_pvas_component

/*
 * The peer's modex; false if the peer is not a task of our space. Ids of spaces repeat
 * on other nodes, so the peer's partition must also match the modex.
 */
static bool find_in_space(const struct opal_proc_t *proc, struct mca_btl_pvas_modex *modex)
{
	if (!OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags))
		return false;
	if (!mca_btl_pvas_look_up(&component.super.btl_version, MCA_BTL_PVAS_NAME,
				  &proc->proc_name, modex, sizeof(*modex)))
		return false;
	return modex->version == MCA_BTL_PVAS_MODEX_VERSION && modex->space == component.space &&
	       modex->index < PVAS_MAX_TASKS + 2 && modex->index != component.index &&
	       modex->port >> component.shift == modex->index;
}

static bool is_alive(const struct mca_btl_pvas_modex *modex)
{
	return mca_btl_pvas_peer_alive(modex->index, modex->gen);
}

static void init_endpoint(mca_btl_pvas_endpoint_t *ep, struct opal_proc_t *proc,
			  const struct mca_btl_pvas_modex *modex)
{
	*ep = (mca_btl_pvas_endpoint_t) {
		.proc = proc,
		.port = (struct mca_btl_pvas_port *)modex->port,
		.gen = modex->gen,
		.index = modex->index,
		.distance = mca_btl_pvas_distance(proc->proc_flags),
	};
	mca_btl_pvas_expect_faults(ep->index, ep->gen);
}

/* Make endpoints for the processes that we reach, at most @peers->nr. */
static int find_peers(struct mca_btl_pvas_endpoint_group *peers, size_t nr,
		      struct opal_proc_t **procs, struct mca_btl_base_endpoint_t **endpoints,
		      struct opal_bitmap_t *reachable)
{
	struct mca_btl_pvas_modex modex;
	mca_btl_pvas_endpoint_t *ep;
	unsigned int found = 0;
	size_t i;
	int rc;

	for (i = 0; i < nr && found < peers->nr; i++) {
		if (procs[i] == opal_proc_local_get() || !find_in_space(procs[i], &modex))
			continue;
		/* The pid is valid only once the partition is known to be running. */
		if (is_alive(&modex) && component.table[modex.index].pid != modex.pid)
			continue;
		/* Each writes into the other's rings: both must allow the same maximum length. */
		if (modex.eager_limit != mca_btl_pvas.super.btl_eager_limit)
			continue;
		ep = &peers->endpoints[found++];
		init_endpoint(ep, procs[i], &modex);
		/* One that has ended is watched only: over another BTL nobody would notice. */
		if (!is_alive(&modex))
			continue;
		endpoints[i] = ep;
		mca_btl_pvas_notify_start(ep);
		rc = reachable ? opal_bitmap_set_bit(reachable, i) : OPAL_SUCCESS;
		if (rc != OPAL_SUCCESS)
			return rc;
	}
	peers->nr = found;
	return OPAL_SUCCESS;
}

static size_t group_bytes(unsigned int nr)
{
	return sizeof(struct mca_btl_pvas_endpoint_group) + nr * sizeof(mca_btl_pvas_endpoint_t);
}

static unsigned int count_local(size_t nr, struct opal_proc_t **procs)
{
	unsigned int count = 0;
	size_t i;

	for (i = 0; i < nr; i++)
		count += procs[i] != opal_proc_local_get() &&
			 OPAL_PROC_ON_LOCAL_NODE(procs[i]->proc_flags);
	return count;
}

static int mca_btl_pvas_add_procs(struct mca_btl_base_module_t *btl, size_t nr,
				  struct opal_proc_t **procs,
				  struct mca_btl_base_endpoint_t **endpoints,
				  struct opal_bitmap_t *reachable)
{
	unsigned int max = count_local(nr, procs);
	struct mca_btl_pvas_endpoint_group *peers;
	int rc;

	(void)btl;
	mca_btl_pvas_restore_timer_slack();
	memset(endpoints, 0, nr * sizeof(*endpoints));
	if (!max)
		return OPAL_SUCCESS;
	peers = malloc(group_bytes(max));
	if (!peers)
		return OPAL_ERR_OUT_OF_RESOURCE;
	peers->nr = max;
	rc = find_peers(peers, nr, procs, endpoints, reachable);
	if (rc != OPAL_SUCCESS || !peers->nr) {
		free(peers);
		return rc;
	}
	mca_btl_pvas_account(group_bytes(max));
	OPAL_THREAD_LOCK(&component.lock);
	component.endpoint_bytes += group_bytes(max);
	component.nr_peers += peers->nr;
	mca_btl_pvas_share_budget();
	peers->next = component.peers;
	component.peers = peers;
	OPAL_THREAD_UNLOCK(&component.lock);
	return OPAL_SUCCESS;
}

/*
 * The upper layer can call this twice for one endpoint, once for each of its lists that
 * has it, so the endpoint is kept until the process ends.
 */
static int mca_btl_pvas_del_procs(struct mca_btl_base_module_t *btl, size_t nr,
				  struct opal_proc_t **procs,
				  struct mca_btl_base_endpoint_t **endpoints)
{
	size_t i;

	(void)btl;
	(void)procs;
	for (i = 0; i < nr; i++) {
		if (endpoints[i])
			mca_btl_pvas_notify_finalize(endpoints[i]);
		endpoints[i] = NULL;
	}
	return OPAL_SUCCESS;
}

/*
 * The port, fast boxes and endpoints are kept until the process ends: a peer that has not
 * finalized yet can still write to them.
 */
static int mca_btl_pvas_finalize(struct mca_btl_base_module_t *btl)
{
	struct mca_btl_pvas_endpoint_group *peers;
	unsigned int i;

	(void)btl;
	for (peers = component.peers; peers; peers = peers->next)
		for (i = 0; i < peers->nr; i++)
			mca_btl_pvas_notify_finalize(&peers->endpoints[i]);
	mca_btl_pvas_restore_fault_handlers();
	return OPAL_SUCCESS;
}

static int mca_btl_pvas_register_error(struct mca_btl_base_module_t *btl,
				       mca_btl_base_module_error_cb_fn_t cbfunc)
{
	((struct mca_btl_pvas_module *)btl)->error_cb = cbfunc;
	return OPAL_SUCCESS;
}

struct mca_btl_pvas_module mca_btl_pvas = {
	.super = {
		.btl_component = &mca_btl_pvas_component.super,
		.btl_add_procs = mca_btl_pvas_add_procs,
		.btl_del_procs = mca_btl_pvas_del_procs,
		.btl_finalize = mca_btl_pvas_finalize,
		.btl_alloc = mca_btl_pvas_alloc,
		.btl_free = mca_btl_pvas_free,
		.btl_prepare_src = mca_btl_pvas_prepare_src,
		.btl_send = mca_btl_pvas_send,
		.btl_sendi = mca_btl_pvas_sendi,
		.btl_put = mca_btl_pvas_put,
		.btl_get = mca_btl_pvas_get,
		.btl_dump = mca_btl_base_dump,
		.btl_atomic_op = mca_btl_pvas_atomic_op,
		.btl_atomic_fop = mca_btl_pvas_atomic_fop,
		.btl_atomic_cswap = mca_btl_pvas_atomic_cswap,
		.btl_register_error = mca_btl_pvas_register_error,
		MCA_BTL_PVAS_FT_EVENT
	},
};
