// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Peers that end before MPI_Finalize. A task's memory is freed when it ends, so:
 *
 *  - check the partition table before touching a peer's memory;
 *  - a waiting rank checks its peers, and reports a failed one to Open MPI, which
 *    ends the job: otherwise the wait would never end;
 *  - a rank that finalizes sets its bit in its peers' ports, so that they do not report it;
 *  - if a peer ends during a copy, the copy faults. The handler tells that fault from a
 *    bug in the program, and reports the peer in one line, without a core file.
 */
#include "btl_pvas.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opal/util/output.h"
#include "opal/util/proc.h"

#define component mca_btl_pvas_component

/* ---- checking peers ---- */

static bool has_finalized(uint32_t index)
{
	uint64_t word = __atomic_load_n(&component.port->finalized[index / 64], __ATOMIC_ACQUIRE);

	return word >> (index % 64) & 1;
}

void mca_btl_pvas_peer_failed(struct mca_btl_base_endpoint_t *ep)
{
	char text[160];

	if (__atomic_exchange_n(&ep->gone, true, __ATOMIC_RELAXED) || !component.watch_peers ||
	    has_finalized(ep->index))
		return;
	snprintf(text, sizeof(text), "btl pvas: rank %u on this node ended before MPI_Finalize",
		 (unsigned int)ep->proc->proc_name.vpid);
	opal_output(0, "%s", text);
	if (mca_btl_pvas.error_cb)
		mca_btl_pvas.error_cb(&mca_btl_pvas.super, MCA_BTL_ERROR_FLAGS_FATAL, ep->proc,
				      NULL);
}

/* It is the peer's memory, which can end with it, also after a good MPI_Finalize. */
static void release_or_forget(struct mca_btl_base_endpoint_t *ep, struct mca_btl_pvas_fbox *fbox)
{
	sigjmp_buf back;

	if (!sigsetjmp(back, 0)) {
		mca_btl_pvas_fault_return = &back;
		mca_btl_pvas_fbox_release(ep, fbox);
	} else {
		__atomic_store_n(&ep->fbox_out, NULL, __ATOMIC_RELEASE);
	}
	mca_btl_pvas_fault_return = NULL;
}

/* A closed fast box must be released even if there is nothing to send. */
static void release_fbox_if_closing(struct mca_btl_base_endpoint_t *ep)
{
	struct mca_btl_pvas_fbox *fbox;

	OPAL_THREAD_LOCK(mca_btl_pvas_endpoint_lock(ep));
	fbox = __atomic_load_n(&ep->fbox_out, __ATOMIC_ACQUIRE);
	if (fbox)
		release_or_forget(ep, fbox);
	OPAL_THREAD_UNLOCK(mca_btl_pvas_endpoint_lock(ep));
}

static struct mca_btl_base_endpoint_t *next_peer(void)
{
	struct mca_btl_pvas_endpoint_group *peers = component.check_group;

	if (peers && ++component.check_index < peers->nr)
		return &peers->endpoints[component.check_index];
	component.check_group = peers && peers->next ? peers->next : component.peers;
	component.check_index = 0;
	return component.check_group ? component.check_group->endpoints : NULL;
}

static void check_peer(struct mca_btl_base_endpoint_t *ep)
{
	if (ep->gone)
		return;
	if (!mca_btl_pvas_peer_alive(ep->index, ep->gen))
		mca_btl_pvas_peer_failed(ep);
	else if (ep->fbox_out)
		release_fbox_if_closing(ep);
}

/* Check one peer, another one each time, so that a closed fast box is released soon. */
void mca_btl_pvas_check_next_peer(void)
{
	struct mca_btl_base_endpoint_t *ep = next_peer();

	if (ep)
		check_peer(ep);
}

/* Nothing, if that was a short time ago */
void mca_btl_pvas_check_peers(void)
{
	struct mca_btl_pvas_endpoint_group *group;
	static uint64_t next;
	unsigned int i;

	if (!mca_btl_pvas_check_is_due(&next))
		return;
	for (group = component.peers; group; group = group->next)
		for (i = 0; i < group->nr; i++)
			check_peer(&group->endpoints[i]);
}

/* ---- finalizing ---- */

static void set_finalized(struct mca_btl_pvas_port *port, bool finalized)
{
	uint64_t *word = &port->finalized[component.index / 64];
	const uint64_t bit = 1ULL << (component.index % 64);

	if (finalized)
		__atomic_or_fetch(word, bit, __ATOMIC_RELEASE);
	else
		__atomic_and_fetch(word, ~bit, __ATOMIC_RELEASE);
}

/* False: the peer has ended, as it can at any moment, or is no longer used. */
static bool notify(struct mca_btl_base_endpoint_t *ep, bool finalized)
{
	sigjmp_buf back;

	if (ep->gone || !mca_btl_pvas_peer_alive(ep->index, ep->gen))
		return false;
	if (!sigsetjmp(back, 0)) {
		mca_btl_pvas_fault_return = &back;
		set_finalized(ep->port, finalized);
	}
	mca_btl_pvas_fault_return = NULL;
	return true;
}

/* An earlier task in our partition may have finalized. */
void mca_btl_pvas_notify_start(struct mca_btl_base_endpoint_t *ep)
{
	notify(ep, false);
}

void mca_btl_pvas_notify_finalize(struct mca_btl_base_endpoint_t *ep)
{
	/* Do not use it any more, and do not report its end. */
	if (notify(ep, true))
		ep->gone = true;
}

/* ---- faults ---- */

/* The upper layer was reading the peer's memory: there is nowhere to return to. */
static void peer_lost(uint32_t index)
{
	static const char text[] =
		"btl pvas: a rank on this node ended while its memory was in use; giving up\n";

	(void)index;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(1);
	_exit(1);
}

void mca_btl_pvas_catch_faults(void)
{
	static struct mca_btl_pvas_faults faults = { .lost = peer_lost };

	faults.index = component.index;
	faults.shift = component.shift;
	faults.table = component.table;
	mca_btl_pvas_install_fault_handlers(&faults);
}
