// SPDX-License-Identifier: GPL-2.0
/* The gate before the PMIx server. */
#include "gate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "listen.h"

#define CHUNK (64 << 10)

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

		loop_forget(link->loop, &way->event);
		if (way->event.fd >= 0)
			close(way->event.fd);
		way->event.fd = -1;
		free(way->late);
		way->late = NULL;
	}
}

/* What a way waits for: room, if it is behind; data, if its other end is not. */
static void watch(struct way *way)
{
	loop_change(way->link->loop, &way->event,
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

static int join(struct gate *gate, int fds[2])
{
	struct link *link = calloc(1, sizeof(*link));
	int i, err = 0;

	if (!link)
		return -ENOMEM;
	link->loop = gate->loop;
	link->next = gate->links;
	gate->links = link;
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
		gate->server = gate->start(gate->arg);
	if (gate->server > 0)
		fds[1] = call_here(gate->server);
	if (fds[1] >= 0 && !join(gate, fds))
		return;
	close(caller);
	if (fds[1] >= 0)
		close(fds[1]);
}

static void gate_ready(struct event *event, uint32_t what)
{
	struct gate *gate = (struct gate *)event;
	int caller;

	(void)what;
	while ((caller = accept_here(event->fd)) >= 0)
		let_in(gate, caller);
}

int gate_open(struct gate *gate, struct loop *loop, int (*start)(void *arg), void *arg)
{
	*gate = (struct gate){ .loop = loop, .start = start, .arg = arg };
	gate->event.ready = gate_ready;
	gate->event.fd = listen_here(&gate->port);
	return gate->event.fd < 0 ? gate->event.fd : 0;
}

int gate_serve(struct gate *gate)
{
	return loop_watch(gate->loop, &gate->event, EPOLLIN);
}

void gate_close(struct gate *gate)
{
	struct link *link;

	if (gate->event.fd >= 0)
		close(gate->event.fd);
	gate->event.fd = -1;
	while ((link = gate->links)) {
		gate->links = link->next;
		hang_up(link);
		free(link);
	}
}
