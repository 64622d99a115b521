// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Peers that end before MPI_Finalize. A task's memory is freed when it ends, so:
 *
 *  - check the partition table before touching a peer's memory;
 *  - a waiting rank checks its peers in turn, and reports a failed one to Open MPI, which
 *    ends the job: otherwise the wait would never end;
 *  - a rank that finalizes sets its bit in its peers' ports, so that they do not report it;
 *  - if a peer ends during a copy, the copy faults. The handler tells that fault from a
 *    bug in the program, and reports the peer in one line, without a core file.
 */
#include "btl_pvas.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opal/util/output.h"
#include "opal/util/proc.h"

#define component mca_btl_pvas_component

static struct sigaction old_segv, old_bus;
static bool handlers_installed;

/* Set while this thread accesses a peer's memory that can be freed meanwhile */
__thread sigjmp_buf *mca_btl_pvas_fault_return;

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

/* A closed fast box must be released even if there is nothing to send. */
static void release_fbox_if_closing(struct mca_btl_base_endpoint_t *ep)
{
	struct mca_btl_pvas_fbox *fbox;

	OPAL_THREAD_LOCK(mca_btl_pvas_endpoint_lock(ep));
	fbox = __atomic_load_n(&ep->fbox_out, __ATOMIC_ACQUIRE);
	if (fbox)
		mca_btl_pvas_fbox_release(ep, fbox);
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

/* Check one peer, another one each time. */
void mca_btl_pvas_check_next_peer(void)
{
	struct mca_btl_base_endpoint_t *ep = next_peer();

	if (!ep || ep->gone)
		return;
	if (!mca_btl_pvas_peer_alive(ep->index, ep->gen))
		mca_btl_pvas_peer_failed(ep);
	else if (ep->fbox_out)
		release_fbox_if_closing(ep);
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

static bool in_failed_partition(const void *addr)
{
	uint64_t index = (uint64_t)addr >> component.shift;

	return index && index < PVAS_MAX_TASKS + 2 && index != component.index &&
	       component.table[index].state != PVAS_PART_RUNNING &&
	       component.table[index].state != PVAS_PART_RESERVED;
}

static void raise_default(int sig)
{
	signal(sig, SIG_DFL);
	raise(sig);
}

static void chain_handler(const struct sigaction *old, int sig, siginfo_t *info, void *context)
{
	if (old->sa_flags & SA_SIGINFO)
		old->sa_sigaction(sig, info, context);
	else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN)
		old->sa_handler(sig);
	else if (info->si_code > 0)
		/* The instruction faults again, with the default action. */
		signal(sig, SIG_DFL);
	else if (old->sa_handler == SIG_DFL)
		/* A signal that was sent, by kill() or raise(), does not occur again. */
		raise_default(sig);
}

static void fault_handler(int sig, siginfo_t *info, void *context)
{
	static const char text[] =
		"btl pvas: a rank on this node ended while its memory was in use; giving up\n";

	if (info->si_code > 0 && in_failed_partition(info->si_addr)) {
		if (mca_btl_pvas_fault_return)
			siglongjmp(*mca_btl_pvas_fault_return, 1);
		if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
			_exit(1);
		_exit(1);
	}
	chain_handler(sig == SIGSEGV ? &old_segv : &old_bus, sig, info, context);
}

void mca_btl_pvas_catch_faults(void)
{
	struct sigaction act = {
		.sa_sigaction = fault_handler,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
	};

	sigemptyset(&act.sa_mask);
	sigaction(SIGSEGV, &act, &old_segv);
	sigaction(SIGBUS, &act, &old_bus);
	handlers_installed = true;
}

/* Keep a handler that was installed over ours: it may call ours. */
static void restore(int sig, const struct sigaction *old)
{
	struct sigaction now;

	if (!sigaction(sig, NULL, &now) && now.sa_flags & SA_SIGINFO &&
	    now.sa_sigaction == fault_handler)
		sigaction(sig, old, NULL);
}

void mca_btl_pvas_restore_fault_handlers(void)
{
	if (!handlers_installed)
		return;
	restore(SIGSEGV, &old_segv);
	restore(SIGBUS, &old_bus);
	handlers_installed = false;
}
