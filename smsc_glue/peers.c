// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which processes are tasks of our space and use this component? And those that end before
 * MPI_Finalize: a rank that waits for one would wait for ever, unless its launcher ends it.
 *
 * Open MPI's progress function checks the peers, one at each call. A rank that finalizes
 * sets its bit in its peers' ports first, so they do not report it. The framework has no
 * way to tell Open MPI of a lost peer, so the launcher is asked to end the job.
 */
#include "smsc_pvas.h"

#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "opal/runtime/opal_progress.h"

#include "../btl_glue/open_mpi.h"
#include "../libpvas/pvas.h"

#define component mca_smsc_pvas_component

static struct peer {
	struct mca_smsc_pvas_port *port;	/* NULL: not watched */
	uint32_t gen;
	uint32_t rank;
} peers[MCA_SMSC_PVAS_PARTITIONS];

static uint32_t highest, next;

/* ---- finding them ---- */

/* The caller or Open MPI was reading the peer's memory: there is nowhere to return to. */
static void peer_lost(uint32_t index)
{
	static const char text[] =
		"smsc pvas: a rank on this node ended while its memory was in use; giving up\n";

	(void)index;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(1);
	_exit(1);
}

/* False if this process is not a task of a space, which is not an error */
bool mca_smsc_pvas_find_self(void)
{
	const int self = pvas_task_get_index();
	const struct pvas_start *start;
	struct pvas_task_info me;

	if (self < 0 || pvas_task_get(self, &me))
		return false;
	start = (const struct pvas_start *)getauxval(AT_PVAS);
	component.port.modex.version = MCA_SMSC_PVAS_MODEX_VERSION;
	component.port.modex.space = pvas_space_get_id(NULL);
	component.port.modex.index = self;
	component.port.modex.gen = start->gen;
	component.port.modex.port = (uint64_t)&component.port;
	component.faults.index = self;
	component.faults.shift = start->shift;
	component.faults.table = (const struct pvas_part *)start->table;
	component.faults.lost = peer_lost;
	component.port.modex.pid = component.faults.table[self].pid;
	return true;
}

static bool alive(uint32_t index, uint32_t gen)
{
	const struct pvas_part *part = &component.faults.table[index];

	return __atomic_load_n(&part->state, __ATOMIC_ACQUIRE) == PVAS_PART_RUNNING &&
	       __atomic_load_n(&part->gen, __ATOMIC_RELAXED) == gen;
}

/* Ids of spaces repeat on other nodes, so the peer's partition must also match its modex. */
bool mca_smsc_pvas_look_up(const opal_proc_t *proc, struct mca_smsc_pvas_modex *modex)
{
	const struct mca_smsc_pvas_modex *ours = &component.port.modex;

	return OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags) &&
	       mca_btl_pvas_look_up(&component.super.smsc_version, MCA_SMSC_PVAS_NAME,
				    &proc->proc_name, modex, sizeof(*modex)) &&
	       modex->version == ours->version && modex->space == ours->space &&
	       modex->index < MCA_SMSC_PVAS_PARTITIONS &&
	       modex->port >> component.faults.shift == modex->index &&
	       alive(modex->index, modex->gen) &&
	       component.faults.table[modex->index].pid == modex->pid;
}

/* ---- watching them ---- */

static bool has_finalized(uint32_t index)
{
	return __atomic_load_n(&component.port.finalized[index / 64], __ATOMIC_ACQUIRE) >>
	       (index % 64) & 1;
}

/* If the peer ends during the store, which it can at any moment, the handler returns here. */
static void set_finalized(struct mca_smsc_pvas_port *port, bool finalized)
{
	const uint32_t index = component.port.modex.index;
	const uint64_t bit = 1ULL << (index % 64);
	sigjmp_buf back;

	if (!sigsetjmp(back, 0)) {
		mca_btl_pvas_fault_return = &back;
		if (finalized)
			__atomic_or_fetch(&port->finalized[index / 64], bit, __ATOMIC_RELEASE);
		else
			__atomic_and_fetch(&port->finalized[index / 64], ~bit, __ATOMIC_RELEASE);
	}
	mca_btl_pvas_fault_return = NULL;
}

void mca_smsc_pvas_watch(const opal_proc_t *proc, const struct mca_smsc_pvas_modex *modex)
{
	struct peer *peer = &peers[modex->index];
	struct mca_smsc_pvas_port *port = (struct mca_smsc_pvas_port *)modex->port;

	/* An earlier task in our partition may have set our bit. */
	set_finalized(port, false);
	peer->gen = modex->gen;
	peer->rank = proc->proc_name.vpid;
	__atomic_store_n(&peer->port, port, __ATOMIC_RELEASE);
	if (highest < modex->index)
		highest = modex->index;
}

void mca_smsc_pvas_unwatch(uint32_t index)
{
	struct mca_smsc_pvas_port *port =
		__atomic_exchange_n(&peers[index].port, NULL, __ATOMIC_ACQ_REL);

	if (port && alive(index, peers[index].gen))
		set_finalized(port, true);
}

static void report(const struct peer *peer)
{
	char text[128];

	snprintf(text, sizeof(text), "smsc pvas: rank %u on this node ended before MPI_Finalize",
		 (unsigned int)peer->rank);
	/* The launcher may know a better reason: it is not to find this rank ended first. */
	PMIx_Abort(1, text, NULL, 0);
	_exit(1);
}

static int check_next_peer(void)
{
	const uint32_t index = next > highest ? 0 : next;
	const struct peer *peer = &peers[index];

	next = index + 1;
	if (__atomic_load_n(&peer->port, __ATOMIC_ACQUIRE) && !alive(index, peer->gen) &&
	    !has_finalized(index))
		report(peer);
	return 0;
}

void mca_smsc_pvas_watch_begin(void)
{
	mca_btl_pvas_install_fault_handlers(&component.faults);
	if (component.watch_peers)
		opal_progress_register_lp(check_next_peer);
}

void mca_smsc_pvas_watch_end(void)
{
	opal_progress_unregister(check_next_peer);
	mca_btl_pvas_restore_fault_handlers();
}
