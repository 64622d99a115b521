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
#include "listen.h"
#include "pmix_conn.h"

/* Connections to accept before other events are handled: signals, children, timeouts */
#define ACCEPT_MAX 128
#define ACCEPT_RETRY_MS 100
/* A rank sends its handshake as soon as it has connected. */
#define HANDSHAKE_MS 10000
#define HANDSHAKE_BUSY_MS 100	/* if another client needs the place */
#define PENDING_MAX 256

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
		proxy_conn_close(proxy->pending_first);
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

/* @first: the handshake, which the server must be able to read at once */
static int conn_forward(struct proxy_conn *conn, const char *first, size_t len)
{
	struct pmix_proxy *proxy = conn->proxy;

	proxy_conn_waited(conn);
	loop_forget(proxy->loop, &conn->client.event);
	if (proxy->server == SERVER_NOT_STARTED)
		proxy->server = proxy->start(proxy->arg) ? SERVER_FAILED : SERVER_STARTED;
	if (proxy->server == SERVER_FAILED || !proxy_conn_has_room(conn, len))
		return -ENOENT;
	conn->server.event.fd = connect_server(proxy, first, len);
	if (conn->server.event.fd < 0)
		return conn->server.event.fd;
	return proxy_conn_begin(conn);
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
		proxy_conn_close(conn);
}

/* EPOLLET: the bytes that were only peeked at must not wake the loop again. */
static int wait_for_handshake(struct proxy_conn *conn)
{
	struct pmix_proxy *proxy = conn->proxy;

	if (!proxy->nr_pending)
		set_timer(&proxy->handshake_timer, HANDSHAKE_MS);
	proxy_conn_wait(conn);
	return loop_watch(proxy->loop, &conn->client.event, EPOLLIN | EPOLLRDHUP | EPOLLET);
}

static void add_client(struct pmix_proxy *proxy, int fd)
{
	struct proxy_conn *conn = proxy_conn_alloc(proxy);

	if (!conn) {
		close(fd);
		return;
	}
	conn->client.conn = conn->server.conn = conn;
	conn->client.event = (struct event){ .fd = fd, .ready = handshake_ready };
	conn->server.event = (struct event){ .fd = -1 };
	/* most have sent their handshake by now */
	if (check_handshake(conn) || (!conn->client.event.watched && wait_for_handshake(conn)))
		proxy_conn_close(conn);
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
		proxy_conn_leave_open(conn);
		proxy_conn_close(conn);
		free(conn);
	}
	proxy->free = NULL;
}
