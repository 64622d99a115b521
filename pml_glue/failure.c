// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Peers that end before MPI_Finalize. A task's memory is freed when it ends, so an access to
 * it faults: the rank can't go on, says so in one line, and exits with status 1. A rank that
 * waits checks its peers now and then, and ends the job likewise.
 */
#include "pml_pvas.h"

#include <stdio.h>
#include <unistd.h>

#include "ompi/runtime/mpiruntime.h"
#include "opal/util/output.h"

#define component mca_pml_pvas_component

/* ---- checking peers ---- */

static bool has_finalized(uint32_t index)
{
	uint64_t word = __atomic_load_n(&component.port->finalized[index / 64], __ATOMIC_ACQUIRE);

	return word >> (index % 64) & 1;
}

static void check(struct mca_pml_pvas_peer *peer)
{
	if (!peer->watched || peer->gone || mca_pml_pvas_runs(peer->index, peer->gen))
		return;
	peer->gone = true;
	if (has_finalized(peer->index))
		return;
	opal_output(0, "pml pvas: rank %u on this node ended before MPI_Finalize",
		    (unsigned int)peer->name.vpid);
	ompi_mpi_abort(&ompi_mpi_comm_world.comm, 1);
}

void mca_pml_pvas_check_peers(void)
{
	unsigned int i;

	for (i = 0; component.watch_peers && i < component.nr_peers; i++)
		check(component.peers[i]);
}

/* ---- finalizing ---- */

static void set_finalized(struct mca_pml_pvas_port *port, bool finalized)
{
	const uint32_t self = component.faults.index;
	uint64_t *word = &port->finalized[self / 64];
	const uint64_t bit = 1ULL << (self % 64);

	if (finalized)
		__atomic_or_fetch(word, bit, __ATOMIC_RELEASE);
	else
		__atomic_and_fetch(word, ~bit, __ATOMIC_RELEASE);
}

/* The peer can end at any moment. */
static void notify(struct mca_pml_pvas_peer *peer, bool finalized)
{
	sigjmp_buf back;

	if (!mca_pml_pvas_runs(peer->index, peer->gen))
		return;
	if (!sigsetjmp(back, 0)) {
		mca_btl_pvas_fault_return = &back;
		mca_pml_pvas_fault_point("peer runs");
		set_finalized(peer->port, finalized);
		mca_pml_pvas_fault_point("peer told");
	}
	mca_btl_pvas_fault_return = NULL;
}

/* An earlier task in our partition may have finalized. */
void mca_pml_pvas_notify_start(struct mca_pml_pvas_peer *peer)
{
	notify(peer, false);
}

void mca_pml_pvas_notify_finalize(void)
{
	struct mca_pml_pvas_peer *peer;
	unsigned int i;

	for (i = 0; i < component.nr_peers; i++) {
		peer = component.peers[i];
		if (!peer->port || peer->gone || peer->port == component.port)
			continue;
		notify(peer, true);
		peer->gone = true;
	}
}

/* ---- faults ---- */

/* In these, a fault in the memory of a peer that has ended is ours. */
void mca_pml_pvas_begin_fetch(void)
{
	OPAL_THREAD_ADD_FETCH32(&component.fetching, 1);
}

void mca_pml_pvas_end_fetch(void)
{
	OPAL_THREAD_ADD_FETCH32(&component.fetching, -1);
}

/*
 * Called by the fault handler: we were using the memory of a task that has ended. The
 * access can't be completed, and the exit status ends the job.
 */
void mca_pml_pvas_lost(uint32_t index)
{
	unsigned int i;
	char text[100];
	int len;

	if (!component.touching && !component.fetching)
		return;
	for (i = 0; i < component.nr_peers; i++)
		if (component.peers[i]->index == index)
			break;
	/* snprintf() of numbers takes no lock and no memory. */
	len = snprintf(text, sizeof(text),
		       "pml pvas: rank %d on this node ended before MPI_Finalize\n",
		       i < component.nr_peers ? (int)component.peers[i]->name.vpid : -1);
	if (write(STDERR_FILENO, text, len) < 0)
		_exit(1);
	_exit(1);
}
