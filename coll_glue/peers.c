// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which processes are tasks of our space and use this component alike, and do they still run? */
#include "coll_pvas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "opal/util/output.h"

#include "../btl_glue/open_mpi.h"
#include "../libpvas/pvas.h"

#define component mca_coll_pvas_component

/* False if this process is not a task of a space, which is not an error */
bool mca_coll_pvas_find_self(void)
{
	int self = pvas_task_get_index();
	const struct pvas_start *start;
	struct pvas_task_info me;

	if (self < 0 || pvas_task_get(self, &me))
		return false;
	start = (const struct pvas_start *)getauxval(AT_PVAS);
	component.faults = (struct mca_btl_pvas_faults) {
		.index = self,
		.shift = start->shift,
		.table = (const struct pvas_part *)start->table,
		.lost = mca_coll_pvas_lost,
	};
	component.modex = (struct mca_coll_pvas_modex) {
		.version = MCA_COLL_PVAS_MODEX_VERSION,
		.space = pvas_space_get_id(NULL),
		.index = self,
		.gen = start->gen,
		.pid = component.faults.table[self].pid,
	};
	return true;
}

/* Ranks with other settings would choose other algorithms, or another component. */
bool mca_coll_pvas_publish(void)
{
	bool in_space;

	component.modex.settings[0] = component.priority;
	component.modex.settings[1] = component.ring_limit;
	component.modex.settings[2] = component.share;
	component.modex.settings[3] = component.share_copy;
	component.modex.settings[4] = component.yield;
	component.modex.settings[5] = component.choose;
	component.modex.settings[6] = component.segment;
	component.modex.settings[7] = component.most_ranks;
	component.modex.settings[8] = component.devices;
	component.modex.settings[9] = component.device_latency;
	component.modex.settings[10] = component.device_bandwidth;
	if (mca_coll_pvas_several_nodes())
		mca_coll_pvas_find_home();
	if (mca_btl_pvas_publish(&component.super.collm_version, MCA_COLL_PVAS_NAME,
				 &component.modex, sizeof(component.modex),
				 &in_space) != OMPI_SUCCESS || !in_space)
		return false;
	return !component.modex.home || mca_coll_pvas_publish_home();
}

bool mca_coll_pvas_member_alive(const struct mca_coll_pvas_member *member)
{
	const struct pvas_part *part = &component.faults.table[member->index];

	return __atomic_load_n(&part->state, __ATOMIC_ACQUIRE) == PVAS_PART_RUNNING &&
	       __atomic_load_n(&part->gen, __ATOMIC_RELAXED) == member->gen;
}

static bool alike(const struct mca_coll_pvas_modex *modex)
{
	return modex->version == component.modex.version &&
	       !memcmp(modex->settings, component.modex.settings, sizeof(modex->settings));
}

/*
 * A peer without a modex does not use this component. By default all ranks have met in a
 * fence since they published theirs, so it is in the space or nowhere; PMIx, which would be
 * asked in vain for 2 s, knows more only if that fence was left out.
 */
static bool find_modex(const opal_process_name_t *rank, struct mca_coll_pvas_modex *modex)
{
	if (!opal_pmix_base_async_modex)
		return mca_btl_pvas_look_up_in_space(MCA_COLL_PVAS_NAME, rank, modex,
						     sizeof(*modex));
	return mca_btl_pvas_look_up(&component.super.collm_version, MCA_COLL_PVAS_NAME, rank, modex,
				    sizeof(*modex));
}

/* Ids of spaces repeat on other nodes, so the peer's partition must also match its modex. */
static void look_up(struct mca_coll_pvas_peer *peer)
{
	struct mca_coll_pvas_modex modex;
	static bool warned;

	peer->member = (struct mca_coll_pvas_member) { 0 };
	peer->home = 0;
	if (!find_modex(&peer->name, &modex)) {
		if (component.modex.home)
			peer->home = mca_coll_pvas_look_up_home(&peer->name);
		return;
	}
	if (modex.space != component.modex.space || modex.index >= PVAS_MAX_TASKS + 2)
		return;
	peer->home = mca_coll_pvas_home_of(&modex);
	peer->member = (struct mca_coll_pvas_member) { modex.index, modex.gen };
	if (mca_coll_pvas_member_alive(&peer->member) &&
	    component.faults.table[modex.index].pid == modex.pid && alike(&modex)) {
		mca_btl_pvas_expect_faults(modex.index, modex.gen);
		return;
	}
	peer->member.index = 0;
	if (alike(&modex) || warned)
		return;
	warned = true;
	opal_output(0, "coll pvas: not used with rank %u, which has another version or other "
		    "parameters", (unsigned int)peer->name.vpid);
}

static int same_name(const opal_process_name_t *a, const opal_process_name_t *b)
{
	return a->jobid == b->jobid && a->vpid == b->vpid;
}

static struct mca_coll_pvas_peer *add_peer(const opal_process_name_t *name)
{
	const unsigned int nr = component.nr_peers;
	struct mca_coll_pvas_peer *peers = component.peers;

	/* It grows at powers of two. */
	if (!(nr & (nr - 1))) {
		peers = realloc(peers, (nr ? 2 * nr : 1) * sizeof(*peers));
		if (!peers)
			return NULL;
		component.peers = peers;
	}
	peers[nr].name = *name;
	look_up(&peers[nr]);
	component.nr_peers++;
	return &peers[nr];
}

/* Communicators mostly have their ranks in one order: begin behind the last one found. */
static struct mca_coll_pvas_peer *find_peer(const opal_process_name_t *name)
{
	unsigned int i, at;

	for (i = 0; i < component.nr_peers; i++) {
		at = (component.last_peer + 1 + i) % component.nr_peers;
		if (!same_name(&component.peers[at].name, name))
			continue;
		component.last_peer = at;
		return &component.peers[at];
	}
	return add_peer(name);
}

struct mca_coll_pvas_member mca_coll_pvas_member(struct ompi_communicator_t *comm, int rank)
{
	const opal_process_name_t name = ompi_group_get_proc_name(comm->c_local_group, rank);
	struct mca_coll_pvas_member member = { 0 };
	struct mca_coll_pvas_peer *peer;

	if (same_name(&name, &OPAL_PROC_MY_NAME))
		return (struct mca_coll_pvas_member) { component.modex.index, component.modex.gen };
	OPAL_THREAD_LOCK(&component.lock);
	peer = find_peer(&name);
	if (peer)
		member = peer->member;
	OPAL_THREAD_UNLOCK(&component.lock);
	return member;
}

/* 0: unknown, or not in use */
uint64_t mca_coll_pvas_home(struct ompi_communicator_t *comm, int rank)
{
	const opal_process_name_t name = ompi_group_get_proc_name(comm->c_local_group, rank);
	struct mca_coll_pvas_peer *peer;
	uint64_t home = 0;

	if (same_name(&name, &OPAL_PROC_MY_NAME))
		return component.modex.home;
	OPAL_THREAD_LOCK(&component.lock);
	peer = find_peer(&name);
	if (peer)
		home = peer->home;
	OPAL_THREAD_UNLOCK(&component.lock);
	return home;
}

bool mca_coll_pvas_same_space(struct ompi_communicator_t *comm)
{
	int i;

	for (i = 0; i < ompi_comm_size(comm); i++)
		if (!mca_coll_pvas_member(comm, i).index ||
		    mca_coll_pvas_home(comm, i) != component.modex.home)
			return false;
	return true;
}

/* ---- peers that have ended ---- */

/*
 * Called by the fault handler: this rank was using the memory of a task that has ended. What
 * it was doing can't be completed, and the exit status ends the job.
 */
void mca_coll_pvas_lost(uint32_t index)
{
	char text[100];
	unsigned int i;
	int len;

	if (!mca_coll_pvas_inside)
		return;
	for (i = 0; i < component.nr_peers; i++)
		if (component.peers[i].member.index == index)
			break;
	/* snprintf() of numbers takes no lock and no memory. */
	len = snprintf(text, sizeof(text),
		       "coll pvas: rank %d on this node ended before MPI_Finalize\n",
		       i < component.nr_peers ? (int)component.peers[i].name.vpid : -1);
	if (write(STDERR_FILENO, text, len) < 0)
		_exit(1);
	_exit(1);
}
