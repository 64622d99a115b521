// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Peers that end too early. A task's memory goes when it ends, so:
 *
 *  - the partition table is looked at before a peer's memory is touched;
 *  - a rank that waits looks at one peer after the other. Open MPI's answer to
 *    a lost peer is to end the job, and it is told of it, so that nobody waits
 *    for ever;
 *  - a rank that has passed MPI_Finalize says goodbye in its peers' ports: it
 *    is not missed;
 *  - if a peer ends in the middle of a copy, the fault is told from a bug of
 *    the program: it is reported in one line, with no core.
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
static bool watching;

/* Set while this thread touches a peer's memory that may well be gone */
__thread sigjmp_buf *pvas_may_fault;

/* ---- losing a peer ---- */

static bool said_goodbye(uint32_t index)
{
	uint64_t word = __atomic_load_n(&component.port->left[index / 64], __ATOMIC_ACQUIRE);

	return word >> (index % 64) & 1;
}

void pvas_peer_gone(struct mca_btl_base_endpoint_t *ep)
{
	char text[160];

	if (__atomic_exchange_n(&ep->gone, true, __ATOMIC_RELAXED) || !component.watch ||
	    said_goodbye(ep->index))
		return;
	snprintf(text, sizeof(text), "btl pvas: rank %u on this node ended before MPI_Finalize",
		 (unsigned int)ep->proc->proc_name.vpid);
	opal_output(0, "%s", text);
	if (mca_btl_pvas.error_cb)
		mca_btl_pvas.error_cb(&mca_btl_pvas.super, MCA_BTL_ERROR_FLAGS_FATAL, ep->proc,
				      NULL);
}

/* A box that its reader wants back must not stay because we have nothing to send. */
static void leave_box_if_asked(struct mca_btl_base_endpoint_t *ep)
{
	struct pvas_box *box;

	OPAL_THREAD_LOCK(pvas_lock(ep));
	box = __atomic_load_n(&ep->box, __ATOMIC_ACQUIRE);
	if (box)
		pvas_box_leave(ep, box);
	OPAL_THREAD_UNLOCK(pvas_lock(ep));
}

static struct mca_btl_base_endpoint_t *next_watched(void)
{
	struct pvas_peers *peers = component.watched;

	if (peers && ++component.watched_nr < peers->nr)
		return &peers->endpoints[component.watched_nr];
	component.watched = peers && peers->next ? peers->next : component.peers;
	component.watched_nr = 0;
	return component.watched ? component.watched->endpoints : NULL;
}

/* Look at one peer, each time at another. */
void pvas_watch_step(void)
{
	struct mca_btl_base_endpoint_t *ep = next_watched();

	if (!ep || ep->gone)
		return;
	if (!pvas_alive(ep->index, ep->gen))
		pvas_peer_gone(ep);
	else if (ep->box)
		leave_box_if_asked(ep);
}

/* ---- leaving ---- */

static void set_left(struct pvas_port *port)
{
	__atomic_or_fetch(&port->left[component.index / 64], 1ULL << (component.index % 64),
			  __ATOMIC_RELEASE);
}

/* It may end at this very moment: it is through, too. */
void pvas_say_goodbye(struct mca_btl_base_endpoint_t *ep)
{
	sigjmp_buf back;

	if (ep->gone || !pvas_alive(ep->index, ep->gen))
		return;
	if (!sigsetjmp(back, 0)) {
		pvas_may_fault = &back;
		set_left(ep->port);
	}
	pvas_may_fault = NULL;
	/* No more is to be had from it, and nothing to be said if it ends. */
	ep->gone = true;
}

/* ---- faults ---- */

static bool in_lost_partition(const void *addr)
{
	uint64_t index = (uint64_t)addr >> component.shift;

	return index && index < PVAS_MAX_TASKS + 2 && index != component.index &&
	       component.table[index].state != PVAS_PART_RUNNING &&
	       component.table[index].state != PVAS_PART_RESERVED;
}

static void end_by(int sig)
{
	signal(sig, SIG_DFL);
	raise(sig);
}

static void pass_on(const struct sigaction *old, int sig, siginfo_t *info, void *context)
{
	if (old->sa_flags & SA_SIGINFO)
		old->sa_sigaction(sig, info, context);
	else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN)
		old->sa_handler(sig);
	else if (info->si_code > 0)
		/* It strikes again, and ends the process as it should. */
		signal(sig, SIG_DFL);
	else if (old->sa_handler == SIG_DFL)
		/* but not one that was sent, by kill() or raise() */
		end_by(sig);
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	static const char text[] =
		"btl pvas: a rank on this node ended while its memory was in use; giving up\n";

	if (info->si_code > 0 && in_lost_partition(info->si_addr)) {
		if (pvas_may_fault)
			siglongjmp(*pvas_may_fault, 1);
		if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
			_exit(1);
		_exit(1);
	}
	pass_on(sig == SIGSEGV ? &old_segv : &old_bus, sig, info, context);
}

void pvas_watch_start(void)
{
	struct sigaction act = {
		.sa_sigaction = on_fault,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
	};

	sigemptyset(&act.sa_mask);
	sigaction(SIGSEGV, &act, &old_segv);
	sigaction(SIGBUS, &act, &old_bus);
	watching = true;
}

/* Not if somebody has put a handler on top of ours: it may call us. */
static void restore(int sig, const struct sigaction *old)
{
	struct sigaction now;

	if (!sigaction(sig, NULL, &now) && now.sa_flags & SA_SIGINFO &&
	    now.sa_sigaction == on_fault)
		sigaction(sig, old, NULL);
}

void pvas_watch_stop(void)
{
	if (!watching)
		return;
	restore(SIGSEGV, &old_segv);
	restore(SIGBUS, &old_bus);
	watching = false;
}
