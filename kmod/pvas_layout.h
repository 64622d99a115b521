/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * The layout of a partition: where program, heap, mappings and stack lie.
 *
 * Pure functions, shared by the module, by the user backend and by the unit
 * tests: no calls, no globals, randomness is an argument. From below:
 *
 *	gap, program, brk heap growing up, ... , mappings placed from mmap_top
 *	downwards, room for the stack to grow, stack, gap
 *
 * The two ends move independently of one another: program and heap move up by @low,
 * mmap_top and stack move down by @high. Each moves by at most an eighth of the free
 * part, and at most a TiB, which is the kernel's own limit (28 bits of pages). So a
 * reservation of half the partition still finds room, and the smallest partition
 * remains useful.
 *
 * A page table costs 4 KiB, and a small task has about eight: one more for each task
 * would be 12 % more for a job. Hence everything moves by whole GiB (another entry of
 * the same PUD page) and, inside a GiB, by whole 2 MiB (another entry of the same PMD
 * page), to places where program with heap, or mappings with stack, do not cross the
 * end of the GiB. By single pages the program and its heap move only within the PTE
 * pages that they and the beginning of the heap need anyway, and likewise the stack.
 * The final size of heap and mappings is unknown: their moves by pages are short (64
 * and 32), so that only few cross the end of a PTE page because of them. Measured in
 * comparison with the fixed layout: small tasks have 0 % more page tables; perl with
 * its modules, which nearly fill theirs, 4 %.
 *
 * Bits, of 4 KiB pages, for a small program and 8 MiB of RLIMIT_STACK:
 *
 *	partition	load	heap above it	mmap_top	stack	between these
 *	4 GiB		13	5		13		15	13
 *	64 GiB		17	5		16		18	13
 *	8 TiB		24	5		23		26	13
 *
 * The stack pointer has nine bits more, in steps of 16 bytes. A program that requires
 * an alignment of 2 MiB moves in steps of 2 MiB.
 */
#ifndef PVAS_LAYOUT_H
#define PVAS_LAYOUT_H

#include "pvas_elf.h"

#define PVAS_LAYOUT_PAGE	PVAS_ELF_PAGE
#define PVAS_LAYOUT_PMD		(2ULL << 20)	/* mapped by a PTE page */
#define PVAS_LAYOUT_PUD		(1ULL << 30)	/* mapped by a PMD page */

/* So that an overrun of the lower neighbour faults */
#define PVAS_LAYOUT_GAP_LOW	(2ULL << 20)
/* The user backend's loader is here, just above the stack. */
#define PVAS_LAYOUT_GAP_HIGH	(1ULL << 20)

/* Least room for the stack to grow, as mmap_base() leaves it */
#define PVAS_LAYOUT_ROOM_MIN	(128ULL << 20)
/* The kernel's stack_guard_gap, which is not exported */
#define PVAS_LAYOUT_GUARD	(1ULL << 20)

#define PVAS_LAYOUT_SPREAD_MAX	(1ULL << 40)
/* The beginning of a heap: that of malloc(), and a static program's thread area */
#define PVAS_LAYOUT_HEAP_NEAR	(160ULL << 10)
/* The first mappings, libraries, should not cross the end of a GiB. */
#define PVAS_LAYOUT_MMAP_NEAR	(64ULL << 20)
/* Of the 2 MiB where the stack begins, 1 MiB is the gap, and 256 KiB are left for the stack. */
#define PVAS_LAYOUT_STACK_PAGES	192U
#define PVAS_LAYOUT_IMAGE_PAGES	64U
#define PVAS_LAYOUT_MMAP_PAGES	32U
#define PVAS_LAYOUT_APART	64U		/* times 2 MiB, between mappings and stack */
#define PVAS_LAYOUT_SKEW	512U		/* times 16 bytes, as arch_align_stack() */

/**
 * struct pvas_layout_random - random numbers for a layout
 *
 * All values are valid. With zeros the layout is the fixed one, with program and stack
 * as close to the ends of the partition as possible.
 */
struct pvas_layout_random {
	__u64 low;
	__u64 image;
	__u64 heap;
	__u64 high;
	__u64 stack;
	__u64 apart;
	__u64 mmap;
	__u64 skew;
};

/**
 * struct pvas_layout - the layout of a partition
 * @load:	the load bias: address of the program's virtual address 0
 * @heap:	the brk heap begins here
 * @mmap_top:	mappings are placed below
 * @stack:	the end of the stack's mapping
 * @skew:	distance from @stack down to its contents: a multiple of 16, below 8192
 */
struct pvas_layout {
	__u64 load;
	__u64 heap;
	__u64 mmap_top;
	__u64 stack;
	__u64 skew;
};

static inline __u64 pvas_layout_down(__u64 v, __u64 align)
{
	return v & ~(align - 1);
}

static inline __u64 pvas_layout_up(__u64 v, __u64 align)
{
	return pvas_layout_down(v + align - 1, align);
}

/*
 * Does [addr, addr + len) reach outside the partition [base, end)? A range that
 * wraps around does.
 */
static inline int pvas_layout_outside(__u64 base, __u64 end, __u64 addr, __u64 len)
{
	return addr < base || addr >= end || len > end - addr;
}

/*
 * May a task map [addr, addr + len)? The outermost pages of a partition stay free: the kernel
 * would make one area of what is there and a neighbour's, which can't be unmapped, locked or
 * dumped for one of both.
 */
static inline int pvas_layout_may_map(__u64 base, __u64 end, __u64 addr, __u64 len)
{
	return !pvas_layout_outside(base, end, addr, len) && addr - base >= PVAS_LAYOUT_PAGE &&
	       end - addr - len >= PVAS_LAYOUT_PAGE;
}

/* How far the stack may grow */
static inline __u64 pvas_layout_room(__u64 size, __u64 stack_limit)
{
	__u64 most = size / 6 * 2;

	if (stack_limit == ~0ULL)	/* RLIM_INFINITY */
		stack_limit = size / 4;
	if (stack_limit < PVAS_LAYOUT_ROOM_MIN)
		return PVAS_LAYOUT_ROOM_MIN;
	return pvas_layout_up(stack_limit < most ? stack_limit : most, PVAS_LAYOUT_PAGE);
}

/* How far each end may move: whole GiB, or less than one GiB */
static inline __u64 pvas_layout_spread(__u64 size, __u64 image, __u64 room)
{
	__u64 spread = (size - image - room) / 8;

	if (spread > PVAS_LAYOUT_SPREAD_MAX)
		spread = PVAS_LAYOUT_SPREAD_MAX;
	return pvas_layout_down(spread, spread < PVAS_LAYOUT_PUD ? PVAS_LAYOUT_PMD :
				PVAS_LAYOUT_PUD);
}

/*
 * A random multiple of 2 MiB, below @spread. @span is the distance from the end of the
 * partition to the far end of the moving parts, which share a GiB if they fit well.
 */
static inline __u64 pvas_layout_move(__u64 random, __u64 spread, __u64 span)
{
	__u64 gib = spread / PVAS_LAYOUT_PUD;
	__u64 room = PVAS_LAYOUT_PUD;
	__u64 places;

	if (span < PVAS_LAYOUT_PUD / 2)
		room -= span;
	if (!gib && spread < room)
		room = spread;
	places = room / PVAS_LAYOUT_PMD;
	if (!places)
		return 0;
	random %= (gib ? gib : 1) * places;
	return random / places * PVAS_LAYOUT_PUD + random % places * PVAS_LAYOUT_PMD;
}

/*
 * Choose two points among the free pages of the last PTE page: the program moves up to
 * the first, its heap to the second.
 */
static inline void pvas_layout_low(struct pvas_layout *l, __u64 base, __u64 spread,
				   const struct pvas_elf_image *image,
				   const struct pvas_layout_random *r)
{
	__u64 lo = pvas_layout_down(image->lo, image->align);
	__u64 used = image->hi - lo + PVAS_LAYOUT_PAGE + PVAS_LAYOUT_HEAP_NEAR;
	__u64 room = pvas_layout_up(used, PVAS_LAYOUT_PMD);
	__u64 pages = (room - used) / PVAS_LAYOUT_PAGE + 1;
	__u64 first, second;
	__u64 start = base + PVAS_LAYOUT_GAP_LOW +
		      pvas_layout_move(r->low, spread, PVAS_LAYOUT_GAP_LOW + room);

	if (pages > PVAS_LAYOUT_IMAGE_PAGES)
		pages = PVAS_LAYOUT_IMAGE_PAGES;
	first = r->image % pages * PVAS_LAYOUT_PAGE;
	second = r->heap % pages * PVAS_LAYOUT_PAGE;
	if (first > second) {
		__u64 swap = first;

		first = second;
		second = swap;
	}
	l->load = start + pvas_layout_down(first, image->align) - lo;
	l->heap = pvas_layout_up(l->load + image->hi, PVAS_LAYOUT_PAGE) + PVAS_LAYOUT_PAGE +
		  second - first;
}

static inline void pvas_layout_high(struct pvas_layout *l, __u64 end, __u64 spread, __u64 room,
				    const struct pvas_layout_random *r)
{
	__u64 apart = PVAS_LAYOUT_APART * PVAS_LAYOUT_PMD;
	__u64 span, move;

	if (apart > spread / 4)
		apart = pvas_layout_down(spread / 4, PVAS_LAYOUT_PMD);
	span = room + PVAS_LAYOUT_GUARD + 2 * PVAS_LAYOUT_PMD + apart + PVAS_LAYOUT_MMAP_NEAR;
	move = pvas_layout_move(r->high, spread, span);
	l->stack = end - move - PVAS_LAYOUT_GAP_HIGH -
		   r->stack % PVAS_LAYOUT_STACK_PAGES * PVAS_LAYOUT_PAGE;
	l->mmap_top = pvas_layout_down(l->stack - room - PVAS_LAYOUT_GUARD, PVAS_LAYOUT_PMD) -
		      r->mmap % PVAS_LAYOUT_MMAP_PAGES * PVAS_LAYOUT_PAGE;
	if (apart)
		l->mmap_top -= r->apart % (apart / PVAS_LAYOUT_PMD) * PVAS_LAYOUT_PMD;
	l->skew = r->skew % PVAS_LAYOUT_SKEW * 16;
}

/**
 * pvas_layout - choose the layout of a partition
 * @l:		receives it
 * @base:	of the partition, a multiple of @size
 * @size:	of the partition, a power of two, 4 GiB or more
 * @image:	requirements of the program, checked
 * @stack_limit: RLIMIT_STACK of the exec, in bytes
 * @r:		random numbers, or zeros
 *
 * Return: 0, or -ENOMEM with @l unchanged if the program is larger than half the partition.
 */
static inline int pvas_layout(struct pvas_layout *l, __u64 base, __u64 size,
			      const struct pvas_elf_image *image, __u64 stack_limit,
			      const struct pvas_layout_random *r)
{
	__u64 room = pvas_layout_room(size, stack_limit);
	__u64 spread;

	if (image->hi - image->lo > size / 2)
		return -ENOMEM;
	spread = pvas_layout_spread(size, image->hi - image->lo, room);
	pvas_layout_low(l, base, spread, image, r);
	pvas_layout_high(l, base + size, spread, room, r);
	return 0;
}

#endif /* PVAS_LAYOUT_H */
