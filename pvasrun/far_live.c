// SPDX-License-Identifier: GPL-2.0-only
/* Each second: what the pager does, for pvasps and on the terminal. */
#include "far_live.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "../libpvas/far_ops.h"
#include "../libpvas/header.h"
#include "clock.h"
#include "report.h"

#define UNKNOWN 1001	/* of 1000 */

static struct {
	struct event event;
	struct loop *loop;
	const struct pvas_far_ops *pager;
	const struct pvas_space *space;
	struct pvas_far_totals last;
	int64_t at;		/* when that was */
} live = { .event.fd = -1 };

/* A second, but for a machine that has none to spare */
static uint64_t a_second(uint64_t n, int64_t ms)
{
	return ms > 0 ? n * 1000 / (uint64_t)ms : 0;
}

/* Pages read ahead count when they are used. */
static uint64_t hits(const struct pvas_far_totals *now, const struct pvas_far_totals *last)
{
	uint64_t found = now->returned - last->returned + now->ahead_used - last->ahead_used;
	uint64_t fetched = now->fetched - last->fetched, ahead = now->ahead - last->ahead;
	uint64_t missed = fetched > ahead ? fetched - ahead : 0;

	return found + missed ? 1000 * found / (found + missed) : UNKNOWN;
}

static void show(const struct pvas_far_seen *seen)
{
	char text[140], share[16] = "no";

	if (seen->hits < UNKNOWN)
		snprintf(share, sizeof(share), "%u%%", (unsigned int)seen->hits / 10);
	snprintf(text, sizeof(text),
		 "far memory: %llu of %llu MiB here, %llu faults/s, %s hits, %llu MiB/s in, %llu out",
		 (unsigned long long)seen->resident >> 20,
		 (unsigned long long)seen->allocated >> 20,
		 (unsigned long long)seen->faults_s, share, (unsigned long long)seen->in_s >> 20,
		 (unsigned long long)seen->out_s >> 20);
	progress_line(text);
}

static void on_second(struct event *event, uint32_t what)
{
	const struct pvas_far_totals last = live.last;
	struct pvas_far_seen seen;
	int64_t now = now_ms(), ms = now - live.at;
	struct pvas_far_totals t;
	uint64_t count;

	(void)what;
	if (read(event->fd, &count, sizeof(count)) != sizeof(count))
		return;
	live.pager->totals(&t);
	seen = (struct pvas_far_seen){
		.ram = t.ram, .allocated = t.allocated, .resident = t.resident,
		.stored = t.stored, .faults = t.faults,
		.faults_s = a_second(t.faults - last.faults, ms),
		.in_s = a_second((t.fetched - last.fetched) * t.page, ms),
		.out_s = a_second((t.put - last.put) * t.page, ms),
		.hits = hits(&t, &last),
	};
	live.last = t;
	live.at = now;
	libpvas_far_publish(live.space, &seen);
	show(&seen);
}

int far_live_begin(struct loop *loop, const struct pvas_far_ops *pager,
		   const struct pvas_space *space)
{
	const struct itimerspec each = { .it_interval = { 1, 0 }, .it_value = { 1, 0 } };

	live.loop = loop;
	live.pager = pager;
	live.space = space;
	live.at = now_ms();
	pager->totals(&live.last);
	live.event.ready = on_second;
	live.event.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (live.event.fd < 0 || timerfd_settime(live.event.fd, 0, &each, NULL))
		return -errno;
	return loop_watch(loop, &live.event, EPOLLIN);
}

void far_live_end(void)
{
	if (live.event.fd < 0)
		return;
	loop_forget(live.loop, &live.event);
	close(live.event.fd);
	live.event.fd = -1;
	progress_end();
}
