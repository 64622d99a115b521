// SPDX-License-Identifier: GPL-2.0-only
/* The memory of a partition: its layout and its bounds. */
#include <linux/mm.h>
#include <linux/random.h>

#include "pvas.h"

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

/* May the range be mapped? Nothing may in the creator's partition, which is empty. */
bool pvas_mm_may_map(const struct pvas_partition *part, unsigned long addr, unsigned long len)
{
	return pvas_layout_may_map(part->base, part->end, addr, len);
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
