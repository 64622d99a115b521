// SPDX-License-Identifier: GPL-2.0-only
/*
 * PVAS_IOC_REFS: who has references to a task's pages, but for its page table?
 *
 * A task that pages its own partition by userfaultfd must not drop a page into which a device, or
 * another process's system call, still writes. It first takes the right to write away: then none
 * begins any more, and those that have begun have references.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/string.h>

#include "pvas.h"
#include "pvas_refs.h"

/*
 * A reference to the page at @addr. Without waiting for a userfaultfd, nor for a swapped page,
 * whose reading it begins.
 */
static struct page *pvas_refs_get(unsigned long addr)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	struct page *page;
	long n = 0;

	if (get_user_pages_fast_only(addr, 1, 0, &page) == 1)
		return page;
	/* The caller may have taken the right to read away. */
	if (mmap_read_lock_killable(mm))
		return NULL;
	vma = find_vma(mm, addr);
	/* A file's page is never clear, and its server can let this wait, with the lock. */
	if (vma && vma->vm_start <= addr && vma_is_anonymous(vma))
		n = pvas_get_page(addr, FOLL_FORCE | FOLL_NOWAIT, &page);
	mmap_read_unlock(mm);
	return n == 1 ? page : NULL;
}

/* Is the page there, and has nobody but the page table a reference to it? */
static bool pvas_refs_is_clear(unsigned long addr)
{
	struct page *page = pvas_refs_get(addr);
	bool clear = false;

	if (!page)
		return false;
	/* One is the page table's, one is ours. */
	if (trylock_page(page)) {
		clear = pvas_page_refs(page) == 2;
		unlock_page(page);
	}
	put_page(page);
	return clear;
}

/**
 * pvas_refs_clear - PVAS_IOC_REFS
 * @arg:	the range of the caller's. Out: how much of it is clear
 *
 * Return: 0 or -errno
 */
int pvas_refs_clear(struct pvas_refs *arg)
{
	struct pvas_partition *part = pvas_task_partition();
	u64 at = 0;

	if (arg->flags || memchr_inv(arg->reserved, 0, sizeof(arg->reserved)))
		return -EINVAL;
	if (!arg->len || !PAGE_ALIGNED(arg->addr) || !PAGE_ALIGNED(arg->len))
		return -EINVAL;
	if (!part || pvas_mm_foreign(part, arg->addr, arg->len))
		return -EPERM;
	while (at < arg->len && pvas_refs_is_clear(arg->addr + at)) {
		at += PAGE_SIZE;
		cond_resched();
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	arg->clear = at;
	return 0;
}
