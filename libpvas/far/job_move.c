// SPDX-License-Identifier: LGPL-2.1-or-later
/* mremap() of a job's far memory: it grows where it is, or its pages get other addresses. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "job.h"

#define KERNEL_PAGE 4096UL

/* Are the pages behind free, and is there room in the stores? With the lock. */
static bool can_grow(uint64_t first, uint64_t end)
{
	uint64_t n;

	if (first / far.part_pages != (end - 1) / far.part_pages || end > far.pages ||
	    end - first > far.capacity - far.allocated)
		return false;
	for (n = first; n < end; n++)
		if (far.page[n].state != FAR_FREE)
			return false;
	return true;
}

static bool protect(uint64_t addr, uint64_t len, int prot)
{
	return prot == (PROT_READ | PROT_WRITE) || !mprotect((void *)addr, len, prot);
}

static int64_t map_behind(uint64_t end, uint64_t len, int prot)
{
	int64_t at = far_job_map_at(end, len);

	if (at < 0 || protect(end, len, prot))
		return at;
	munmap((void *)end, len);
	return -ENOMEM;
}

/*
 * In place. Of the last page the hole behind the mapping becomes memory, which must read as
 * zeros; but in the stores there may be what was there before. A page that is resident has
 * only what is mapped: its holes read as zeros, and are stored so.
 */
static int64_t grow(uint64_t addr, uint64_t len, uint64_t new_len, int prot)
{
	uint64_t end = addr + len, last = far_page_at(end - 1), n = last + 1;
	uint64_t pages_end = far_page_at(addr + new_len - 1) + 1;
	int64_t at = -ENOMEM;

	pthread_mutex_lock(&far.lock);
	far_job_pin(last);
	far_page_bring_in(last, true);
	if (pages_end == n || can_grow(n, pages_end))
		at = map_behind(end, new_len - len, prot);
	if (at > 0 && pages_end > n)
		far_job_mark(n, pages_end - n);
	far_job_unpin(last);
	pthread_mutex_unlock(&far.lock);
	return at > 0 ? (int64_t)addr : -ENOMEM;
}

/* Out of the mapped ones, into a slot. With the lock, which it releases meanwhile. */
static void put_out(uint64_t n)
{
	far_page_wait(n);
	while (far.page[n].state == FAR_MAPPED) {
		if (!far_evict_page(n) && far.page[n].state == FAR_MAPPED) {
			/* No slot now, or a device uses it. */
			pthread_mutex_unlock(&far.lock);
			usleep(1000);
			pthread_mutex_lock(&far.lock);
			if (far_write_back())
				far_changed();
		}
		far_page_wait(n);
	}
}

/* @to, which is empty, gets the contents of @from, which is empty then. With the lock. */
static void give(uint64_t from, uint64_t to)
{
	struct far_page *a = &far.page[from], *b = &far.page[to];
	uint32_t place;

	/* A thread may have touched it already, wrongly: its contents are zeros. */
	far_page_wait(to);
	far_page_forget(to);
	put_out(from);
	/* Not before: an exchange swaps the places of pages, and releases the lock. */
	place = far.place[from];
	if (a->state == FAR_SLOT)
		far.slot[a->slot].page = to;
	b->slot = a->slot;
	b->flags = a->flags | (b->flags & FAR_WANTED);
	far.place[from] = far.place[to];
	far.place[to] = place;
	far_page_settle(to, a->state);
	a->flags = 0;
	a->state = FAR_EMPTY;
}

/* Does another mapping begin in the last page of one that ends at @end? */
static bool is_shared(uint64_t last, uint64_t end)
{
	uint64_t page_end = (uint64_t)far_page_addr(last) + far.page_size;

	return far_uffd_is_mapped((void *)end, page_end - end);
}

/*
 * A part of a page that another mapping has the rest of. By the kernel, as the task may have
 * taken the right to read it away.
 */
static bool copy_part(uint64_t to, uint64_t from, uint64_t len)
{
	uint64_t held_from = far_job_ops.hold(from, len, 0), held_to = far_job_ops.hold(to, len, 1);
	struct iovec there = { (void *)from, len }, here = { (void *)to, len };
	bool copied = held_from == len && held_to == len &&
		      process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)len;

	far_job_ops.release(from, held_from);
	far_job_ops.release(to, held_to);
	return copied;
}

/* To another place. The task doesn't touch the memory meanwhile, or it may find zeros. */
static int64_t move(uint64_t addr, uint64_t len, uint64_t new_len, int prot)
{
	uint64_t from = far_page_at(addr), count = far_page_at(addr + len - 1) + 1 - from, to, n;
	uint64_t part;
	bool copied = true;
	int64_t at;

	if (addr != (uint64_t)far_page_addr(from))
		return -ENOMEM;
	at = far_job_ops.map((unsigned int)(from / far.part_pages), new_len);
	if (at < 0)
		return at;
	to = far_page_at((uint64_t)at);
	if (is_shared(from + count - 1, addr + len)) {
		part = --count * far.page_size;
		copied = copy_part((uint64_t)at + part, addr + part, len - part);
	}
	if (!copied || !protect((uint64_t)at, new_len, prot)) {
		far_job_unmap((uint64_t)at, new_len);
		return -ENOMEM;
	}
	pthread_mutex_lock(&far.lock);
	for (n = 0; n < count; n++)
		give(from + n, to + n);
	pthread_mutex_unlock(&far.lock);
	far_job_unmap(addr, len);
	return at;
}

/* All of it must be mapped. */
static bool is_far(uint64_t addr, uint64_t len)
{
	uint64_t at;

	if (!far_job_is_in_row(addr, len))
		return false;
	for (at = addr; at < addr + len; at += far.page_size)
		if (far.page[far_page_at(at)].state == FAR_FREE)
			return false;
	return true;
}

int64_t far_job_move(uint64_t addr, uint64_t len, uint64_t new_len, int may_move)
{
	int64_t at;
	int prot;

	len = (len + KERNEL_PAGE - 1) & ~(KERNEL_PAGE - 1);
	new_len = (new_len + KERNEL_PAGE - 1) & ~(KERNEL_PAGE - 1);
	if (!len || !new_len || addr & (KERNEL_PAGE - 1))
		return -EINVAL;
	if (!is_far(addr, len))
		return -EFAULT;
	if (new_len > far.capacity * far.page_size)
		return -ENOMEM;
	if (new_len < len)
		return far_job_unmap(addr + new_len, len - new_len) ? -EINVAL : (int64_t)addr;
	if (new_len == len)
		return (int64_t)addr;
	prot = far_area_protection(addr, len);
	if (prot < 0)
		return prot;
	at = grow(addr, len, new_len, prot);
	return at < 0 && may_move ? move(addr, len, new_len, prot) : at;
}
