// SPDX-License-Identifier: LGPL-2.1-or-later
/* The module: endpoints. */
#include "btl_pvas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/pmix/pmix.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

#include "../libpvas/pvas.h"

#define component mca_btl_pvas_component

void pvas_port_name(char name[PVAS_PORT_NAME_MAX], const opal_process_name_t *rank)
{
	snprintf(name, PVAS_PORT_NAME_MAX, "btl pvas %x.%x", rank->jobid, rank->vpid);
}

/* What the peer told those in its space; false if it isn't there, or not yet */
static bool told_in_space(const struct opal_proc_t *proc, struct pvas_modex *told)
{
	char name[PVAS_PORT_NAME_MAX];
	void *at;
	sigjmp_buf back;

	pvas_port_name(name, &proc->proc_name);
	if (pvas_name_import(PVAS_ANY, name, &at) < 0)
		return false;
	/* It may end at this very moment. */
	if (sigsetjmp(back, 0)) {
		pvas_may_fault = NULL;
		return false;
	}
	pvas_may_fault = &back;
	*told = *(const struct pvas_modex *)at;
	pvas_may_fault = NULL;
	return true;
}

/* What the peer told all: each of these costs two changes of threads, inside libpmix. */
static bool told_by_modex(const struct opal_proc_t *proc, struct pvas_modex *told)
{
	struct pvas_modex *modex = NULL;
	size_t size = 0;
	int rc;

	OPAL_MODEX_RECV(rc, &component.super.btl_version, &proc->proc_name, (void **)&modex, &size);
	if (rc != OPAL_SUCCESS || !modex)
		return false;
	if (size == sizeof(*modex))
		*told = *modex;
	free(modex);
	return size == sizeof(*told);
}

/*
 * What the peer told, if it is a task of our space. Ids repeat on other nodes:
 * it must also be where it says it is.
 */
static bool in_our_space(const struct opal_proc_t *proc, struct pvas_modex *told)
{
	if (!OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags))
		return false;
	if (!told_in_space(proc, told) && !told_by_modex(proc, told))
		return false;
	return told->version == PVAS_BTL_MODEX_VERSION && told->space == component.space &&
	       told->index < PVAS_MAX_TASKS + 2 && told->index != component.index &&
	       told->port >> component.shift == told->index &&
	       pvas_alive(told->index, told->gen) &&
	       /* The entry's other members hold once it is seen to run. */
	       component.table[told->index].pid == told->pid;
}

static void init_endpoint(pvas_endpoint_t *ep, struct opal_proc_t *proc,
			  const struct pvas_modex *modex)
{
	*ep = (pvas_endpoint_t) {
		.proc = proc,
		.port = (struct pvas_port *)modex->port,
		.gen = modex->gen,
		.index = modex->index,
	};
}

/* Those of @procs that we reach, at most @peers->nr */
static int find_peers(struct pvas_peers *peers, size_t nr, struct opal_proc_t **procs,
		      struct mca_btl_base_endpoint_t **endpoints, struct opal_bitmap_t *reachable)
{
	struct pvas_modex modex;
	unsigned int found = 0;
	size_t i;
	int rc;

	for (i = 0; i < nr && found < peers->nr; i++) {
		if (procs[i] == opal_proc_local_get() || !in_our_space(procs[i], &modex))
			continue;
		/* Each writes into the other's rings: the longest message must fit into both. */
		if (modex.eager_limit != mca_btl_pvas.super.btl_eager_limit)
			continue;
		endpoints[i] = &peers->endpoints[found++];
		init_endpoint(endpoints[i], procs[i], &modex);
		rc = reachable ? opal_bitmap_set_bit(reachable, i) : OPAL_SUCCESS;
		if (rc != OPAL_SUCCESS)
			return rc;
	}
	peers->nr = found;
	return OPAL_SUCCESS;
}

static size_t peers_bytes(unsigned int nr)
{
	return sizeof(struct pvas_peers) + nr * sizeof(pvas_endpoint_t);
}

static size_t less(size_t value, size_t taken)
{
	return value > taken ? value - taken : 0;
}

/*
 * Peers are paid for with boxes, which serve few of many peers anyway, and with some of
 * the fragments: so a rank of a large job holds no more than one of a small job. Most
 * fragments stay, for an all-to-all of 16 ranks takes a fifth longer with two of them.
 */
static void set_limits(void)
{
	const size_t frags = pvas_between(PVAS_FEWEST_FRAGS, component.frag_max / 2,
					  component.frag_max);
	const unsigned int most = component.box_max;
	size_t left = less(component.budget, component.peer_bytes);

	component.box_limit = pvas_between(most ? 1 : 0, less(left, frags * PVAS_SMALL_FRAG) /
					   component.box_size, most);
	left = less(left, component.box_limit * component.box_size);
	component.small_limit = pvas_between(frags, left / PVAS_SMALL_FRAG, component.frag_max);
}

static unsigned int on_this_node(size_t nr, struct opal_proc_t **procs)
{
	unsigned int count = 0;
	size_t i;

	for (i = 0; i < nr; i++)
		count += procs[i] != opal_proc_local_get() &&
			 OPAL_PROC_ON_LOCAL_NODE(procs[i]->proc_flags);
	return count;
}

static int pvas_add_procs(struct mca_btl_base_module_t *btl, size_t nr,
			  struct opal_proc_t **procs,
			  struct mca_btl_base_endpoint_t **endpoints,
			  struct opal_bitmap_t *reachable)
{
	unsigned int most = on_this_node(nr, procs);
	struct pvas_peers *peers;
	int rc;

	(void)btl;
	pvas_crowd_go_on();
	memset(endpoints, 0, nr * sizeof(*endpoints));
	if (!most)
		return OPAL_SUCCESS;
	peers = malloc(peers_bytes(most));
	if (!peers)
		return OPAL_ERR_OUT_OF_RESOURCE;
	peers->nr = most;
	rc = find_peers(peers, nr, procs, endpoints, reachable);
	if (rc != OPAL_SUCCESS || !peers->nr) {
		free(peers);
		return rc;
	}
	pvas_hold(peers_bytes(most));
	OPAL_THREAD_LOCK(&component.lock);
	component.peer_bytes += peers_bytes(most);
	set_limits();
	peers->next = component.peers;
	component.peers = peers;
	OPAL_THREAD_UNLOCK(&component.lock);
	return OPAL_SUCCESS;
}

/*
 * It may be called twice for one endpoint, once for each of the uses that the
 * caller makes of it: so the endpoint stays until the module goes.
 */
static int pvas_del_procs(struct mca_btl_base_module_t *btl, size_t nr,
			  struct opal_proc_t **procs, struct mca_btl_base_endpoint_t **endpoints)
{
	size_t i;

	(void)btl;
	(void)procs;
	for (i = 0; i < nr; i++) {
		if (endpoints[i])
			pvas_say_goodbye(endpoints[i]);
		endpoints[i] = NULL;
	}
	return OPAL_SUCCESS;
}

/*
 * Port, boxes and endpoints stay: a peer that is not yet through may still say
 * goodbye, or give us a box. They go with the process.
 */
static int pvas_finalize(struct mca_btl_base_module_t *btl)
{
	struct pvas_peers *peers;
	unsigned int i;

	(void)btl;
	for (peers = component.peers; peers; peers = peers->next)
		for (i = 0; i < peers->nr; i++)
			pvas_say_goodbye(&peers->endpoints[i]);
	pvas_watch_stop();
	return OPAL_SUCCESS;
}

static int pvas_register_error(struct mca_btl_base_module_t *btl,
			       mca_btl_base_module_error_cb_fn_t cbfunc)
{
	((struct pvas_module *)btl)->error_cb = cbfunc;
	return OPAL_SUCCESS;
}

static int pvas_ft_event(int state)
{
	(void)state;
	return OPAL_SUCCESS;
}

struct pvas_module mca_btl_pvas = {
	.super = {
		.btl_component = &mca_btl_pvas_component.super,
		.btl_add_procs = pvas_add_procs,
		.btl_del_procs = pvas_del_procs,
		.btl_finalize = pvas_finalize,
		.btl_alloc = pvas_alloc,
		.btl_free = pvas_free,
		.btl_prepare_src = pvas_prepare_src,
		.btl_send = pvas_send,
		.btl_sendi = pvas_sendi,
		.btl_put = pvas_put,
		.btl_get = pvas_get,
		.btl_dump = mca_btl_base_dump,
		.btl_atomic_op = pvas_atomic_op,
		.btl_atomic_fop = pvas_atomic_fop,
		.btl_atomic_cswap = pvas_atomic_cswap,
		.btl_register_error = pvas_register_error,
		.btl_ft_event = pvas_ft_event,
	},
};
