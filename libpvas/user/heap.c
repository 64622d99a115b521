// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the heap of a partition, whose end is the program break.
 *
 * The kernel's break is the launcher's. A task's is in its partition's page, of which a fork
 * child has a copy.
 */
#include <sys/mman.h>

#include "rawsys.h"
#include "worker.h"

#define HEAP		(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
#define AHEAD		(32UL << 20)	/* mapped beyond the break: see grow() */

static void unmap(uint64_t at, uint64_t len)
{
	pvas_raw2(__NR_munmap, at, len);
}

static int over_limit(const struct user_part *p, uint64_t brk)
{
	return brk - p->layout.heap > user_caller_data_limit(p->pid);
}

/* Mappings are placed from the top: in a large partition half of it is left to them. */
static uint64_t heap_limit(const struct user_part *p)
{
	uint64_t half = (p->end - p->base) / 2;

	if (p->far_end)
		return p->far_start;
	return half < 1ULL << 32 ? p->layout.mmap_top : p->base + half;
}

static int map_heap(struct user_part *p, uint64_t to)
{
	uint64_t from = p->heap_end;

	if (to <= from)
		return 0;
	if (to > p->layout.mmap_top || to > heap_limit(p))
		return -ENOMEM;
	if (pvas_raw6(__NR_mmap, from, to - from, PROT_READ | PROT_WRITE,
		      HEAP | MAP_FIXED_NOREPLACE, -1, 0) != (long)from)
		return -ENOMEM;
	p->heap_end = to;
	return 0;
}

/* Zero it, and reset the protection, which the task may have changed. */
static int map_again(uint64_t from, uint64_t to)
{
	if (from >= to)
		return 0;
	return pvas_raw6(__NR_mmap, from, to - from, PROT_READ | PROT_WRITE, HEAP | MAP_FIXED,
			 -1, 0) == (long)from ? 0 : -ENOMEM;
}

/*
 * Map more than requested beyond the break, if there is room: fork children use it up,
 * because a worker can't map into their address space.
 */
static int map_ahead(struct user_part *p, uint64_t brk)
{
	uint64_t to = PAGE_UP(brk), ahead = PAGE_UP(brk - p->brk);

	if (ahead < AHEAD)
		ahead = AHEAD;
	if (to <= p->heap_end && p->heap_end - to >= AHEAD / 2)
		return 0;
	if (!map_heap(p, to + ahead))
		return 0;
	return map_heap(p, to);
}

/* The task may have unmapped, protected or locked memory that was mapped in advance. */
static int grow(struct user_part *p, uint64_t brk)
{
	uint64_t to = PAGE_UP(brk), before = p->heap_end;
	int err = map_ahead(p, brk);

	return err ? err : map_again(PAGE_UP(p->brk), to < before ? to : before);
}

/*
 * A fork child gets its copy of the page with the memory of that moment: so what goes is noted
 * before, and what comes afterwards.
 */
static int note_brk(uint64_t page, pid_t pid, uint64_t brk, uint64_t heap_end)
{
	const uint64_t words[2] = { brk, heap_end };

	return user_caller_write(pid, page, words, sizeof(words)) == sizeof(words);
}

/* Memory above the new break has to read as zero if the break grows again. */
static void shrink(struct user_part *p, uint64_t brk)
{
	uint64_t from = PAGE_UP(brk), to = PAGE_UP(p->brk), keep = from + 2 * AHEAD;

	if (keep < p->heap_end) {
		note_brk((uint64_t)p->page, user_caller_self(), brk, keep);
		unmap(keep, p->heap_end - keep);
		p->heap_end = keep;
	}
	if (to > p->heap_end)
		to = p->heap_end;
	/* With all that the task has mapped over it: a fork child would get that as new heap. */
	if (map_again(from, to))
		pvas_raw3(__NR_madvise, from, to - from, MADV_DONTNEED);
}

int64_t user_brk(struct user_part *p, uint64_t brk)
{
	if (brk < p->layout.heap || brk >= p->layout.mmap_top)
		return (int64_t)p->brk;
	if (brk > p->brk) {
		if (over_limit(p, brk) || grow(p, brk))
			return (int64_t)p->brk;
	} else {
		shrink(p, brk);
	}
	p->brk = brk;
	note_brk((uint64_t)p->page, user_caller_self(), brk, p->heap_end);
	return (int64_t)brk;
}

/*
 * Between the break and heap_end there may be no mapping but the heap's, or the break would
 * overwrite it: also not in a hole that the task has made there by munmap().
 */
void user_make_room(struct user_part *p, uint64_t addr, uint64_t len)
{
	uint64_t cut = PAGE_UP(p->brk);

	if (cut < PAGE_DOWN(addr))
		cut = PAGE_DOWN(addr);
	if (cut >= p->heap_end || addr + len <= PAGE_UP(p->brk))
		return;
	note_brk((uint64_t)p->page, user_caller_self(), p->brk, cut);
	unmap(cut, p->heap_end - cut);
	p->heap_end = cut;
}

/*
 * The break is in the child's copy of the page. It can grow within the memory mapped in
 * advance. It can't shrink, because the memory could not be zeroed. When that memory is
 * used up, malloc() continues with mmap().
 */
int64_t user_child_brk(struct user_part *p, pid_t child, uint64_t brk)
{
	uint64_t words[2] = { 0, 0 };

	/* Which the kernel never returns, and all take for a failure */
	if (user_caller_read(child, (uint64_t)p->page, words, sizeof(words)) !=
	    sizeof(words))
		return 0;
	if (brk <= words[0] || brk > words[1])
		return (int64_t)words[0];
	return (int64_t)(note_brk((uint64_t)p->page, child, brk, words[1]) ? brk : words[0]);
}
