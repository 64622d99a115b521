// SPDX-License-Identifier: LGPL-2.1-or-later
/* A job's far memory in system calls: pages are brought in, and stay while the kernel uses them. */
#include "job.h"

#define FIRST 2	/* pages: a small buffer can lie in two */

void far_job_pin(uint64_t n)
{
	far.pinned += !far.page[n].pins++;
}

void far_job_unpin(uint64_t n)
{
	if (far.page[n].pins && !--far.page[n].pins)
		far.pinned--;
}

/*
 * At most half of the budget, so that there is always a page that can go; and a quarter for
 * what is more than the first pages of a call, so that long ones leave room for others.
 */
static bool pin(uint64_t n, uint64_t nth)
{
	uint64_t most = nth < FIRST ? far.frames / 2 : far.frames / 4;

	if (far.page[n].pins == UINT16_MAX || (!far.page[n].pins && far.pinned >= most))
		return false;
	far_job_pin(n);
	return true;
}

uint64_t far_job_hold(uint64_t addr, uint64_t len, int write)
{
	uint64_t at, n, end = addr + len, nth = 0;

	pthread_mutex_lock(&far.lock);
	for (at = addr; at < end; at = (uint64_t)far_page_addr(n) + far.page_size) {
		n = far_page_at(at);
		if (n == far.pages)
			break;		/* the rest is the kernel's to look at */
		if (!pin(n, nth++)) {
			end = at;
			break;
		}
		/* If it is not mapped, the call fails as it should. */
		far_page_bring_in(n, write);
		pthread_mutex_unlock(&far.lock);
		far_uffd_fill(&far.uffd, far_page_addr(n), far.page_size);
		pthread_mutex_lock(&far.lock);
	}
	pthread_mutex_unlock(&far.lock);
	return end - addr;
}

/* The first and the last page may be used in part. */
uint64_t far_job_room(void)
{
	uint64_t pages;

	pthread_mutex_lock(&far.lock);
	pages = far.frames / 4 > far.pinned + 2 ? far.frames / 4 - far.pinned - 2 : 0;
	pthread_mutex_unlock(&far.lock);
	return pages * far.page_size;
}

void far_job_release(uint64_t addr, uint64_t len)
{
	uint64_t at, n;

	pthread_mutex_lock(&far.lock);
	for (at = addr; at < addr + len; at = (uint64_t)far_page_addr(n) + far.page_size) {
		n = far_page_at(at);
		if (n == far.pages)
			break;
		far_job_unpin(n);
	}
	far_changed();
	pthread_mutex_unlock(&far.lock);
}
