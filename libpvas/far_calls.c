// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Calls of a task that map, unmap and change memory, where that is far. Large private mappings
 * whose place the task doesn't choose become far. Where a call can't be done for far memory it
 * fails; it is never done in part.
 */
#include "far_calls.h"

#include <errno.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "../include/linux_names.h"
#include "../kmod/pvas_layout.h"
#include "rawsys.h"

#define PAGE_UP(n)	pvas_layout_up(n, PVAS_LAYOUT_PAGE)

/* A mapping of stacks, of huge pages or without reservation is not for far memory. */
#define NEVER_FAR	(MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_GROWSDOWN | MAP_HUGETLB | \
			 MAP_STACK | MAP_NORESERVE | MAP_LOCKED | PVAS_MAP_LOW | MAP_SHARED)

/* ---- ranges ---- */

/**
 * struct parts - a range of the task's, cut
 * @addr:	the part in far memory
 * @end:	its end; @addr if there is none
 * @from:	the beginning of all
 * @to:		the end of all
 */
struct parts {
	uint64_t addr, end, from, to;
};

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* 0 if nothing is far, or if it is for the kernel to refuse. */
static int cut(const struct pvas_far_part *p, uint64_t addr, uint64_t len, struct parts *c)
{
	uint64_t to = addr + PAGE_UP(len);

	if (!p->far_end || addr & (PVAS_LAYOUT_PAGE - 1) || to <= addr || PAGE_UP(len) < len ||
	    pvas_layout_outside(p->base, p->end, addr, PAGE_UP(len)) || addr >= p->far_end ||
	    to <= p->far_start)
		return 0;
	c->from = addr;
	c->to = to;
	c->addr = addr > p->far_start ? addr : p->far_start;
	c->end = smaller(to, p->far_end);
	return 1;
}

static int64_t unmap_parts(const struct pvas_far_part *p, const struct parts *c)
{
	int64_t err = p->ops->unmap(c->addr, c->end - c->addr);

	if (!err && c->from < c->addr)
		err = pvas_raw2(__NR_munmap, c->from, c->addr - c->from);
	if (!err && c->end < c->to)
		err = pvas_raw2(__NR_munmap, c->end, c->to - c->end);
	return err;
}

/* ---- the calls; each returns whether it is answered ---- */

static int is_large(const struct pvas_far_part *p, const uint64_t *a)
{
	return p->far_end && a[1] >= p->threshold && a[2] == (PROT_READ | PROT_WRITE) &&
	       !(a[3] & NEVER_FAR) &&
	       (a[3] & (MAP_PRIVATE | MAP_ANONYMOUS)) == (MAP_PRIVATE | MAP_ANONYMOUS);
}

/* The local memory beside it. The address, or -errno */
static int64_t map_local(const struct pvas_far_part *p, const uint64_t *a, uint64_t from,
			 uint64_t to)
{
	return from < to ? p->map_local(p->owner, from, to - from, (int)a[2], (int)a[3]) :
			   (int64_t)from;
}

/*
 * All that is in the far part is the pager's, which moves whole pages of its own: nothing else
 * may lie there. So private anonymous memory is far there, and all other kinds are refused.
 */
static int64_t map_fixed(const struct pvas_far_part *p, const uint64_t *a, const struct parts *c)
{
	const uint64_t wanted = MAP_PRIVATE | MAP_ANONYMOUS, flags = a[3];
	int64_t at;

	if ((flags & (wanted | MAP_SHARED | MAP_GROWSDOWN | MAP_HUGETLB)) != wanted)
		return -ENOMEM;
	at = p->ops->map_at(c->addr, c->end - c->addr, (int)a[2],
			    !(flags & MAP_FIXED_NOREPLACE));
	if (at > 0)
		at = map_local(p, a, c->from, c->addr);
	if (at > 0)
		at = map_local(p, a, c->end, c->to);
	return at > 0 ? (int64_t)c->from : at;
}

static int on_mmap(const struct pvas_far_part *p, const uint64_t *a, int64_t *value)
{
	struct parts c;

	if (is_large(p, a)) {
		*value = p->ops->map(p->row, a[1]);
		if (*value < 0)
			p->full(p->owner, a[1]);
		return 1;
	}
	if (!(a[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE)) || !cut(p, a[0], a[1], &c))
		return 0;
	*value = map_fixed(p, a, &c);
	return 1;
}

static int on_munmap(const struct pvas_far_part *p, const uint64_t *a, int64_t *value)
{
	struct parts c;

	if (!cut(p, a[0], a[1], &c))
		return 0;
	*value = unmap_parts(p, &c);
	return 1;
}

/* Locked memory would not leave. */
static int on_mlock(const struct pvas_far_part *p, const uint64_t *a, int64_t *value)
{
	struct parts c;

	*value = -ENOMEM;
	return cut(p, a[0], a[1], &c);
}

static int64_t advise(const struct pvas_far_part *p, const struct parts *c, int advice)
{
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_FREE:
		return p->ops->discard(c->addr, c->end - c->addr);
	case MADV_NORMAL:
	case MADV_RANDOM:
	case MADV_SEQUENTIAL:
	case MADV_WILLNEED:
	case MADV_COLD:
	case MADV_PAGEOUT:
	case MADV_HUGEPAGE:
	case MADV_NOHUGEPAGE:
	case MADV_DONTDUMP:
	case MADV_DONTFORK:
	case MADV_MERGEABLE:
	case MADV_UNMERGEABLE:
	case MADV_POPULATE_READ:
	case MADV_POPULATE_WRITE:
		return 0;
	default:
		return -EINVAL;
	}
}

static int on_madvise(const struct pvas_far_part *p, const uint64_t *a, int64_t *value)
{
	int advice = (int)a[2];
	struct parts c;

	if (!cut(p, a[0], a[1], &c))
		return 0;
	*value = advise(p, &c, advice);
	if (!*value && c.from < c.addr)
		*value = pvas_raw3(__NR_madvise, c.from, c.addr - c.from, advice);
	if (!*value && c.end < c.to)
		*value = pvas_raw3(__NR_madvise, c.end, c.to - c.end, advice);
	return 1;
}

static int on_mremap(const struct pvas_far_part *p, const uint64_t *a, int64_t *value)
{
	struct parts c;

	if ((a[3] & MREMAP_FIXED) && cut(p, a[4], a[2], &c)) {
		*value = -EINVAL;
		return 1;
	}
	/* Local memory below must not grow into the far part. */
	if (a[0] < p->far_start && cut(p, a[0], a[2], &c)) {
		*value = -ENOMEM;
		return 1;
	}
	if (!cut(p, a[0], a[1] ? a[1] : 1, &c))
		return 0;
	if (a[3] & ~(uint64_t)MREMAP_MAYMOVE || c.from != c.addr || c.end != c.to)
		*value = -EINVAL;
	else
		*value = p->ops->move(a[0], a[1], a[2], a[3] & MREMAP_MAYMOVE);
	return 1;
}

static int on_shmat(const struct pvas_far_part *p, const uint64_t *a, int64_t *value)
{
	struct shmid_ds ds;
	struct parts c;

	*value = -EINVAL;
	return a[1] && !pvas_raw3(__NR_shmctl, (int)a[0], IPC_STAT, &ds) &&
	       cut(p, pvas_layout_down(a[1], PVAS_LAYOUT_PAGE),
		   ds.shm_segsz + PVAS_LAYOUT_PAGE, &c);
}

int pvas_far_call(const struct pvas_far_part *p, int nr, const uint64_t *args, int64_t *value)
{
	switch (nr) {
	case __NR_mmap:
		return on_mmap(p, args, value);
	case __NR_munmap:
		return on_munmap(p, args, value);
	case __NR_madvise:
		return on_madvise(p, args, value);
	case __NR_mremap:
		return on_mremap(p, args, value);
	case __NR_mlock:
	case __NR_mlock2:
		return on_mlock(p, args, value);
	case __NR_shmat:
		return on_shmat(p, args, value);
	default:
		return 0;
	}
}
