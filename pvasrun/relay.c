// SPDX-License-Identifier: GPL-2.0-only
/* Reading in pvasrun's place: see relay.h. */
#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clock.h"
#include "pass.h"
#include "pty.h"

#define EVENTS		64
#define NO_MEMORY_MS	10	/* until the next attempt */
#define LOOK_MS		50	/* after a change of a terminal */
#define OWED_MS		10	/* likewise, of pvasrun */
#define ORDERS		(~0U)	/* not a stream: pvasrun's end */
#define LOST		(1U << 31)	/* with the number of a stream, instead of bytes */

/* A pseudo-terminal's buffers (TTYB_DEFAULT_MEM_LIMIT), and more */
#define PTY_HOLDS	(1 << 20)

enum order_kind { ADD, START, HANG_UP, HANG_UP_PIPES, TASKS_ENDED, FINISH };

struct order {
	enum order_kind kind;
	unsigned int stream;
};

/* ---- the child, which may use calls of the kernel only ---- */

struct source {
	int fd;			/* -1: none, or ended */
	int other_end;		/* of a pseudo-terminal, while there are tasks; -1 */
	bool pty;
	bool hung_up;
	bool lost;		/* and told */
};

/* Made by pvasrun: its child has a copy. */
static struct source *sources;
static unsigned int nr_sources;
static int epoll_fd, orders_end;
static bool started, some_hung_up, finishing;
static int64_t look_at;		/* when to look for terminals that refuse bytes; 0: never */

static void release(struct source *source)
{
	if (source->other_end >= 0)
		close(source->other_end);
	source->other_end = -1;
}

static void watch(const struct source *source)
{
	struct epoll_event event = { .events = EPOLLIN };

	event.data.u32 = (uint32_t)(source - sources);
	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, source->fd, &event);
}

static void add(unsigned int stream, const int fds[static PASS_MAX])
{
	sources[stream] = (struct source){
		.fd = fds[0], .other_end = fds[1], .pty = fds[1] >= 0,
	};
	fcntl(fds[0], F_SETFL, O_NONBLOCK);	/* this end only */
	if (started)
		watch(&sources[stream]);
}

static void start(void)
{
	struct source *source;

	started = true;
	for (source = sources; source < sources + nr_sources; source++)
		if (source->fd >= 0)
			watch(source);
}

static void obey(const struct order *order, const int fds[static PASS_MAX])
{
	unsigned int i;

	switch (order->kind) {
	case ADD:
		add(order->stream, fds);
		break;
	case START:
		start();
		break;
	case HANG_UP:
		sources[order->stream].hung_up = some_hung_up = true;
		break;
	case HANG_UP_PIPES:
		for (i = order->stream; i < nr_sources; i += 2)
			sources[i].hung_up |= !sources[i].pty;
		some_hung_up = true;
		break;
	case TASKS_ENDED:
		for (i = 0; i < nr_sources; i++)
			release(&sources[i]);
		break;
	case FINISH:
		finishing = true;
		break;
	}
}

/* Bytes of a stream can be half sent: nothing is read or sent here. */
static void take_orders(void)
{
	int fds[PASS_MAX];
	struct order order;
	ssize_t n;

	while ((n = pass_receive(orders_end, &order, sizeof(order), fds)) == sizeof(order))
		obey(&order, fds);
	if (n >= 0 || (errno != EAGAIN && errno != EINTR))
		_exit(0);	/* pvasrun has ended */
}

/*
 * Until there is room. Orders are taken meanwhile: pvasrun doesn't read before it has given
 * those of a start.
 */
static void tell(unsigned int stream, const char *bytes, size_t len)
{
	struct iovec parts[] = { { &stream, sizeof(stream) }, { (char *)bytes, len } };
	const struct msghdr packet = { .msg_iov = parts, .msg_iovlen = 2 };
	struct pollfd room = { .fd = orders_end };

	while (sendmsg(orders_end, &packet, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		const bool no_memory = errno == ENOMEM || errno == ENOBUFS;

		if (!no_memory && errno != EAGAIN && errno != EINTR)
			_exit(0);
		room.events = no_memory ? POLLIN : POLLIN | POLLOUT;
		if (poll(&room, 1, no_memory ? NO_MEMORY_MS : -1) > 0 &&
		    (room.revents & (POLLIN | POLLHUP)))
			take_orders();
	}
}

static void tell_lost(struct source *source)
{
	if (!source->lost)
		tell((unsigned int)(source - sources) | LOST, NULL, 0);
	source->lost = true;
}

static void look(struct source *source)
{
	if (source->pty && source->fd >= 0 && !source->hung_up && pty_refuses(source->fd))
		tell_lost(source);
}

static void look_at_all(void)
{
	struct source *source;

	look_at = 0;
	for (source = sources; source < sources + nr_sources; source++)
		look(source);
}

static void tell_end(struct source *source)
{
	look(source);
	tell((unsigned int)(source - sources), NULL, 0);
}

/* Told first: close(2) can hang. */
static void end(struct source *source)
{
	tell_end(source);
	release(source);
	close(source->fd);
	source->fd = -1;
}

/* False: it has ended, or has nothing. *@n: so much of what it holds is read. */
static bool copy(struct source *source, ssize_t *n)
{
	static char bytes[RELAY_MAX];	/* the stack may be that small */

	if (source->pty)
		*n = pty_read(source->fd, source->other_end, bytes, sizeof(bytes));
	else
		*n = read(source->fd, bytes, sizeof(bytes));
	if (*n > 0) {
		tell((unsigned int)(source - sources), bytes, (size_t)*n);
		return true;
	}
	if (*n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENODATA)) {
		if (errno == ENODATA)
			tell_lost(source);
		else if (source->pty && !look_at)
			look_at = now_ms() + LOOK_MS;
		/* Changes of a terminal's state have no end if a process goes on with them. */
		*n = sizeof(bytes);
		return true;
	}
	return false;
}

static bool has_input(int fd)
{
	struct pollfd input = { .fd = fd, .events = POLLIN };

	return poll(&input, 1, 0) > 0;
}

/* All are told before the first close(2), which is that of the exit. */
static void finish(void)
{
	struct source *source;
	ssize_t left, n;

	for (source = sources; source < sources + nr_sources; source++) {
		if (source->fd < 0)
			continue;
		left = source->pty ? PTY_HOLDS : fcntl(source->fd, F_GETPIPE_SZ);
		while (left > 0 && !source->hung_up && has_input(source->fd) && copy(source, &n))
			left -= n;
		tell_end(source);
	}
}

static void end_hung_up(void)
{
	struct source *source;

	some_hung_up = false;
	for (source = sources; source < sources + nr_sources; source++)
		if (source->fd >= 0 && source->hung_up)
			end(source);
}

static void relay_until_end(int to, int unused)
{
	struct epoll_event events[EVENTS], orders = { .events = EPOLLIN, .data.u32 = ORDERS };
	struct source *source;
	ssize_t done;
	int i, n;

	(void)unused;
	prctl(PR_SET_NAME, "pvas-relay");
	orders_end = to;
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, to, &orders) < 0)
		_exit(1);
	while (!finishing) {
		n = epoll_wait(epoll_fd, events, EVENTS, look_at ? LOOK_MS : -1);
		for (i = 0; i < n; i++) {
			if (events[i].data.u32 == ORDERS) {
				take_orders();
				continue;
			}
			source = &sources[events[i].data.u32];
			if (source->fd >= 0 && !source->hung_up && !copy(source, &done))
				end(source);
		}
		if (some_hung_up)
			end_hung_up();
		if (look_at && now_ms() >= look_at)
			look_at_all();
	}
	finish();
}

/* ---- in pvasrun ---- */

/* Orders that pvasrun gives once only, as bits of relay.owed */
enum {
	OWED_START, OWED_HANG_UP_OUTPUTS, OWED_HANG_UP_ERRORS, OWED_TASKS_ENDED, OWED_FINISH,
	ORDERS_OWED
};

static const struct order owed_kinds[ORDERS_OWED] = {
	[OWED_START] = { START, 0 },
	[OWED_HANG_UP_OUTPUTS] = { HANG_UP_PIPES, 0 },
	[OWED_HANG_UP_ERRORS] = { HANG_UP_PIPES, 1 },
	[OWED_TASKS_ENDED] = { TASKS_ENDED, 0 },
	[OWED_FINISH] = { FINISH, 0 },
};

/* Also when memory is short, of which no event tells the end */
static void set_timer(const struct relay *relay, int ms)
{
	const struct timespec each = { .tv_nsec = ms * 1000000L };
	const struct itimerspec timer = { .it_interval = each, .it_value = each };

	timerfd_settime(relay->owed_event.fd, 0, &timer, NULL);
}

/* Returns whether the order is given, or nobody is left to obey it. */
static bool give(const struct relay *relay, enum order_kind kind, unsigned int stream)
{
	const struct order order = { kind, stream };

	return send(relay->child.end, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ||
	       (errno != EAGAIN && errno != EINTR && errno != ENOMEM && errno != ENOBUFS);
}

/* In the order of their numbers: FINISH is the last. */
static bool give_owed(struct relay *relay)
{
	unsigned int i;

	for (i = 0; i < ORDERS_OWED; i++) {
		if (!(relay->owed & 1U << i))
			continue;
		if (!give(relay, owed_kinds[i].kind, owed_kinds[i].stream))
			return false;
		relay->owed &= ~(1U << i);
	}
	return true;
}

static void owed_ready(struct event *event, uint32_t what)
{
	struct relay *relay = (struct relay *)event;
	uint64_t times;

	(void)what;
	if (read(event->fd, &times, sizeof(times)) > 0 && give_owed(relay))
		set_timer(relay, 0);
}

/* Now, or when there is room: the child lags behind if it is stopped, for example. */
static void owe(struct relay *relay, unsigned int i)
{
	const bool waiting = relay->owed;

	relay->owed |= 1U << i;
	if (!waiting && !give_owed(relay))
		set_timer(relay, OWED_MS);
}

static int watch_owed(struct relay *relay, struct loop *loop)
{
	_Static_assert(offsetof(struct relay, owed_event) == 0, "owed_ready() casts");
	relay->loop = loop;
	relay->owed_event.ready = owed_ready;
	relay->owed_event.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (relay->owed_event.fd < 0)
		return -errno;
	return loop_watch(loop, &relay->owed_event, EPOLLIN);
}

int relay_begin(struct relay *relay, unsigned int streams, struct loop *loop)
{
	unsigned int i;
	int err;

	sources = malloc(streams * sizeof(*sources));
	if (!sources)
		return -ENOMEM;
	nr_sources = streams;
	for (i = 0; i < streams; i++)
		sources[i] = (struct source){ .fd = -1, .other_end = -1 };
	err = file_child_begin(&relay->child, -1, relay_until_end);
	free(sources);
	return err ? err : watch_owed(relay, loop);
}

int relay_add(const struct relay *relay, unsigned int stream, int fd, int other_end)
{
	const struct order order = { ADD, stream };
	const int fds[] = { fd, other_end };

	return pass_send(relay->child.end, &order, sizeof(order), fds, other_end < 0 ? 1 : 2);
}

ssize_t relay_read(const struct relay *relay, unsigned int *stream, char bytes[static RELAY_MAX])
{
	struct iovec parts[] = { { stream, sizeof(*stream) }, { bytes, RELAY_MAX } };
	struct msghdr packet = { .msg_iov = parts, .msg_iovlen = 2 };
	ssize_t n = recvmsg(relay->child.end, &packet, MSG_DONTWAIT);

	if (n < (ssize_t)sizeof(*stream)) {
		if (n >= 0)
			errno = EPIPE;
		return -1;
	}
	if (*stream & LOST) {
		*stream &= ~LOST;
		errno = ENODATA;
		return -1;
	}
	return n - (ssize_t)sizeof(*stream);
}

void relay_start(struct relay *relay)
{
	owe(relay, OWED_START);
}

bool relay_hang_up(struct relay *relay, unsigned int stream)
{
	return !relay->owed && give(relay, HANG_UP, stream);
}

void relay_hang_up_pipes(struct relay *relay, unsigned int first)
{
	owe(relay, first ? OWED_HANG_UP_ERRORS : OWED_HANG_UP_OUTPUTS);
}

void relay_tasks_ended(struct relay *relay)
{
	owe(relay, OWED_TASKS_ENDED);
}

void relay_finish(struct relay *relay)
{
	owe(relay, OWED_FINISH);
}

void relay_close(struct relay *relay)
{
	if (relay->owed_event.fd >= 0) {
		loop_forget(relay->loop, &relay->owed_event);
		close(relay->owed_event.fd);
		relay->owed_event.fd = -1;
	}
	file_child_close(&relay->child);
}
