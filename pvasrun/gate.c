// SPDX-License-Identifier: GPL-2.0-only
/* The gate before the PMIx server. */
#include "gate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "handoff.h"
#include "listen.h"

#define CHUNK (64 << 10)
/* Callers a turn: then signals, the end of tasks and timeouts have theirs. */
#define CALLERS_A_TURN 32
#define PAUSE_MS 100

static struct way *other(struct way *way)
{
	return &way->link->ways[way == &way->link->ways[0]];
}

/* Either has gone: the other one sees that, and knows what to make of it. */
static void hang_up(struct link *link)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct way *way = &link->ways[i];

		loop_forget(link->gate->loop, &way->event);
		if (way->event.fd >= 0)
			close(way->event.fd);
		way->event.fd = -1;
		free(way->late);
		way->late = NULL;
	}
	link->next_free = link->gate->free;
	link->gate->free = link;
}

/* What a way waits for: room, if it is behind; data, if its other end is not. */
static void watch(struct way *way)
{
	loop_change(way->link->gate->loop, &way->event,
		    (way->late ? EPOLLOUT : 0) | (other(way)->late ? 0 : EPOLLIN));
}

static int keep(struct way *to, const char *data, size_t len)
{
	to->late = malloc(len);
	if (!to->late)
		return -ENOMEM;
	memcpy(to->late, data, len);
	to->len = len;
	to->done = 0;
	return 0;
}

static int pass_on(struct way *to, const char *data, size_t len)
{
	ssize_t n = write(to->event.fd, data, len);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return -errno;
	if (n < 0)
		n = 0;
	return (size_t)n < len ? keep(to, data + n, len - n) : 0;
}

static int fetch(struct way *from)
{
	static char chunk[CHUNK];	/* one thread, and nothing stays in it */
	ssize_t n = read(from->event.fd, chunk, sizeof(chunk));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return n ? pass_on(other(from), chunk, n) : -EPIPE;
}

static int catch_up(struct way *to)
{
	ssize_t n = write(to->event.fd, to->late + to->done, to->len - to->done);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	to->done += n;
	if (to->done == to->len) {
		free(to->late);
		to->late = NULL;
	}
	return 0;
}

static void way_ready(struct event *event, uint32_t what)
{
	struct way *way = (struct way *)event;
	int err = 0;

	if (what & EPOLLOUT && way->late)
		err = catch_up(way);
	if (!err && what & (EPOLLIN | EPOLLHUP | EPOLLERR) && !other(way)->late)
		err = fetch(way);
	else if (!err && what & (EPOLLHUP | EPOLLERR))
		err = -EPIPE;	/* nobody is there to hear what is late */
	if (err) {
		hang_up(way->link);
		return;
	}
	watch(way);
	watch(other(way));
}

/* An event must stay in memory while its loop lives, so links are used again. */
static struct link *new_link(struct gate *gate)
{
	struct link *link = gate->free;

	if (link) {
		gate->free = link->next_free;
		return link;
	}
	link = calloc(1, sizeof(*link));
	if (!link)
		return NULL;
	link->gate = gate;
	link->next = gate->links;
	gate->links = link;
	return link;
}

static int join(struct gate *gate, int fds[2])
{
	struct link *link = new_link(gate);
	int i, err = 0;

	if (!link)
		return -ENOMEM;
	for (i = 0; i < 2; i++) {
		link->ways[i].link = link;
		link->ways[i].event = (struct event){ .fd = fds[i], .ready = way_ready };
	}
	for (i = 0; i < 2 && !err; i++)
		err = loop_watch(gate->loop, &link->ways[i].event, EPOLLIN);
	if (err)
		hang_up(link);
	return 0;
}

static void let_in(struct gate *gate, int caller)
{
	int fds[2] = { caller, -1 };

	if (!gate->server)
		gate->server = gate->start(gate->arg) ? -1 : 1;
	if (gate->server > 0)
		fds[1] = handoff_connect();
	if (fds[1] >= 0 && !join(gate, fds))
		return;
	close(caller);
	if (fds[1] >= 0)
		close(fds[1]);
}

/* ---- callers ---- */

/* A caller that can't be accepted stays, and so would the event: try again in a while. */
static void pause_callers(struct gate *gate)
{
	const struct itimerspec soon = { .it_value.tv_nsec = PAUSE_MS * 1000000L };

	if (!timerfd_settime(gate->pause.event.fd, 0, &soon, NULL))
		loop_forget(gate->loop, &gate->event);
}

static void pause_is_over(struct event *event, uint32_t what)
{
	struct gate *gate = ((struct pause *)event)->gate;
	uint64_t times;

	(void)what;
	if (read(event->fd, &times, sizeof(times)) < 0)
		return;
	if (!gate->event.watched && loop_watch(gate->loop, &gate->event, EPOLLIN))
		pause_callers(gate);
}

static void gate_ready(struct event *event, uint32_t what)
{
	struct gate *gate = (struct gate *)event;
	int i, caller;

	(void)what;
	for (i = 0; i < CALLERS_A_TURN; i++) {
		caller = accept_here(event->fd, &gate->callers);
		if (caller >= 0)
			let_in(gate, caller);
		else if (caller == -EAGAIN)
			return;
		else if (caller == -EMFILE || caller == -ENFILE || caller == -ENOBUFS ||
			 caller == -ENOMEM)
			break;
	}
	if (i < CALLERS_A_TURN)
		pause_callers(gate);
}

int gate_open(struct gate *gate, struct loop *loop, int (*start)(void *arg), void *arg)
{
	int err;

	*gate = (struct gate){ .loop = loop, .start = start, .arg = arg };
	gate->callers.netlink = gate->pause.event.fd = -1;
	gate->pause.gate = gate;
	gate->pause.event.ready = pause_is_over;
	gate->event.ready = gate_ready;
	gate->event.fd = listen_here(&gate->port);
	if (gate->event.fd < 0)
		return gate->event.fd;
	err = callers_open(&gate->callers, gate->event.fd);
	if (err)
		return err;
	gate->pause.event.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return gate->pause.event.fd < 0 ? -errno : 0;
}

int gate_serve(struct gate *gate)
{
	int err = loop_watch(gate->loop, &gate->pause.event, EPOLLIN);

	return err ? err : loop_watch(gate->loop, &gate->event, EPOLLIN);
}

static void close_event(struct gate *gate, struct event *event)
{
	loop_forget(gate->loop, event);
	if (event->fd >= 0)
		close(event->fd);
	event->fd = -1;
}

void gate_close(struct gate *gate)
{
	struct link *link;

	close_event(gate, &gate->event);
	close_event(gate, &gate->pause.event);
	callers_close(&gate->callers);
	while ((link = gate->links)) {
		gate->links = link->next;
		hang_up(link);
		free(link);
	}
	gate->free = NULL;
}
