// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A task's memory is freed when it ends. A fault in it is told from a bug in the program,
 * and left to the component; any other goes to the handler that was installed before.
 * Shared with coll/pvas.
 */
#include "common.h"

#include <signal.h>

static const struct mca_btl_pvas_faults *faults;
static struct sigaction old_segv, old_bus;

/* The peer that we know in each partition; 0: none */
static uint32_t peer_gen[PVAS_MAX_TASKS + 2];

/* Set while this thread accesses a peer's memory that can be freed meanwhile */
__thread sigjmp_buf *mca_btl_pvas_fault_return;

void mca_btl_pvas_expect_faults(uint32_t index, uint32_t gen)
{
	if (index < PVAS_MAX_TASKS + 2)
		__atomic_store_n(&peer_gen[index], gen, __ATOMIC_RELAXED);
}

/* Another task, or after an exec another program, may have followed by now. */
static bool has_ended(uint32_t index)
{
	const struct pvas_part *part = &faults->table[index];
	uint32_t peer = __atomic_load_n(&peer_gen[index], __ATOMIC_RELAXED);
	uint32_t state = __atomic_load_n(&part->state, __ATOMIC_ACQUIRE);
	uint32_t gen = __atomic_load_n(&part->gen, __ATOMIC_RELAXED);

	if (state == PVAS_PART_RUNNING)
		return peer && peer != gen;
	return state != PVAS_PART_RESERVED && gen;
}

/* The partition of a task that has ended; 0 if it is none */
static uint32_t failed_partition(const void *addr)
{
	uint64_t index;

	/* A handler that was installed over ours still calls it after MPI_Finalize. */
	if (!faults)
		return 0;
	index = (uint64_t)addr >> faults->shift;
	/* A wild pointer mostly leads to where no task has ever been. */
	if (index < PVAS_MAX_TASKS + 2 && index != faults->index && has_ended(index))
		return index;
	return 0;
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
	uint32_t index = info->si_code > 0 ? failed_partition(info->si_addr) : 0;

	if (index && mca_btl_pvas_fault_return)
		siglongjmp(*mca_btl_pvas_fault_return, 1);
	if (index)
		faults->lost(index);
	chain_handler(sig == SIGSEGV ? &old_segv : &old_bus, sig, info, context);
}

void mca_btl_pvas_install_fault_handlers(const struct mca_btl_pvas_faults *ours)
{
	struct sigaction act = {
		.sa_sigaction = fault_handler,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
	};

	faults = ours;
	sigemptyset(&act.sa_mask);
	sigaction(SIGSEGV, &act, &old_segv);
	sigaction(SIGBUS, &act, &old_bus);
}

/*
 * Keep a handler that was installed over ours. It may call ours, or put it back later: then ours
 * goes on to the one before it, as components are never unloaded (-z nodelete).
 */
static void restore(int sig, const struct sigaction *old)
{
	struct sigaction now;

	if (!sigaction(sig, NULL, &now) && now.sa_flags & SA_SIGINFO &&
	    now.sa_sigaction == fault_handler)
		sigaction(sig, old, NULL);
}

void mca_btl_pvas_restore_fault_handlers(void)
{
	if (!faults)
		return;
	restore(SIGSEGV, &old_segv);
	restore(SIGBUS, &old_bus);
	faults = NULL;
}
