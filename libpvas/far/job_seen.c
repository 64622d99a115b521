// SPDX-License-Identifier: LGPL-2.1-or-later
/* For those who look on: counters, and how much far memory a task has. */
#include <string.h>

#include "job.h"

enum { AT_ONCE = 4096 };	/* pages to look at with the lock */

static void count(uint64_t from, uint64_t end, uint64_t *allocated, uint64_t *resident)
{
	uint64_t n;

	for (n = from; n < end; n++) {
		*allocated += far.page[n].state != FAR_FREE;
		*resident += far.page[n].state == FAR_MAPPED;
	}
}

void far_job_row(unsigned int row, uint64_t *allocated, uint64_t *resident)
{
	uint64_t at = row * far.part_pages, end;

	*allocated = *resident = 0;
	do {
		pthread_mutex_lock(&far.lock);
		end = far_job_top(row);
		count(at, at + AT_ONCE < end ? at + AT_ONCE : end, allocated, resident);
		pthread_mutex_unlock(&far.lock);
		at += AT_ONCE;
	} while (at < end);
	*allocated *= far.page_size;
	*resident *= far.page_size;
}

void far_job_totals(struct pvas_far_totals *t)
{
	struct pvas_far_counters c = { .size = sizeof(c) };

	memset(t, 0, sizeof(*t));
	if (pvas_far_get_counters(&c))
		return;
	*t = (struct pvas_far_totals){
		.page = c.page, .ram = c.ram, .resident = c.resident, .allocated = c.allocated,
		.stored = c.stored, .faults = c.faults, .fetched = c.fetched, .put = c.put,
		.waited = c.waited, .returned = c.returned, .ahead = c.ahead,
		.ahead_used = c.ahead_used,
	};
}
