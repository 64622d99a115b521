// SPDX-License-Identifier: GPL-2.0-only
/* An event loop. */
#include "event.h"

#include <errno.h>
#include <unistd.h>

#define EVENTS_PER_TURN 64

static void inner_ready(struct event *event, uint32_t what)
{
	(void)what;
	loop_turn((struct loop *)event, 0);
}

int loop_open(struct loop *loop)
{
	_Static_assert(__builtin_offsetof(struct loop, self) == 0, "inner_ready() casts");
	loop->self = (struct event){ .ready = inner_ready };
	loop->self.fd = epoll_create1(EPOLL_CLOEXEC);
	return loop->self.fd < 0 ? -errno : 0;
}

void loop_close(struct loop *loop)
{
	if (loop->self.fd >= 0)
		close(loop->self.fd);
	loop->self.fd = -1;
}

int loop_watch(struct loop *loop, struct event *event, uint32_t what)
{
	struct epoll_event wanted = { .events = what, .data.ptr = event };

	if (epoll_ctl(loop->self.fd, EPOLL_CTL_ADD, event->fd, &wanted) < 0)
		return -errno;
	event->watched = true;
	return 0;
}

int loop_change(struct loop *loop, struct event *event, uint32_t what)
{
	struct epoll_event wanted = { .events = what, .data.ptr = event };

	return epoll_ctl(loop->self.fd, EPOLL_CTL_MOD, event->fd, &wanted) < 0 ? -errno : 0;
}

void loop_forget(struct loop *loop, struct event *event)
{
	if (event->watched)
		epoll_ctl(loop->self.fd, EPOLL_CTL_DEL, event->fd, NULL);
	event->watched = false;
}

int loop_turn(struct loop *loop, int timeout_ms)
{
	struct epoll_event ready[EVENTS_PER_TURN];
	int i, n;

	n = epoll_wait(loop->self.fd, ready, EVENTS_PER_TURN, timeout_ms);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (i = 0; i < n; i++) {
		struct event *event = ready[i].data.ptr;

		/* a handler before this one may have stopped watching it */
		if (event->watched)
			event->ready(event, ready[i].events);
	}
	return n;
}
