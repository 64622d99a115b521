// SPDX-License-Identifier: GPL-2.0-only
/* The PMIx proxy's connections: bytes pass from each end to the other. */
#include "pmix_conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "heap.h"
#include "listen.h"

#define CHUNK (64 << 10)
/* How often the heap is looked at; a small message can cost the server a page. */
#define CHECK_BYTES (256 << 10)
#define MESSAGE_COST 4096

/* ---- the list of pending connections, oldest first ---- */

void proxy_conn_wait(struct proxy_conn *conn)
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

void proxy_conn_waited(struct proxy_conn *conn)
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
void proxy_conn_close(struct proxy_conn *conn)
{
	bool served = conn->server.event.fd >= 0;

	proxy_conn_waited(conn);
	end_close(&conn->client, served ? close_normally : close_with_reset);
	end_close(&conn->server, close_normally);
	conn->next_free = conn->proxy->free;
	conn->proxy->free = conn;
}

/* An event must stay in memory while its loop lives, so connections are used again. */
struct proxy_conn *proxy_conn_alloc(struct pmix_proxy *proxy)
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

bool proxy_conn_has_room(struct proxy_conn *conn, size_t len)
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
	if (n && from == &from->conn->client && !proxy_conn_has_room(from->conn, n))
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

/* The server's end of a connection whose rank is gone: nobody reads what it says. */
static void left_ready(struct event *event, uint32_t what)
{
	struct proxy_end *end = (struct proxy_end *)event;
	char rest[4096];
	ssize_t n = read(event->fd, rest, sizeof(rest));

	(void)what;
	if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
		proxy_conn_close(end->conn);
}

/*
 * The rank is gone. The server may still be answering its handshake, and up to libpmix 5.0 it
 * releases the rank's record once too often if that fails: it can go on, and ends the connection.
 */
static void leave_to_server(struct proxy_conn *conn)
{
	struct event *event = &conn->server.event;
	int err = shutdown(event->fd, SHUT_WR);

	end_close(&conn->client, close_normally);
	free(conn->server.unsent);
	conn->server.unsent = NULL;
	event->ready = left_ready;
	if (!err && event->watched)
		err = loop_change(conn->proxy->loop, event, EPOLLIN);
	else if (!err)
		err = loop_watch(conn->proxy->loop, event, EPOLLIN);
	if (err)
		proxy_conn_close(conn);
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
		leave_to_server(end->conn);
		return;
	}
	watch(end);
	watch(other_end(end));
}

static int end_forward(struct proxy_end *end)
{
	end->event.ready = end_ready;
	return loop_watch(end->conn->proxy->loop, &end->event, EPOLLIN);
}

int proxy_conn_begin(struct proxy_conn *conn)
{
	int err = end_forward(&conn->client);

	return err ? err : end_forward(&conn->server);
}

void proxy_conn_leave_open(struct proxy_conn *conn)
{
	if (conn->server.event.fd < 0)
		return;
	shutdown(conn->server.event.fd, SHUT_WR);
	loop_forget(conn->proxy->loop, &conn->server.event);
	conn->server.event.fd = -1;
}
