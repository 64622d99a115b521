// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The pager of a job: far memory lies in the tasks' partitions, and libpvas' user backend
 * calls these functions for the tasks. See ../far_ops.h.
 *
 * A mapping takes whole pages of the pager's, but has the length that the task asked for: the
 * rest of its last page is a hole, as are parts that the task unmaps. uffd.c copes with them.
 * A page is free when nothing of it is mapped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api.h"
#include "job.h"
#include "places.h"

#define KERNEL_PAGE 4096UL
#define END_S 2	/* that long a job's end waits for its stores */

/*
 * Of each row, the end of the highest mapping so far, and a page below which none is free: so
 * that the search for room does not begin at the beginning each time. At a task's end, how many
 * pages of the row have no contents any more.
 */
static uint64_t *top, *low, *emptied;

uint64_t far_job_top(unsigned int row)
{
	return top[row];
}

static uint64_t size_up(uint64_t n)
{
	return (n + KERNEL_PAGE - 1) & ~(KERNEL_PAGE - 1);
}

/* Does it all lie in one partition's far part? */
bool far_job_is_in_row(uint64_t addr, uint64_t len)
{
	uint64_t first = far_page_at(addr), last;

	if (first == far.pages || !len || len > far.part_pages * far.page_size)
		return false;
	last = far_page_at(addr + len - 1);
	return last != far.pages && last / far.part_pages == first / far.part_pages;
}

/* ---- map ---- */

/* The first of @count free pages in a row, from @from on; @end if there are none */
static uint64_t find_free(uint64_t from, uint64_t end, uint64_t count)
{
	uint64_t n, run = 0;

	for (n = from; n < end; n++) {
		run = far.page[n].state == FAR_FREE ? run + 1 : 0;
		if (run == count)
			return n + 1 - count;
	}
	return end;
}

/* Nothing but this is ever registered of a task: anonymous memory that was just mapped here. */
int64_t far_job_map_at(uint64_t at, uint64_t len)
{
	void *p = mmap((void *)at, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (p == MAP_FAILED)
		return -errno;
	madvise(p, len, MADV_NOHUGEPAGE);
	madvise(p, len, MADV_DONTDUMP);
	/* A fork child has no pager, and would find zeros there. */
	if (p == (void *)at && !madvise(p, len, MADV_DONTFORK) &&
	    !far_uffd_register(&far.uffd, p, len))
		return (int64_t)at;
	munmap(p, len);
	return -ENOMEM;
}

void far_job_mark(uint64_t first, uint64_t count)
{
	uint64_t n;

	for (n = first; n < first + count; n++) {
		/* Not the pins: the page may be held still, for an earlier mapping. */
		far.page[n].flags = 0;
		far.page[n].state = FAR_EMPTY;
		far.place[n] = far_place_take();
	}
	far.allocated += count;
	if (n > top[first / far.part_pages])
		top[first / far.part_pages] = n;
}

static int64_t map_in(uint64_t from, uint64_t end, uint64_t len)
{
	uint64_t count = (len + far.page_size - 1) / far.page_size, row = from / far.part_pages;
	uint64_t start = low[row] > from ? low[row] : from, n = start;
	int64_t at = -EEXIST;

	if (count > far.capacity - far.allocated)
		return -ENOMEM;
	while (at == -EEXIST) {
		n = find_free(n, end, count);
		if (n == end)
			return -ENOMEM;
		at = far_job_map_at((uint64_t)far_page_addr(n), len);
		if (at < 0)
			n++;
	}
	if (at < 0)
		return at;
	far_job_mark(n, count);
	if (n == start)
		low[row] = n + count;
	return at;
}

static int64_t job_map(unsigned int row, uint64_t len)
{
	uint64_t from = row * far.part_pages;
	int64_t at;

	if (!len || len > far.capacity * far.page_size)
		return -ENOMEM;
	pthread_mutex_lock(&far.lock);
	at = map_in(from, from + far.part_pages, size_up(len));
	pthread_mutex_unlock(&far.lock);
	return at;
}

/* ---- unmap ---- */

/* A busy page that has no memory any more */
static void set_free(uint64_t n)
{
	far_place_give(far.place[n]);
	far.page[n].flags &= FAR_WANTED;
	far.allocated--;
	if (n < low[n / far.part_pages])
		low[n / far.part_pages] = n;
	far_page_settle(n, FAR_FREE);
}

/* As far_page_wait(); false: the job ends, and the page may stay busy for ever. */
static bool wait_for(uint64_t n)
{
	while (far.page[n].state == FAR_BUSY && !far.dying)
		far_wait();
	return !far.dying;
}

/* Make the pages busy that have memory, with no contents. With the lock, which it releases. */
static bool empty(uint64_t first, uint64_t end)
{
	uint64_t n;

	for (n = first; n < end && wait_for(n); n++)
		if (far.page[n].state != FAR_FREE)
			far_page_forget(n);
	return !far.dying;
}

/* The same pages after @empty and munmap() */
static void free_busy(uint64_t first, uint64_t end)
{
	uint64_t n;

	for (n = first; n < end; n++)
		if (far.page[n].state == FAR_BUSY)
			set_free(n);
}

/* A page of which a part was unmapped: free if that was the rest. */
static void free_if_empty(uint64_t n)
{
	if (!wait_for(n) || far.page[n].state == FAR_FREE ||
	    far_uffd_is_mapped(far_page_addr(n), far.page_size))
		return;
	far_page_forget(n);
	set_free(n);
}

int64_t far_job_unmap(uint64_t addr, uint64_t len)
{
	uint64_t first = far_page_at(addr), last = far_page_at(addr + len - 1), full, end;
	bool done;
	int64_t err;

	full = first + (addr != (uint64_t)far_page_addr(first));
	end = last + (addr + len == (uint64_t)far_page_addr(last) + far.page_size);
	pthread_mutex_lock(&far.lock);
	done = empty(full, end);
	pthread_mutex_unlock(&far.lock);
	if (!done)
		return -EIO;
	err = munmap((void *)addr, len) ? -errno : 0;
	pthread_mutex_lock(&far.lock);
	free_busy(full, end);
	if (full != first)
		free_if_empty(first);
	if (last >= end && (last != first || full == first))
		free_if_empty(last);
	far_changed();
	pthread_mutex_unlock(&far.lock);
	return err;
}

static int64_t job_unmap(uint64_t addr, uint64_t len)
{
	len = size_up(len);
	if (addr & (KERNEL_PAGE - 1) || !far_job_is_in_row(addr, len))
		return -EINVAL;
	return far_job_unmap(addr, len);
}

/* ---- map at an address ---- */

/* Of a page that is mapped in part, bring in the rest: see grow() in job_move.c. With the lock. */
static void hold_edge(uint64_t n)
{
	far_job_pin(n);
	far_page_bring_in(n, true);
}

static uint64_t count_free(uint64_t first, uint64_t last)
{
	uint64_t n, count = 0;

	for (n = first; n <= last; n++)
		count += far.page[n].state == FAR_FREE;
	return count;
}

static int64_t map_between(uint64_t addr, uint64_t len, uint64_t first, uint64_t last)
{
	int64_t at = -ENOMEM;
	uint64_t n;

	if (count_free(first, last) <= far.capacity - far.allocated)
		at = far_job_map_at(addr, len);
	for (n = first; at > 0 && n <= last; n++)
		if (far.page[n].state == FAR_FREE)
			far_job_mark(n, 1);
	return at;
}

static int64_t job_map_at(uint64_t addr, uint64_t len, int prot, int replace)
{
	uint64_t first = far_page_at(addr), last;
	int64_t at;

	len = size_up(len);
	if (addr & (KERNEL_PAGE - 1) || !far_job_is_in_row(addr, len))
		return -EINVAL;
	last = far_page_at(addr + len - 1);
	at = replace ? far_job_unmap(addr, len) : 0;
	if (at)
		return at;
	pthread_mutex_lock(&far.lock);
	hold_edge(first);
	hold_edge(last);
	at = map_between(addr, len, first, last);
	far_job_unpin(first);
	far_job_unpin(last);
	pthread_mutex_unlock(&far.lock);
	if (at > 0 && mprotect((void *)addr, len, prot))
		return -errno;
	return at;
}

/* As empty(), of a row, until a page is busy: a store has it, perhaps for long. With the lock */
static bool empty_row(uint64_t from, unsigned int row)
{
	uint64_t n;

	for (; (n = from + emptied[row]) < top[row]; emptied[row]++) {
		if (far.page[n].state == FAR_BUSY)
			return false;
		if (far.page[n].state != FAR_FREE)
			far_page_forget(n);
	}
	return true;
}

/* The caller has other tasks to care for: it never waits for a store here, but calls again. */
static int job_end(unsigned int row)
{
	uint64_t from = row * far.part_pages;
	bool done;

	pthread_mutex_lock(&far.lock);
	done = far.dying || empty_row(from, row);
	pthread_mutex_unlock(&far.lock);
	if (!done || far.dying || top[row] <= from)
		return done;
	munmap(far_page_addr(from), (top[row] - from) * far.page_size);
	pthread_mutex_lock(&far.lock);
	free_busy(from, top[row]);
	top[row] = emptied[row] = 0;
	far_changed();
	pthread_mutex_unlock(&far.lock);
	return true;
}

/* ---- discard ---- */

/* A part of a page: drop the kernel's pages from it while it is resident. Holes read as zeros. */
static void drop_part(uint64_t n, uint64_t addr, uint64_t len)
{
	pthread_mutex_lock(&far.lock);
	far_job_pin(n);
	far_page_bring_in(n, true);
	pthread_mutex_unlock(&far.lock);
	madvise((void *)addr, len, MADV_DONTNEED);
	pthread_mutex_lock(&far.lock);
	far_job_unpin(n);
	pthread_mutex_unlock(&far.lock);
}

static void drop_whole(uint64_t first, uint64_t end)
{
	bool done;
	uint64_t n;

	pthread_mutex_lock(&far.lock);
	done = empty(first, end);
	pthread_mutex_unlock(&far.lock);
	if (!done)
		return;
	far_uffd_drop(far_page_addr(first), (end - first) * far.page_size);
	pthread_mutex_lock(&far.lock);
	for (n = first; n < end; n++)
		if (far.page[n].state == FAR_BUSY)
			far_page_settle(n, FAR_EMPTY);
	pthread_mutex_unlock(&far.lock);
}

static int64_t job_discard(uint64_t addr, uint64_t len)
{
	uint64_t to = addr + size_up(len), n, at, until;

	if (addr & (KERNEL_PAGE - 1) || (len && !far_job_is_in_row(addr, to - addr)))
		return -EINVAL;
	for (at = addr; at < to; at = until) {
		n = far_page_at(at);
		until = (uint64_t)far_page_addr(n) + far.page_size;
		until = until < to ? until : to;
		if (until - at == far.page_size)
			drop_whole(n, n + 1);
		else
			drop_part(n, at, until - at);
	}
	return 0;
}

/* ---- the pager ---- */

static int job_plan(const struct pvas_far_attr *attr, uint64_t *size, uint64_t *page)
{
	struct far_config config;
	int err = far_config_get(&config, attr);

	*size = config.size;
	*page = config.page;
	return err;
}

static void job_close(void)
{
	far_holder_stop();
	/* A thread of the pager waits for its end; so does what it holds. */
	if (far.dying || !far_pager_close(END_S))
		return;
	far_places_close();
	free(top);
	free(low);
	free(emptied);
	top = low = emptied = NULL;
}

static int job_open(const struct pvas_far_attr *attr, const struct pvas_far_rows *rows,
		    int *kernel)
{
	const struct far_rows own = {
		(char *)rows->base, rows->stride, rows->length, rows->count,
	};
	struct far_config config;
	int err = far_config_get(&config, attr);

	if (err)
		return err;
	/* Lists have 32 bits for a page. */
	if (own.length / config.page * own.count >= FAR_NONE - 1)
		return far_fail(-EINVAL, "pages of %llu bytes are too small for that much far memory in %u partitions",
				(unsigned long long)config.page, own.count);
	config.rows = &own;
	err = far_pager_open(&config);
	if (err)
		return err;
	far.capacity = (config.size + config.page - 1) / config.page;
	top = calloc(rows->count, sizeof(*top));
	low = calloc(rows->count, sizeof(*low));
	emptied = calloc(rows->count, sizeof(*emptied));
	err = top && low && emptied ? far_places_open(far.capacity) : -ENOMEM;
	if (!err)
		err = far_holder_start();
	if (err)
		job_close();
	/* Without UFFDIO_MOVE a page can leave while a device writes to it: it must be held. */
	*kernel = far.uffd.kernel && far.uffd.move;
	return err;
}

FAR_PUBLIC const struct pvas_far_ops far_job_ops = {
	.version = PVAS_FAR_OPS_VERSION,
	.plan = job_plan,
	.key = far_job_key,
	.open = job_open,
	.close = job_close,
	.error = far_error,
	.map = job_map,
	.map_at = job_map_at,
	.unmap = job_unmap,
	.discard = job_discard,
	.move = far_job_move,
	.hold = far_job_hold,
	.release = far_job_release,
	.room = far_job_room,
	.end = job_end,
	.totals = far_job_totals,
	.row = far_job_row,
	.when_dying = &far_when_dying,
};
