// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which processes are tasks of our space and have this component? Two ranks must decide alike
 * about each other: both find what the other has published, or neither does.
 */
#include "pml_pvas.h"

#include <stdlib.h>
#include <sys/auxv.h>

#include "opal/mca/pmix/pmix.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

#include "../libpvas/pvas.h"

#define component mca_pml_pvas_component

/* False if this process is not a task of a space, which is not an error */
bool mca_pml_pvas_find_self(void)
{
	const struct pvas_start *start = (const struct pvas_start *)getauxval(AT_PVAS);
	const int self = pvas_task_get_index();
	struct pvas_task_info me;

	if (!start || self < 0 || pvas_task_get(self, &me))
		return false;
	component.own_in.index = self;
	component.faults.index = self;
	component.faults.shift = start->shift;
	component.faults.table = (const struct pvas_part *)start->table;
	component.faults.lost = mca_pml_pvas_lost;
	return true;
}

bool mca_pml_pvas_publish(void)
{
	struct mca_pml_pvas_modex *modex = &component.port->modex;
	const uint32_t self = component.faults.index;
	bool in_space;

	*modex = (struct mca_pml_pvas_modex) {
		.version = MCA_PML_PVAS_MODEX_VERSION,
		.space = pvas_space_get_id(NULL),
		.index = self,
		.gen = component.faults.table[self].gen,
		.pid = component.faults.table[self].pid,
		.ring_size = component.ring_size,
		.port = (uint64_t)component.port,
	};
	mca_pml_pvas_fault_point("port made");
	if (mca_btl_pvas_publish(&component.super.pmlm_version, MCA_PML_PVAS_NAME, modex,
				 sizeof(*modex), &in_space) != OMPI_SUCCESS)
		return false;
	mca_pml_pvas_fault_point("port published");
	/* Peers look only in the space if all have met in a fence before. */
	return in_space || opal_pmix_base_async_modex;
}

static bool find_modex(const opal_process_name_t *rank, struct mca_pml_pvas_modex *modex)
{
	if (!opal_pmix_base_async_modex)
		return mca_btl_pvas_look_up_in_space(MCA_PML_PVAS_NAME, rank, modex,
						     sizeof(*modex));
	return mca_btl_pvas_look_up(&component.super.pmlm_version, MCA_PML_PVAS_NAME, rank, modex,
				    sizeof(*modex));
}

static void warn_version(const opal_process_name_t *rank)
{
	static bool warned;

	if (!warned)
		opal_output(0, "pml pvas: not used with rank %u, which has another version",
			    (unsigned int)rank->vpid);
	warned = true;
}

static bool is_of_our_space(const struct mca_pml_pvas_modex *modex)
{
	return modex->space == component.port->modex.space && modex->index < MCA_PML_PVAS_INDEXES;
}

static bool is_on_our_node(const opal_process_name_t *name)
{
	const struct opal_proc_t *proc = opal_proc_for_name(*name);

	return proc && OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags);
}

/*
 * A peer that has ended since it was published would be taken for one outside of the space, and
 * messages to it, over another transport, would wait for ever. PMIx still has its address.
 */
static void watch_if_ended(struct mca_pml_pvas_peer *peer)
{
	struct mca_pml_pvas_modex modex;

	if (!is_on_our_node(&peer->name) ||
	    !mca_btl_pvas_look_up(&component.super.pmlm_version, MCA_PML_PVAS_NAME, &peer->name,
				  &modex, sizeof(modex)) ||
	    !is_of_our_space(&modex) || mca_pml_pvas_runs(modex.index, modex.gen))
		return;
	peer->index = modex.index;
	peer->gen = modex.gen;
	peer->watched = true;
}

/* Ids of spaces repeat on other nodes, so the peer's partition must also match its modex. */
static void look_up(struct mca_pml_pvas_peer *peer)
{
	struct mca_pml_pvas_modex modex;

	if (!find_modex(&peer->name, &modex) || !is_of_our_space(&modex) ||
	    !mca_pml_pvas_runs(modex.index, modex.gen) ||
	    component.faults.table[modex.index].pid != modex.pid) {
		watch_if_ended(peer);
		return;
	}
	if (modex.version != MCA_PML_PVAS_MODEX_VERSION) {
		warn_version(&peer->name);
		return;
	}
	peer->index = modex.index;
	peer->gen = modex.gen;
	mca_btl_pvas_expect_faults(peer->index, peer->gen);
	peer->port = (struct mca_pml_pvas_port *)modex.port;
	if (peer->port == component.port)
		component.own_peer = peer;
	else
		mca_pml_pvas_notify_start(peer);
}

static bool same_name(const opal_process_name_t *a, const opal_process_name_t *b)
{
	return a->jobid == b->jobid && a->vpid == b->vpid;
}

static struct mca_pml_pvas_peer *add_peer(const opal_process_name_t *name)
{
	const unsigned int nr = component.nr_peers;
	struct mca_pml_pvas_peer **peers = component.peers, *peer;

	/* It grows at powers of two. */
	if (!(nr & (nr - 1))) {
		peers = realloc(peers, (nr ? 2 * nr : 1) * sizeof(*peers));
		if (!peers)
			return NULL;
		component.peers = peers;
	}
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->name = *name;
	look_up(peer);
	peers[component.nr_peers++] = peer;
	return peer;
}

/* Communicators mostly have their ranks in one order: begin behind the last one found. */
static struct mca_pml_pvas_peer *find_peer(const opal_process_name_t *name)
{
	unsigned int i, at;

	for (i = 0; i < component.nr_peers; i++) {
		at = (component.last_peer + 1 + i) % component.nr_peers;
		if (!same_name(&component.peers[at]->name, name))
			continue;
		component.last_peer = at;
		return component.peers[at];
	}
	return add_peer(name);
}

/* The caller holds the lock. NULL: no memory */
struct mca_pml_pvas_peer *mca_pml_pvas_peer_of(const struct ompi_group_t *group, int rank)
{
	const opal_process_name_t name = ompi_group_get_proc_name((ompi_group_t *)group, rank);

	return find_peer(&name);
}

static bool all_in_space(const struct ompi_group_t *group)
{
	const struct mca_pml_pvas_peer *peer;
	int i;

	for (i = 0; i < group->grp_proc_count; i++) {
		peer = mca_pml_pvas_peer_of(group, i);
		if (!peer || !peer->port)
			return false;
	}
	return true;
}

/* The caller holds the lock. */
bool mca_pml_pvas_same_space(struct ompi_communicator_t *comm)
{
	return all_in_space(comm->c_local_group) &&
	       (comm->c_remote_group == comm->c_local_group || all_in_space(comm->c_remote_group));
}

void mca_pml_pvas_free_peers(void)
{
	unsigned int i;

	for (i = 0; i < component.nr_peers; i++) {
		free(component.peers[i]->out);
		free(component.peers[i]);
	}
	free(component.peers);
	component.peers = NULL;
	component.nr_peers = 0;
}
