// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of partitions in the space header. The entry of a task that has ended must not
 * need memory: at its cgroup's limit, a fault in a worker would have the OOM killer choose
 * one process after the other. So the first task whose entry is in a page pins that page.
 * Then it is neither swapped out nor, after a fork, to be copied before a store.
 */
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/slab.h>
#include <linux/userfaultfd_k.h>

#include "pvas.h"

static unsigned long pvas_table_offset(const struct pvas_space *space, u32 index)
{
	return offset_in_page(space->table) + index * sizeof(struct pvas_part);
}

/* Once @space->last is known: no page is pinned yet. */
int pvas_table_init(struct pvas_space *space)
{
	unsigned long n = (pvas_table_offset(space, space->last) >> PAGE_SHIFT) + 1;

	space->table_pages = kcalloc(n, sizeof(*space->table_pages), GFP_KERNEL_ACCOUNT);
	if (!space->table_pages)
		return -ENOMEM;
	space->n_table_pages = n;
	return 0;
}

/* May be called without pvas_table_init(). */
void pvas_table_exit(struct pvas_space *space)
{
	unsigned int i;

	for (i = 0; i < space->n_table_pages; i++)
		if (space->table_pages[i])
			unpin_user_page(space->table_pages[i]);
	kfree(space->table_pages);
}

/*
 * Locks the mm for reading. A UFFDIO_REGISTER that had begun before CREATE can have gone on
 * after it, see pvas_uffd.c: the page could not be pinned.
 */
static int pvas_table_lock(struct mm_struct *mm, unsigned long addr)
{
	struct vm_area_struct *vma;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	vma = vma_lookup(mm, addr);
	if (!vma || !userfaultfd_armed(vma))
		return 0;
	mmap_read_unlock(mm);
	if (mmap_write_lock_killable(mm))
		return -EINTR;
	vma = vma_lookup(mm, addr);
	if (vma && userfaultfd_armed(vma))
		pvas_forget_uffd(vma);
	/* A victim of the OOM killer must be able to exit during the fault. */
	mmap_write_downgrade(mm);
	return 0;
}

/* In a task of the space */
static struct page *pvas_table_pin(struct pvas_space *space, unsigned long offset)
{
	unsigned long addr = (space->table & PAGE_MASK) + (offset & PAGE_MASK);
	struct page **at = &space->table_pages[offset >> PAGE_SHIFT];
	struct page *page, *other;
	long n;

	if (pvas_table_lock(space->mm, addr))
		return NULL;
	n = pvas_pin(addr, FOLL_WRITE | FOLL_LONGTERM, &page);
	mmap_read_unlock(space->mm);
	if (n != 1)
		return NULL;
	other = cmpxchg(at, NULL, page);
	if (!other)
		return page;
	unpin_user_page(page);
	return other;
}

/**
 * pvas_table_publish - write a partition's entry in the table
 * @part:	the partition
 * @state:	PVAS_PART_RUNNING: the caller is its task. Otherwise it does not allocate
 *
 * Errors are ignored: the module never reads the table. An entry that can't be written when
 * its task starts stays as it is.
 */
void pvas_table_publish(struct pvas_partition *part, u32 state)
{
	struct pvas_space *space = part->space;
	unsigned long offset = pvas_table_offset(space, part->index);
	struct page *page = READ_ONCE(space->table_pages[offset >> PAGE_SHIFT]);
	struct pvas_part *entry;

	if (!page && state == PVAS_PART_RUNNING)
		page = pvas_table_pin(space, offset);
	if (!page)
		return;
	entry = page_address(page) + offset_in_page(offset);
	if (state != PVAS_PART_RUNNING) {
		WRITE_ONCE(entry->state, state);
		smp_wmb();	/* readers see the state change first */
	}
	WRITE_ONCE(entry->gen, part->gen);
	WRITE_ONCE(entry->pid, state == PVAS_PART_RUNNING ?
				       pid_nr_ns(part->pid, space->pid_ns) : 0);
	if (state == PVAS_PART_RUNNING) {
		smp_wmb();	/* readers that see RUNNING see the rest */
		WRITE_ONCE(entry->state, state);
	}
}
