/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A proxy in front of the PMIx server. Ranks are started with the proxy's port in
 * their environment; the server itself is started when the first rank connects, so
 * a job without MPI has none. A client must send a valid handshake, with the job's
 * secret name, within a short time; before that none of its bytes reach the server.
 * After it, bytes are forwarded unchanged in both directions.
 *
 * The server keeps what ranks put and publish, events and log messages, in this process. If
 * that is more than the job may use, nothing more is forwarded to it.
 */
#ifndef PVASRUN_PMIX_PROXY_H
#define PVASRUN_PMIX_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event.h"
#include "handshake.h"
#include "peer_uid.h"
#include "pmix_versions.h"

struct proxy_conn;

/* One of a connection's two sockets */
struct proxy_end {
	struct event event;
	struct proxy_conn *conn;
	char *unsent;		/* bytes that the socket had no room for, or NULL */
	size_t len, done;
	bool ended;		/* closed by its process, but not all it said is sent */
};

struct proxy_conn {
	struct proxy_end client, server;
	struct proxy_conn *next;
	struct proxy_conn *next_free;
	struct pmix_proxy *proxy;
	unsigned int rank;
	bool pending;		/* its handshake is not complete */
	int64_t since;
	struct proxy_conn *pending_prev, *pending_next;
};

struct proxy_timer {
	struct event event;
	struct pmix_proxy *proxy;
};

struct pmix_proxy {
	struct event event;	/* the listening socket */
	struct loop *loop;
	struct peer_uid peer_uid;
	struct proxy_timer accept_timer;	/* resumes accepting after a lack of descriptors */
	struct proxy_timer handshake_timer;	/* for the oldest pending connection */
	struct handshake expected;
	struct pmix_versions versions;
	struct proxy_conn *pending_first, *pending_last;	/* in order of their age */
	unsigned int nr_pending, max_pending;
	struct proxy_conn *conns;	/* all that were ever allocated */
	struct proxy_conn *free;	/* those of them that are not in use */
	int port;
	enum { SERVER_NOT_STARTED, SERVER_STARTED, SERVER_FAILED } server;
	int (*start)(void *arg);	/* start the server: 0, or -1 */
	void *arg;
	size_t heap_max;	/* of this process; 0: no limit */
	void (*is_over)(void *arg, unsigned int rank);	/* that rank's message was one too many */
	void *is_over_arg;
	bool over;
	size_t unchecked;	/* bytes forwarded to the server since the last check */
};

/* For pmix_proxy_close() before pmix_proxy_open() */
void pmix_proxy_init(struct pmix_proxy *proxy);

int pmix_proxy_open(struct pmix_proxy *proxy, struct loop *loop, const struct handshake *expected,
		    int (*start)(void *arg), void *arg);

/* Begin to accept connections. */
int pmix_proxy_serve(struct pmix_proxy *proxy);
void pmix_proxy_close(struct pmix_proxy *proxy);

#endif
