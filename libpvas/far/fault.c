// SPDX-License-Identifier: LGPL-2.1-or-later
/* One fault, from the kernel's message to the thread's going on. */
#include <errno.h>
#include <time.h>

#include "far.h"

static uint64_t microseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/*
 * A message about a page that is mapped: it came late, and the page is there; or the program
 * has dropped the memory, and zeros are what it must find.
 */
static void serve_hole(uint64_t n, uintptr_t addr)
{
	void *at = (void *)(addr & ~(uintptr_t)4095);
	int err;

	far.page[n].state = FAR_BUSY;
	pthread_mutex_unlock(&far.lock);
	err = far_uffd_zero(&far.uffd, at);
	if (err)
		far_uffd_wake(&far.uffd, at, 4096);
	pthread_mutex_lock(&far.lock);
	if (!err)
		far.page[n].flags |= FAR_DIRTY;
	far_page_settle(n, FAR_MAPPED);
}

static void serve_mapped(uint64_t n, const struct far_fault *fault)
{
	if (!fault->protect)
		serve_hole(n, fault->addr);
	else if (far.page[n].flags & FAR_DIRTY)
		far_uffd_wake(&far.uffd, far_page_addr(n), far.page_size);
	else
		far_page_unprotect(n);
}

static void serve_missing(uint64_t n, const struct far_fault *fault)
{
	uint64_t began = microseconds();
	unsigned int count;

	far.count.faults++;
	/* Reading ahead may take the slot that waits for the longest time: not this one. */
	if (far.page[n].state == FAR_SLOT)
		far_slot_touch(far.page[n].slot);
	/* First, so that the workers fetch while this thread does. */
	count = far_page_place(n, fault->write, far_ahead(n, fault->tid));
	if (count > 1)
		far_ahead_mapped(n, fault->tid, count);
	far.count.waited += microseconds() - began;
}

static bool is_slot(uintptr_t addr)
{
	return addr - (uintptr_t)far.slot_base <
	       (uint64_t)(far.fetch_count + far.out_count) * far.page_size;
}

void far_fault(const struct far_fault *fault)
{
	uint64_t n = far_page_at(fault->addr);

	if (fault->moved)
		far_die("the program has moved far memory by mremap(), which is not possible");
	if (n >= far.pages) {
		/* Memory that was just moved, of which another thread tells: no zeros there. */
		if (!is_slot(fault->addr))
			return;
		/* A program that writes there at random gets what it finds. */
		if (far_uffd_zero(&far.uffd, (void *)(fault->addr & ~(uintptr_t)4095)))
			far_uffd_wake(&far.uffd, (void *)(fault->addr & ~(uintptr_t)4095), 4096);
		return;
	}
	pthread_mutex_lock(&far.lock);
	switch ((enum far_state)far.page[n].state) {
	case FAR_FREE:
		/* Its protection was taken away, or soon is: it tries again, and gets SIGSEGV. */
		far_uffd_wake(&far.uffd, far_page_addr(n), far.page_size);
		break;
	case FAR_BUSY:
		far.page[n].flags |= FAR_WANTED;
		if (!far_exchanges())
			far_ahead(n, fault->tid);
		break;
	case FAR_MAPPED:
		serve_mapped(n, fault);
		break;
	default:
		if (!far_exchanges()) {
			serve_missing(n, fault);
			break;
		}
		far.page[n].flags |= FAR_WANTED;
		far_protocol_request(n);
	}
	pthread_mutex_unlock(&far.lock);
}
