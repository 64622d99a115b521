/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A store on a memory server. Internal to store_ucx.c, host_connect.c, host_run.c, host_io.c.
 *
 * An operation is a run of pages; it goes to the server in pieces of at most FAR_PIECE_BYTES.
 * A slot is a piece under way. All that is below, and the worker, is protected by @lock. One
 * thread at a time is in UCX's progress, or sleeps until the worker has an event (@driven): the
 * others wait until it has finished their operations or leaves.
 */
#ifndef PVAS_FAR_HOST_H
#define PVAS_FAR_HOST_H

#include <pthread.h>
#include <stdbool.h>
#include "../store.h"
#include "ucx.h"
#include "wire.h"

/* Seconds: to connect, and without an answer until the server is taken for dead */
#define HOST_CONNECT_S	10
#define HOST_PATIENCE_S	60

/**
 * struct host_op - a put, get or discard
 * @sent, @left: pages that have been in a slot, that have not been answered
 * @next:	in a queue
 */
struct host_op {
	enum far_op kind;
	uint64_t first, count, sent, left;
	char *buf;
	int err;
	bool done;
	struct host_op *next;
};

/**
 * struct host_slot - a piece under way
 * @users:	what is still to happen: the message sent, the answer, its data received
 */
struct host_slot {
	struct host *host;
	struct host_op *op;
	char *buf;
	size_t bytes;
	uint32_t pages;
	int users;
	bool answered;
	struct far_request request;
};

extern const struct far_store_ops far_store_ucx;

struct host {
	struct far_store store;
	char name[256];
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_ep_h ep;
	int efd;
	struct far_spin spin;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool driven, asleep;
	/* The first error is the one that counts; then no operation is started any more. */
	int err;
	char why[200];
	double heard;		/* when the server last answered, or had nothing to */

	struct host_op *queue, **queue_end;
	struct host_slot slots[FAR_SLOTS];
	unsigned int free_slots[FAR_SLOTS], free_count;

	/* The handshake */
	struct far_hello hello;
	struct far_challenge challenge;
	struct far_proof proof;
	struct far_welcome welcome;
	enum far_op expected;

	struct far_store_counters counters;
};

/* host_connect.c */
int host_connect(struct host *host, const uint8_t *key);
void host_disconnect(struct host *host);
ucs_status_t host_handshake_reply(struct host *host, const void *header, size_t bytes);

/* host_run.c: with the lock held, which they release while they sleep */
void host_break(struct host *host, int err, const char *why);
void host_lost(struct host *host, ucs_status_t status);
void host_drive(struct host *host, double until);
void host_wake(struct host *host);

/* host_io.c: with the lock held */
void host_start(struct host *host, struct host_op *op);
void host_pump(struct host *host);
void host_abandon(struct host *host);
ucs_status_t host_receive(void *arg, const void *header, size_t header_bytes, void *data,
			  size_t bytes, const ucp_am_recv_param_t *param);

#endif
