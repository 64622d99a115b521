// SPDX-License-Identifier: GPL-2.0-only
/* The gate before the PMIx server. */
#include "gate.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clock.h"
#include "handoff.h"
#include "listen.h"

#define CHUNK (64 << 10)
/* Callers a turn: then signals, the end of tasks and timeouts have theirs. */
#define CALLERS_A_TURN 128
#define PAUSE_MS 100
/* A rank says who it is as soon as it has called; less time if others want its place. */
#define PATIENCE_MS 10000
#define SHORT_PATIENCE_MS 100
#define MOST_WAITING 256

static struct way *other(struct way *way)
{
	return &way->link->ways[way == &way->link->ways[0]];
}

static void wait_no_more(struct link *link)
{
	struct gate *gate = link->gate;

	if (!link->waiting)
		return;
	*(link->earlier ? &link->earlier->later : &gate->first) = link->later;
	*(link->later ? &link->later->earlier : &gate->last) = link->earlier;
	link->waiting = false;
	gate->waiting--;
}

/* Either has gone: the other one sees that, and knows what to make of it. */
static void hang_up(struct link *link)
{
	int i;

	wait_no_more(link);
	for (i = 0; i < 2; i++) {
		struct way *way = &link->ways[i];

		loop_forget(link->gate->loop, &way->event);
		if (way->event.fd >= 0 && link->ways[1].event.fd < 0 && !i)
			hang_up_at_once(way->event.fd);	/* a stranger */
		else if (way->event.fd >= 0)
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

/* ---- callers that have not said the job's name ---- */

static void set_timer(struct pause *timer, int64_t ms)
{
	const struct itimerspec soon = {
		.it_value.tv_sec = ms / 1000,
		.it_value.tv_nsec = ms % 1000 * 1000000 + 1,
	};

	timerfd_settime(timer->event.fd, 0, &soon, NULL);
}

/* Those that have waited longest stand in front. */
static void drop_after(struct gate *gate, int64_t patience)
{
	int64_t now = now_ms();

	while (gate->first && now - gate->first->since >= patience)
		hang_up(gate->first);
	if (gate->first)
		set_timer(&gate->patience, gate->first->since + PATIENCE_MS - now);
}

static void patience_is_over(struct event *event, uint32_t what)
{
	uint64_t times;

	(void)what;
	if (read(event->fd, &times, sizeof(times)) == sizeof(times))
		drop_after(((struct pause *)event)->gate, PATIENCE_MS);
}

/* A connection to the server, even if others have to go for it. */
static int connect_server(struct gate *gate, const char *first, size_t len)
{
	int fd = handoff_connect(first, len);

	if (fd != -EMFILE || !gate->first)
		return fd;
	drop_after(gate, 0);
	return handoff_connect(first, len);
}

static int join(struct link *link, const char *first, size_t len)
{
	struct gate *gate = link->gate;
	int i, err = 0;

	wait_no_more(link);
	loop_forget(gate->loop, &link->ways[0].event);
	if (!gate->server)
		gate->server = gate->start(gate->arg) ? -1 : 1;
	if (gate->server < 0)
		return -ENOENT;
	link->ways[1].event.fd = connect_server(gate, first, len);
	if (link->ways[1].event.fd < 0)
		return link->ways[1].event.fd;
	for (i = 0; i < 2 && !err; i++) {
		link->ways[i].event.ready = way_ready;
		err = loop_watch(gate->loop, &link->ways[i].event, EPOLLIN);
	}
	return err;
}

static bool has_gone(int fd)
{
	struct pollfd end = { .fd = fd, .events = POLLRDHUP };

	return poll(&end, 1, 0) > 0;
}

/* Its bytes stay in the socket until the handshake is complete. */
static int look_at(struct link *link)
{
	char said[HANDSHAKE_MAX];
	int fd = link->ways[0].event.fd;
	ssize_t n = recv(fd, said, sizeof(said), MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return -errno;
	n = handshake_check(&link->gate->wanted, said, n < 0 ? 0 : n);
	if (n < 0)
		return n;
	if (!n)
		return has_gone(fd) ? -EPIPE : 0;
	if (recv(fd, said, n, MSG_DONTWAIT) != n)
		return -EPROTO;
	return join(link, said, n);
}

static void caller_ready(struct event *event, uint32_t what)
{
	struct link *link = ((struct way *)event)->link;

	(void)what;
	if (look_at(link))
		hang_up(link);
}

/* It stays readable while it is not read: so it is looked at when there is more. */
static int wait_for(struct link *link)
{
	struct gate *gate = link->gate;

	link->since = now_ms();
	link->earlier = gate->last;
	link->later = NULL;
	*(gate->last ? &gate->last->later : &gate->first) = link;
	gate->last = link;
	link->waiting = true;
	if (!gate->waiting++)
		set_timer(&gate->patience, PATIENCE_MS);
	return loop_watch(gate->loop, &link->ways[0].event, EPOLLIN | EPOLLRDHUP | EPOLLET);
}

static void let_in(struct gate *gate, int caller)
{
	struct link *link = new_link(gate);
	int i;

	if (!link) {
		close(caller);
		return;
	}
	for (i = 0; i < 2; i++) {
		link->ways[i].link = link;
		link->ways[i].event = (struct event){ .fd = -1, .ready = caller_ready };
	}
	link->ways[0].event.fd = caller;
	/* most have spoken by now */
	if (look_at(link) || (!link->ways[0].event.watched && wait_for(link)))
		hang_up(link);
}

static bool is_full(struct gate *gate)
{
	if (gate->waiting >= gate->most_waiting)
		drop_after(gate, SHORT_PATIENCE_MS);
	return gate->waiting >= gate->most_waiting;
}

/* ---- callers ---- */

/* A caller that can't be accepted stays, and so would the event: try again in a while. */
static void pause_callers(struct gate *gate)
{
	set_timer(&gate->pause, PAUSE_MS);
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
	int taken[CALLERS_AT_ONCE];
	int i, n, room, seen = 0;

	(void)what;
	while (seen < CALLERS_A_TURN && !is_full(gate)) {
		room = gate->most_waiting - gate->waiting;
		n = accept_here(event->fd, &gate->callers, taken,
				room < CALLERS_AT_ONCE ? room : CALLERS_AT_ONCE);
		if (n == -EAGAIN)
			return;
		if (n == -EMFILE || n == -ENFILE || n == -ENOBUFS || n == -ENOMEM)
			break;
		for (i = 0; i < n; i++)
			if (taken[i] >= 0)
				let_in(gate, taken[i]);
		seen += n > 0 ? n : 1;
	}
	if (seen < CALLERS_A_TURN) {
		drop_after(gate, SHORT_PATIENCE_MS);
		pause_callers(gate);
	}
}

/* The others of our descriptors are for ranks, and for what tasks do. */
static unsigned int most_waiting(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 4 > MOST_WAITING)
		return MOST_WAITING;
	return limit.rlim_cur / 4 + 1;
}

int gate_open(struct gate *gate, struct loop *loop, const struct handshake *wanted,
	      int (*start)(void *arg), void *arg)
{
	int err;

	*gate = (struct gate){ .loop = loop, .wanted = *wanted, .start = start, .arg = arg };
	gate->most_waiting = most_waiting();
	gate->callers.netlink = gate->pause.event.fd = gate->patience.event.fd = -1;
	gate->pause.gate = gate->patience.gate = gate;
	gate->pause.event.ready = pause_is_over;
	gate->patience.event.ready = patience_is_over;
	gate->event.ready = gate_ready;
	gate->event.fd = listen_here(&gate->port);
	if (gate->event.fd < 0)
		return gate->event.fd;
	err = callers_open(&gate->callers, gate->event.fd);
	if (err)
		return err;
	gate->pause.event.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	gate->patience.event.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return gate->pause.event.fd < 0 || gate->patience.event.fd < 0 ? -errno : 0;
}

int gate_serve(struct gate *gate)
{
	int err = loop_watch(gate->loop, &gate->pause.event, EPOLLIN);

	if (!err)
		err = loop_watch(gate->loop, &gate->patience.event, EPOLLIN);
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
	close_event(gate, &gate->patience.event);
	callers_close(&gate->callers);
	while ((link = gate->links)) {
		gate->links = link->next;
		hang_up(link);
		free(link);
	}
	gate->free = NULL;
}
