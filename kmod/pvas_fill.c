// SPDX-License-Identifier: GPL-2.0-only
/*
 * The limits on userfaultfd's ioctls that fill memory, or protect it. As those of pvas_calls.c, but
 * the memory need not be the caller's; see pvas_uffd.c for the other ioctls.
 */
#include <linux/ftrace.h>
#include <linux/mm.h>

#include "pvas.h"
#include "pvas_hook.h"

/* ---- checks: the stub to go to, or NULL ---- */

/* (mm or ctx, addr, len, ...) */
static void *pvas_check_uffd_fill(const struct pvas_partition *part, struct pt_regs *regs)
{
	return pvas_within(part, regs->si, regs->dx);
}

/* (mm or ctx, addr, source, len, ...): the caller could read the source anyway */
static void *pvas_check_uffd_copy(const struct pvas_partition *part, struct pt_regs *regs)
{
	return pvas_within(part, regs->si, regs->cx);
}

/* The same, but the pages are moved away from the source. */
static void *pvas_check_uffd_move(const struct pvas_partition *part, struct pt_regs *regs)
{
	void *stub = pvas_check_uffd_copy(part, regs);

	return stub ?: pvas_within(part, regs->dx, regs->cx);
}

/* ---- the table ---- */

const struct pvas_bound pvas_fill_bounds[] = {
	{ "mwriteprotect_range", pvas_check_uffd_fill, .absent = PVAS_NO_UFFD },
	{ "mcopy_atomic", pvas_check_uffd_copy, .absent = PVAS_NO_UFFD || PVAS_UFFD_MFILL },
	{ "mcopy_continue", pvas_check_uffd_fill,
	  .absent = PVAS_NO_UFFD || PVAS_UFFD_MFILL || !PVAS_UFFD_CONTINUE },
	{ "mfill_zeropage", pvas_check_uffd_fill, .absent = PVAS_NO_UFFD || PVAS_UFFD_MFILL },
	{ "mfill_atomic_copy", pvas_check_uffd_copy, .absent = PVAS_NO_UFFD || !PVAS_UFFD_MFILL },
	{ "mfill_atomic_continue", pvas_check_uffd_fill,
	  .absent = PVAS_NO_UFFD || !PVAS_UFFD_MFILL },
	{ "mfill_atomic_zeropage", pvas_check_uffd_fill,
	  .absent = PVAS_NO_UFFD || !PVAS_UFFD_MFILL },
	{ "mfill_atomic_poison", pvas_check_uffd_fill,
	  .absent = PVAS_NO_UFFD || !PVAS_UFFD_POISON || PVAS_UFFD_UNCHECKED },
	{ "move_pages", pvas_check_uffd_move,
	  .absent = PVAS_NO_UFFD || !PVAS_UFFD_MOVE || PVAS_UFFD_UNCHECKED },
	{ }
};

static unsigned long pvas_fill_at[ARRAY_SIZE(pvas_fill_bounds)];

/* ---- ftrace callbacks ---- */

/*
 * (mm or ctx, ...). Only a task fills memory of its space: an ioctl of another process that has
 * begun before the space was made would fill one that nobody is in.
 */
void notrace pvas_on_fill(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			  struct ftrace_regs *fregs)
{
	struct pvas_partition *part = pvas_task_partition();
	struct pt_regs *regs = pvas_regs(fregs);
	const struct pvas_bound *bound = NULL;
	void *stub;

	if (!pvas_space_has_mm(PVAS_UFFD_FILL_MM(regs->di)))
		return;
	if (part && part->space->mm == PVAS_UFFD_FILL_MM(regs->di))
		bound = pvas_find_bound(pvas_fill_bounds, pvas_fill_at, ARRAY_SIZE(pvas_fill_at),
					ip);
	stub = bound ? bound->check(part, regs) : pvas_stub_eperm;
	if (stub)
		pvas_redirect(regs, stub);
}

/*
 * For each page, since a UFFDIO_COPY whose data come from a file server can be in the middle of
 * mcopy_atomic() when the space is made.
 */
void notrace pvas_on_install_page(unsigned long ip, unsigned long parent_ip,
				  struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pvas_partition *part = pvas_task_partition();
	struct pt_regs *regs = pvas_regs(fregs);
	const struct mm_struct *mm = PVAS_INSTALL_MM(regs);

	if (pvas_space_has_mm(mm) && !(part && part->space->mm == mm))
		pvas_redirect(regs, pvas_stub_eperm);
}
