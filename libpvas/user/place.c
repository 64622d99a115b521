// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the memory of a partition.
 *
 * The kernel would search the whole address space for a free range, so addresses are
 * chosen here and mapped with MAP_FIXED_NOREPLACE. That can't overwrite what a task
 * has mapped without a request (a call that names an address in its own partition
 * makes none). First the address of the last mapping of the same length is tried
 * (programs map and unmap in loops), then the range below a cursor that moves down.
 * Only if that fails is /proc/self/maps searched.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mman.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "apart.h"
#include "rawsys.h"
#include "worker.h"

#define RESERVE		(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

static int64_t raw_mmap(uint64_t at, const struct user_mmap *m, int flags)
{
	if (m->tid)
		return user_apart_mmap(at, m, flags);
	return pvas_raw6(__NR_mmap, at, m->len, m->prot, flags, m->fd, m->off);
}

static void raw_munmap(uint64_t at, uint64_t len)
{
	pvas_raw2(__NR_munmap, at, len);
}

int user_layout(struct user_part *p, const struct pvas_elf_image *image, uint64_t stack_limit,
		int randomize)
{
	struct pvas_layout_random random;
	long err;

	memset(&random, 0, sizeof(random));
	if (randomize) {
		err = pvas_raw3(__NR_getrandom, &random, sizeof(random), 0);
		if (err != sizeof(random))
			return err < 0 ? (int)err : -EIO;
	}
	err = pvas_layout(&p->layout, p->base, p->end - p->base, image, stack_limit, &random);
	if (err)
		return (int)err;
	if (p->far_end && p->layout.heap >= p->far_start)
		return -ENOMEM;
	p->brk = p->heap_end = p->layout.heap;
	p->cursor = p->layout.mmap_top;
	memset(p->reuse, 0, sizeof(p->reuse));
	return 0;
}

/* ---- choosing an address ---- */

/* Bottom-most address for a mapping: the heap needs room to grow. Far memory is the pager's. */
static uint64_t floor_of(const struct user_part *p)
{
	return p->far_end ? p->far_end : p->heap_end + PAGE;
}

static uint64_t place_below(uint64_t top, uint64_t len, uint64_t align)
{
	return top < len ? 0 : (top - len) & ~(align - 1);
}

/**
 * struct gap - a search for a free range
 * @part:	in this partition
 * @len:	bytes
 * @align:	alignment
 * @low:	end of the previous mapping
 * @found:	the topmost address so far, 0 if none
 */
struct gap {
	const struct user_part *part;
	uint64_t len;
	uint64_t align;
	uint64_t low;
	uint64_t found;
};

/* [lo, hi) is the next mapping; between it and the previous one is free. */
static void gap_before(struct gap *g, uint64_t lo, uint64_t hi)
{
	uint64_t top = lo < g->part->layout.mmap_top ? lo : g->part->layout.mmap_top;
	uint64_t at = place_below(top, g->len, g->align);

	if (at && at >= g->low && top > g->low)
		g->found = at;
	if (hi > g->low)
		g->low = hi;
}

/* Returns the topmost free address, or 0. */
static uint64_t scan(const struct user_part *p, uint64_t len, uint64_t align)
{
	struct gap g = { .part = p, .len = len, .align = align, .low = floor_of(p) };
	FILE *maps = user_maps_open();
	struct user_mapping m;

	if (!maps)
		return 0;
	while (user_maps_next(maps, &m) && m.start < p->layout.mmap_top)
		if (m.end > g.low)
			gap_before(&g, m.start, m.end);
	fclose(maps);
	gap_before(&g, p->layout.mmap_top, p->layout.mmap_top);
	return g.found;
}

static void remember(struct user_part *p, uint64_t at, uint64_t len)
{
	unsigned int slot = (len / PAGE) % REUSE_SLOTS;

	p->reuse[slot].at = at;
	p->reuse[slot].len = len;
	if (at < p->cursor)
		p->cursor = at;
}

static uint64_t recall(const struct user_part *p, uint64_t len)
{
	unsigned int slot = (len / PAGE) % REUSE_SLOTS;

	if (p->reuse[slot].len != len || p->reuse[slot].at < floor_of(p))
		return 0;
	return p->reuse[slot].at;
}

/* In the new process, before any thread of it makes a request: no lock */
uint64_t user_place_interp(struct user_part *p, const struct pvas_elf_image *interp)
{
	uint64_t len = PAGE_UP(interp->hi) - PAGE_DOWN(interp->lo);
	uint64_t at = len ? place_below(p->cursor, len, interp->align) : 0;

	if (at < floor_of(p))
		return 0;
	p->cursor = at;
	return at;
}

/* MAP_SHARED_VALIDATE refuses MAP_FIXED_NOREPLACE: map over a reservation. */
static int64_t try_validated(uint64_t at, const struct user_mmap *m)
{
	uint64_t len = PAGE_UP(m->len);
	int64_t ret = pvas_raw6(__NR_mmap, at, len, PROT_NONE, RESERVE | MAP_FIXED_NOREPLACE, -1,
				0);

	if (ret < 0)
		return ret;
	ret = raw_mmap(at, m, m->flags | MAP_FIXED);
	if (ret < 0)
		raw_munmap(at, len);
	return ret;
}

static int64_t try_at(uint64_t at, const struct user_mmap *m)
{
	if ((m->flags & MAP_TYPE) == MAP_SHARED_VALIDATE)
		return try_validated(at, m);
	return raw_mmap(at, m, (m->flags & ~MAP_FIXED) | MAP_FIXED_NOREPLACE);
}

/* Map @m at an aligned address. @len is what it occupies, which can exceed its length. */
static int64_t map_somewhere(struct user_part *p, const struct user_mmap *m, uint64_t len,
			     uint64_t align)
{
	uint64_t at = recall(p, len);
	int64_t ret = -EEXIST;

	if (at && !(at & (align - 1)))
		ret = try_at(at, m);
	if (ret == -EEXIST) {
		at = place_below(p->cursor, len, align);
		if (at >= floor_of(p))
			ret = try_at(at, m);
	}
	/* Twice: another thread can map to a fixed address between search and mmap(). */
	if (ret == -EEXIST) {
		at = scan(p, len, align);
		if (!at)
			return -ENOMEM;
		p->cursor = at;
		ret = try_at(at, m);
	}
	if (ret == -EEXIST) {
		at = scan(p, len, align);
		ret = at ? try_at(at, m) : -ENOMEM;
	}
	if (ret > 0)
		remember(p, at, len);
	return ret == -EEXIST ? -ENOMEM : ret;
}

/* ---- mmap ---- */

static int may_be_huge(const struct user_mmap *m)
{
	return (m->flags & MAP_HUGETLB) || !(m->flags & MAP_ANONYMOUS);
}

/* As the kernel since 6.7, for transparent huge pages */
static uint64_t good_alignment(const struct user_mmap *m, uint64_t len)
{
	return (m->flags & MAP_ANONYMOUS) && !(len & (HUGE_2M - 1)) ? HUGE_2M : PAGE;
}

static int is_in_far_part(const struct user_part *p, uint64_t addr, uint64_t len)
{
	return addr < p->far_end && addr + len > p->far_start;
}

int64_t user_mmap(struct user_part *p, const struct user_mmap *m)
{
	uint64_t len = PAGE_UP(m->len);
	uint64_t hint = PAGE_DOWN(m->addr);
	int64_t ret = -EEXIST;

	if (!m->len)
		return -EINVAL;
	if (len < m->len || len > p->end - p->base)
		return -ENOMEM;
	/* No partition has addresses below 2 GiB, and the caller can't use others. */
	if (m->flags & PVAS_MAP_LOW)
		return -ENOMEM;
	if (hint && user_may_map(p, hint, len) && !is_in_far_part(p, hint, len)) {
		user_make_room(p, hint, len);
		ret = try_at(hint, m);
	}
	if (ret == -EEXIST)
		ret = map_somewhere(p, m, len, good_alignment(m, len));
	/* The huge page size of the file or of the flags shows only by EINVAL. */
	if (ret == -EINVAL && may_be_huge(m))
		ret = map_somewhere(p, m, (len + HUGE_2M - 1) & ~(HUGE_2M - 1), HUGE_2M);
	if (ret == -EINVAL && may_be_huge(m))
		ret = map_somewhere(p, m, (len + HUGE_1G - 1) & ~(HUGE_1G - 1), HUGE_1G);
	return ret;
}

int64_t user_mmap_fixed(struct user_part *p, const struct user_mmap *m)
{
	if (!user_may_map(p, m->addr, m->len))
		return -ENOMEM;
	user_make_room(p, m->addr, m->len);
	return raw_mmap(m->addr, m, m->flags);
}

/* ---- mremap, shmat: over a reservation, because they have no NOREPLACE ---- */

static int64_t reserve(struct user_part *p, uint64_t len, uint64_t align)
{
	const struct user_mmap m = { .len = len, .prot = PROT_NONE, .flags = RESERVE, .fd = -1 };

	return map_somewhere(p, &m, len, align);
}

/*
 * At another place it would grow towards what is below, out of the partition at its bottom.
 * All that lies where the stack may grow to counts as the stack.
 */
static int is_of_stack(const struct user_part *p, uint64_t addr, uint64_t len)
{
	return addr < p->layout.stack && addr + len > p->layout.mmap_top;
}

int64_t user_mremap(struct user_part *p, uint64_t old, uint64_t old_len, uint64_t new_len,
		    int flags)
{
	uint64_t len = PAGE_UP(new_len);
	int64_t at, ret;
	int in_place;

	if (!new_len || len < new_len || len >> 47 || (flags & MREMAP_FIXED))
		return -EINVAL;
	/* In place if it shrinks, or if it stays where it may be */
	in_place = new_len <= old_len || user_may_map(p, old, len);
	if (!in_place && !(flags & MREMAP_MAYMOVE))
		return -ENOMEM;
	if (in_place && !(flags & MREMAP_DONTUNMAP) && old_len) {
		if (new_len > old_len)
			user_make_room(p, old + old_len, new_len - old_len);
		ret = pvas_raw4(__NR_mremap, old, old_len, new_len, flags & ~MREMAP_MAYMOVE);
		if (!(flags & MREMAP_MAYMOVE) || ret != -ENOMEM)
			return ret;
	}
	if (is_of_stack(p, old, old_len))
		return -EPERM;
	/* With an address, several are moved (since Linux 6.17), and that can fail between. */
	if ((flags & MREMAP_DONTUNMAP) && !user_maps_is_one(old, old_len))
		return -EINVAL;
	at = reserve(p, len, len & (HUGE_2M - 1) ? PAGE : HUGE_2M);
	if (at < 0)
		return at;
	ret = pvas_raw6(__NR_mremap, old, old_len, new_len, flags | MREMAP_FIXED, at, 0);
	if (ret < 0)
		raw_munmap(at, len);
	return ret;
}

int64_t user_mremap_fixed(struct user_part *p, const uint64_t args[5])
{
	if (is_of_stack(p, args[0], args[1]))
		return -EPERM;
	user_make_room(p, args[4], args[2]);
	return pvas_raw6(__NR_mremap, args[0], args[1], args[2], args[3], args[4], 0);
}

static int64_t segment_size(int id)
{
	struct shmid_ds ds;
	long err = pvas_raw3(__NR_shmctl, id, IPC_STAT, &ds);

	return err < 0 ? err : (int64_t)ds.shm_segsz;
}

/* Would a segment of the next larger page size be accepted at @at, although it is too long? */
static int fits_larger(uint64_t at, uint64_t len, uint64_t align)
{
	uint64_t larger = align < HUGE_2M ? HUGE_2M : align < HUGE_1G ? HUGE_1G : 0;

	return larger && !(at & (larger - 1)) && (len & (larger - 1));
}

/*
 * A segment of huge pages occupies whole pages, so more than its size. Its page size is
 * unknown: choose an address at which larger pages are refused, or fit.
 */
static int64_t attach_somewhere(struct user_part *p, int id, uint64_t size, int flags,
				uint64_t align)
{
	uint64_t len = (size + align - 1) & ~(align - 1);
	uint64_t spare = align < HUGE_1G ? align : 0;
	uint64_t nice = align == PAGE && !(len & (HUGE_2M - 1)) ? HUGE_2M : align;
	int64_t all = reserve(p, len + spare, nice);
	int64_t at = all, ret;

	if (all < 0)
		return all;
	if (fits_larger(at, len, align))
		at += align;
	ret = pvas_raw3(__NR_shmat, id, at, flags | SHM_REMAP);
	if (ret < 0) {
		raw_munmap(all, len + spare);
		return ret;
	}
	if (at > all)
		raw_munmap(all, at - all);
	else if (spare)
		raw_munmap(at + len, spare);
	return ret;
}

int64_t user_shmat(struct user_part *p, int id, uint64_t addr, int flags, uint64_t align)
{
	int64_t size = segment_size(id);

	if (size < 0)
		return size;
	if (!addr)
		return attach_somewhere(p, id, size, flags, align);
	/* The end of a partition is a multiple of any page size. */
	if (!user_may_map(p, addr, PAGE_UP(size)))
		return -ENOMEM;
	user_make_room(p, addr, PAGE_UP(size));
	return pvas_raw3(__NR_shmat, id, addr, flags);
}
