// SPDX-License-Identifier: GPL-2.0-only
/* The memory of a partition: its layout, its bounds, and its entry in the space header. */
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/random.h>
#include <linux/uaccess.h>
#include <linux/userfaultfd_k.h>

#include "pvas.h"

#define PVAS_PUT_TRIES	100

/**
 * pvas_mm_layout - lay out a partition
 * @part:	the partition
 * @image:	the needs of the program
 * @stack_limit: RLIMIT_STACK of the exec, in bytes
 * @randomize:	choose random places instead of the fixed ones
 *
 * Return: 0, or -ENOMEM if it does not fit.
 */
int pvas_mm_layout(struct pvas_partition *part, const struct pvas_elf_image *image,
		   unsigned long stack_limit, bool randomize)
{
	struct pvas_layout_random random = {};
	int err;

	if (randomize)
		get_random_bytes(&random, sizeof(random));
	err = pvas_layout(&part->layout, part->base, part->end - part->base, image, stack_limit,
			  &random);
	if (!err)
		part->brk = part->layout.heap;
	return err;
}

/* Does [addr, addr + len) reach outside the partition? A range that wraps around does. */
bool pvas_mm_foreign(const struct pvas_partition *part, unsigned long addr, unsigned long len)
{
	return pvas_layout_outside(part->base, part->end, addr, len);
}

/*
 * Limits a search for free addresses to the partition. The limits in @info are those of
 * the creator's layout, except for a caller that needs an address below 4 GiB
 * (MAP_32BIT, ia32): it gets an empty range, and so -ENOMEM.
 */
void pvas_mm_clamp(const struct pvas_partition *part, struct vm_unmapped_area_info *info)
{
	unsigned long low = PAGE_ALIGN(READ_ONCE(part->brk)) + PAGE_SIZE;
	unsigned long high = part->layout.mmap_top;

	/* A bottom-up search would map right above the heap, which could not grow. */
	info->flags |= VM_UNMAPPED_AREA_TOPDOWN;
	info->low_limit = low;
	info->high_limit = info->high_limit <= (1UL << 32) || low >= high ? low : high;
}

/*
 * Brings in a page of partition 0 without waiting for the user. A UFFDIO_REGISTER that had
 * begun before CREATE can have gone on after it, see pvas_creator_settle(): the page
 * would wait for a monitor.
 */
static int pvas_mm_bring_in(struct mm_struct *mm, unsigned long addr)
{
	struct vm_area_struct *vma;
	int err;

	if (mmap_write_lock_killable(mm))
		return -EINTR;
	vma = vma_lookup(mm, addr);
	if (vma && userfaultfd_armed(vma))
		pvas_forget_uffd(vma);
	err = fixup_user_fault(mm, addr, FAULT_FLAG_WRITE, NULL);
	mmap_write_unlock(mm);
	return err;
}

static int pvas_mm_put(struct mm_struct *mm, u32 value, u32 __user *to)
{
	int err, tries = PVAS_PUT_TRIES;

	/* The page may be gone again before it is written: then bring it in once more. */
	do {
		pagefault_disable();
		err = put_user(value, to);
		pagefault_enable();
	} while (err && --tries && !pvas_mm_bring_in(mm, (unsigned long)to));
	return err;
}

/*
 * Writes the partition's entry in the table of the space header. The caller uses the
 * space's mm. Errors are ignored: tasks may have unmapped or protected the page, and the
 * module never reads the table.
 */
void pvas_mm_publish(struct pvas_partition *part, u32 state)
{
	struct pvas_space *space = part->space;
	struct mm_struct *mm = space->mm;
	struct pvas_part __user *entry;
	pid_t pid = pid_nr_ns(part->pid, space->pid_ns);

	entry = (struct pvas_part __user *)space->table + part->index;
	if (state != PVAS_PART_RUNNING) {
		if (pvas_mm_put(mm, state, &entry->state))
			return;
		smp_wmb();	/* readers see the state change first */
		pid = 0;
	}
	if (pvas_mm_put(mm, part->gen, &entry->gen) ||
	    pvas_mm_put(mm, pid, (u32 __user *)&entry->pid))
		return;
	if (state == PVAS_PART_RUNNING) {
		smp_wmb();	/* readers that see RUNNING see the rest */
		if (pvas_mm_put(mm, state, &entry->state))
			return;
	}
}
