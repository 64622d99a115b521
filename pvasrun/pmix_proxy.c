// SPDX-License-Identifier: GPL-2.0-only
/* A proxy in front of the PMIx server. */
#include "pmix_proxy.h"

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
#include "heap.h"
#include "listen.h"

#define CHUNK (64 << 10)
/* Connections to accept before other events are handled: signals, children, timeouts */
#define ACCEPT_MAX 128
#define ACCEPT_RETRY_MS 100
/* A rank sends its handshake as soon as it has connected. */
#define HANDSHAKE_MS 10000
#define HANDSHAKE_BUSY_MS 100	/* if another client needs the place */
#define PENDING_MAX 256
/* How often the heap is looked at; a small message can cost the server a page. */
#define CHECK_BYTES (256 << 10)
#define MESSAGE_COST 4096

/* ---- the list of pending connections, oldest first ---- */

static void pending_add(struct proxy_conn *conn)
{
	struct pmix_proxy *proxy = conn->proxy;

	conn->since = now_ms();
	conn->pending_prev = proxy->pending_last;
	conn->pending_next = NULL;
	if (proxy->pending_last)
		proxy->pending_last->pending_next = conn;
	else
		proxy->pending_first = conn;
	proxy->pending_last = conn;
	conn->pending = true;
	proxy->nr_pending++;
}

static void pending_remove(struct proxy_conn *conn)
{
	struct pmix_proxy *proxy = conn->proxy;

	if (!conn->pending)
		return;
	if (conn->pending_prev)
		conn->pending_prev->pending_next = conn->pending_next;
	else
		proxy->pending_first = conn->pending_next;
	if (conn->pending_next)
		conn->pending_next->pending_prev = conn->pending_prev;
	else
		proxy->pending_last = conn->pending_prev;
	conn->pending = false;
	proxy->nr_pending--;
}

/* ---- connections ---- */

static void end_close(struct proxy_end *end, void (*close_fd)(int fd))
{
	loop_forget(end->conn->proxy->loop, &end->event);
	if (end->event.fd >= 0)
		close_fd(end->event.fd);
	end->event.fd = -1;
	free(end->unsent);
	end->unsent = NULL;
	end->ended = false;
}

static void close_normally(int fd)
{
	close(fd);
}

/* A client that never got to the server may be any process: leave no TIME_WAIT for it. */
static void conn_close(struct proxy_conn *conn)
{
	bool served = conn->server.event.fd >= 0;

	pending_remove(conn);
	end_close(&conn->client, served ? close_normally : close_with_reset);
	end_close(&conn->server, close_normally);
	conn->next_free = conn->proxy->free;
	conn->proxy->free = conn;
}

/* An event must stay in memory while its loop lives, so connections are used again. */
static struct proxy_conn *conn_alloc(struct pmix_proxy *proxy)
{
	struct proxy_conn *conn = proxy->free;

	if (conn) {
		proxy->free = conn->next_free;
		return conn;
	}
	conn = calloc(1, sizeof(*conn));
	if (!conn)
		return NULL;
	conn->proxy = proxy;
	conn->next = proxy->conns;
	proxy->conns = conn;
	return conn;
}

/* ---- forwarding ---- */

static struct proxy_end *other_end(struct proxy_end *end)
{
	struct proxy_conn *conn = end->conn;

	return end == &conn->client ? &conn->server : &conn->client;
}

/* Wait for room if there are unsent bytes, and read only if the other end has none. */
static void watch(struct proxy_end *end)
{
	if (end->ended && other_end(end)->unsent)
		return;		/* its end would be reported all the time: see end_ready() */
	if (!end->event.watched)
		loop_watch(end->conn->proxy->loop, &end->event, 0);
	loop_change(end->conn->proxy->loop, &end->event,
		    (end->unsent ? EPOLLOUT : 0) | (other_end(end)->unsent ? 0 : EPOLLIN));
}

static int keep_unsent(struct proxy_end *to, const char *data, size_t len)
{
	to->unsent = malloc(len);
	if (!to->unsent)
		return -ENOMEM;
	memcpy(to->unsent, data, len);
	to->len = len;
	to->done = 0;
	return 0;
}

static int send_to(struct proxy_end *to, const char *data, size_t len)
{
	ssize_t n;

	if (to->ended)
		return 0;
	n = write(to->event.fd, data, len);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return -errno;
	if (n < 0)
		n = 0;
	return (size_t)n < len ? keep_unsent(to, data + n, len - n) : 0;
}

/* May the server get @len bytes more of this rank? */
static bool has_room(struct proxy_conn *conn, size_t len)
{
	struct pmix_proxy *proxy = conn->proxy;

	proxy->unchecked += len + MESSAGE_COST;
	if (!proxy->heap_max || proxy->unchecked < CHECK_BYTES)
		return !proxy->over;
	proxy->unchecked = 0;
	if (!proxy->over && heap_in_use() > proxy->heap_max) {
		proxy->over = true;
		proxy->is_over(proxy->is_over_arg, conn->rank);
	}
	return !proxy->over;
}

static int forward(struct proxy_end *from)
{
	static char chunk[CHUNK];	/* too large for the stack; empty between calls */
	ssize_t n = read(from->event.fd, chunk, sizeof(chunk));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n && from == &from->conn->client && !has_room(from->conn, n))
		return -ENOBUFS;
	return n ? send_to(other_end(from), chunk, n) : -EPIPE;
}

static int send_unsent(struct proxy_end *to)
{
	ssize_t n = write(to->event.fd, to->unsent + to->done, to->len - to->done);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	to->done += n;
	if (to->done == to->len) {
		free(to->unsent);
		to->unsent = NULL;
	}
	return 0;
}

/*
 * This end is closed, but what it said last is still to be sent, and the rest to be read.
 * Nobody will read what is unsent to itself.
 */
static void wait_for_other(struct proxy_end *end)
{
	loop_forget(end->conn->proxy->loop, &end->event);
	end->ended = true;
	free(end->unsent);
	end->unsent = NULL;
}

static void end_ready(struct event *event, uint32_t what)
{
	struct proxy_end *end = (struct proxy_end *)event;
	int err = 0;

	if (what & EPOLLOUT && end->unsent)
		err = send_unsent(end);
	if (!err && what & (EPOLLIN | EPOLLHUP | EPOLLERR) && !other_end(end)->unsent)
		err = forward(end);
	else if (!err && what & (EPOLLHUP | EPOLLERR))
		wait_for_other(end);
	if (err) {
		conn_close(end->conn);
		return;
	}
	watch(end);
	watch(other_end(end));
}

/* ---- the handshake ---- */

static void set_timer(struct proxy_timer *timer, int64_t ms)
{
	const struct itimerspec soon = {
		.it_value.tv_sec = ms / 1000,
		.it_value.tv_nsec = ms % 1000 * 1000000 + 1,
	};

	timerfd_settime(timer->event.fd, 0, &soon, NULL);
}

static void close_pending(struct pmix_proxy *proxy, int64_t min_age)
{
	int64_t now = now_ms();

	while (proxy->pending_first && now - proxy->pending_first->since >= min_age)
		conn_close(proxy->pending_first);
	if (proxy->pending_first)
		set_timer(&proxy->handshake_timer,
			  proxy->pending_first->since + HANDSHAKE_MS - now);
}

static void handshake_timer_ready(struct event *event, uint32_t what)
{
	uint64_t times;

	(void)what;
	if (read(event->fd, &times, sizeof(times)) == sizeof(times))
		close_pending(((struct proxy_timer *)event)->proxy, HANDSHAKE_MS);
}

/* If there is no descriptor left, take those of pending connections. */
static int connect_server(struct pmix_proxy *proxy, const char *first, size_t len)
{
	int fd = handoff_connect(first, len);

	if (fd != -EMFILE || !proxy->pending_first)
		return fd;
	close_pending(proxy, 0);
	return handoff_connect(first, len);
}

static int end_forward(struct proxy_end *end)
{
	end->event.ready = end_ready;
	return loop_watch(end->conn->proxy->loop, &end->event, EPOLLIN);
}

/* @first: the handshake, which the server must be able to read at once */
static int conn_forward(struct proxy_conn *conn, const char *first, size_t len)
{
	struct pmix_proxy *proxy = conn->proxy;
	int err;

	pending_remove(conn);
	loop_forget(proxy->loop, &conn->client.event);
	if (proxy->server == SERVER_NOT_STARTED)
		proxy->server = proxy->start(proxy->arg) ? SERVER_FAILED : SERVER_STARTED;
	if (proxy->server == SERVER_FAILED || !has_room(conn, len))
		return -ENOENT;
	conn->server.event.fd = connect_server(proxy, first, len);
	if (conn->server.event.fd < 0)
		return conn->server.event.fd;
	err = end_forward(&conn->client);
	return err ? err : end_forward(&conn->server);
}

static bool is_closed(int fd)
{
	struct pollfd end = { .fd = fd, .events = POLLRDHUP };

	return poll(&end, 1, 0) > 0;
}

/* Bytes stay in the socket until the handshake is complete. */
static int check_handshake(struct proxy_conn *conn)
{
	struct handshake_rank rank;
	char bytes[HANDSHAKE_MAX];
	int fd = conn->client.event.fd;
	ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return -errno;
	n = handshake_check(&conn->proxy->expected, bytes, n < 0 ? 0 : n, &rank);
	if (n == -EPROTONOSUPPORT)
		pmix_versions_unknown(&conn->proxy->versions, &rank);
	if (n < 0)
		return n;
	if (!n)
		return is_closed(fd) ? -EPIPE : 0;
	if (recv(fd, bytes, n, MSG_DONTWAIT) != n)
		return -EPROTO;
	conn->rank = rank.rank;
	pmix_versions_compare(&conn->proxy->versions, &rank);
	return conn_forward(conn, bytes, n);
}

static void handshake_ready(struct event *event, uint32_t what)
{
	struct proxy_conn *conn = ((struct proxy_end *)event)->conn;

	(void)what;
	if (check_handshake(conn))
		conn_close(conn);
}

/* EPOLLET: the bytes that were only peeked at must not wake the loop again. */
static int wait_for_handshake(struct proxy_conn *conn)
{
	struct pmix_proxy *proxy = conn->proxy;

	if (!proxy->nr_pending)
		set_timer(&proxy->handshake_timer, HANDSHAKE_MS);
	pending_add(conn);
	return loop_watch(proxy->loop, &conn->client.event, EPOLLIN | EPOLLRDHUP | EPOLLET);
}

static void add_client(struct pmix_proxy *proxy, int fd)
{
	struct proxy_conn *conn = conn_alloc(proxy);

	if (!conn) {
		close(fd);
		return;
	}
	conn->client.conn = conn->server.conn = conn;
	conn->client.event = (struct event){ .fd = fd, .ready = handshake_ready };
	conn->server.event = (struct event){ .fd = -1 };
	/* most have sent their handshake by now */
	if (check_handshake(conn) || (!conn->client.event.watched && wait_for_handshake(conn)))
		conn_close(conn);
}

/* ---- accepting ---- */

static bool is_full(struct pmix_proxy *proxy)
{
	if (proxy->nr_pending >= proxy->max_pending)
		close_pending(proxy, HANDSHAKE_BUSY_MS);
	return proxy->nr_pending >= proxy->max_pending;
}

/* A connection that can't be accepted keeps the socket readable: retry after a while. */
static void pause_accepting(struct pmix_proxy *proxy)
{
	set_timer(&proxy->accept_timer, ACCEPT_RETRY_MS);
	loop_forget(proxy->loop, &proxy->event);
}

static void accept_timer_ready(struct event *event, uint32_t what)
{
	struct pmix_proxy *proxy = ((struct proxy_timer *)event)->proxy;
	uint64_t times;

	(void)what;
	if (read(event->fd, &times, sizeof(times)) < 0)
		return;
	if (!proxy->event.watched && loop_watch(proxy->loop, &proxy->event, EPOLLIN))
		pause_accepting(proxy);
}

static void listener_ready(struct event *event, uint32_t what)
{
	struct pmix_proxy *proxy = (struct pmix_proxy *)event;
	int fds[PEER_UID_BATCH];
	int i, n, room, accepted = 0;

	(void)what;
	while (accepted < ACCEPT_MAX && !is_full(proxy)) {
		room = proxy->max_pending - proxy->nr_pending;
		n = accept_same_user(event->fd, &proxy->peer_uid, fds,
				     room < PEER_UID_BATCH ? room : PEER_UID_BATCH);
		if (n == -EAGAIN)
			return;
		if (n == -EMFILE || n == -ENFILE || n == -ENOBUFS || n == -ENOMEM)
			break;
		for (i = 0; i < n; i++)
			if (fds[i] >= 0)
				add_client(proxy, fds[i]);
		accepted += n > 0 ? n : 1;
	}
	if (accepted < ACCEPT_MAX) {
		close_pending(proxy, HANDSHAKE_BUSY_MS);
		pause_accepting(proxy);
	}
}

/* ---- open and close ---- */

/* At most a quarter of the descriptors: ranks and the tasks' streams need the others. */
static unsigned int max_pending(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 4 > PENDING_MAX)
		return PENDING_MAX;
	return limit.rlim_cur / 4 + 1;
}

static int timer_open(struct proxy_timer *timer)
{
	timer->event.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return timer->event.fd < 0 ? -errno : 0;
}

void pmix_proxy_init(struct pmix_proxy *proxy)
{
	*proxy = (struct pmix_proxy){ .max_pending = max_pending() };
	proxy->event = (struct event){ .fd = -1, .ready = listener_ready };
	proxy->accept_timer.event = (struct event){ .fd = -1, .ready = accept_timer_ready };
	proxy->handshake_timer.event = (struct event){ .fd = -1, .ready = handshake_timer_ready };
	proxy->accept_timer.proxy = proxy->handshake_timer.proxy = proxy;
	proxy->peer_uid.netlink = -1;
}

int pmix_proxy_open(struct pmix_proxy *proxy, struct loop *loop, const struct handshake *expected,
		    int (*start)(void *arg), void *arg)
{
	int err;

	pmix_proxy_init(proxy);
	proxy->loop = loop;
	proxy->expected = *expected;
	proxy->start = start;
	proxy->arg = arg;
	proxy->event.fd = listen_loopback(&proxy->port);
	if (proxy->event.fd < 0)
		return proxy->event.fd;
	err = peer_uid_open(&proxy->peer_uid, proxy->event.fd);
	if (!err)
		err = timer_open(&proxy->accept_timer);
	return err ? err : timer_open(&proxy->handshake_timer);
}

int pmix_proxy_serve(struct pmix_proxy *proxy)
{
	int err = loop_watch(proxy->loop, &proxy->accept_timer.event, EPOLLIN);

	if (!err)
		err = loop_watch(proxy->loop, &proxy->handshake_timer.event, EPOLLIN);
	return err ? err : loop_watch(proxy->loop, &proxy->event, EPOLLIN);
}

static void close_event(struct pmix_proxy *proxy, struct event *event)
{
	loop_forget(proxy->loop, event);
	if (event->fd >= 0)
		close(event->fd);
	event->fd = -1;
}

void pmix_proxy_close(struct pmix_proxy *proxy)
{
	struct proxy_conn *conn;

	close_event(proxy, &proxy->event);
	close_event(proxy, &proxy->accept_timer.event);
	close_event(proxy, &proxy->handshake_timer.event);
	peer_uid_close(&proxy->peer_uid);
	while ((conn = proxy->conns)) {
		proxy->conns = conn->next;
		conn_close(conn);
		free(conn);
	}
	proxy->free = NULL;
}
