// SPDX-License-Identifier: LGPL-2.1-or-later
/* The store HOST:PORT: pages in the memory of another node, kept there by pvas-memd */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "host.h"

static struct host *of(struct far_store *store)
{
	return (struct host *)store;
}

static int fail(const struct host *host, int err)
{
	return far_fail(err, "server %s: %s", host->name, host->err ? host->why : strerror(-err));
}

static void init_lock(struct host *host)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&host->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&host->changed, &attr);
	pthread_condattr_destroy(&attr);
}

static void init_queues(struct host *host)
{
	unsigned int i;

	host->queue_end = &host->queue;
	for (i = 0; i < FAR_SLOTS; i++) {
		host->slots[i].host = host;
		host->free_slots[i] = FAR_SLOTS - 1 - i;
	}
	host->free_count = FAR_SLOTS;
}

static struct host *make(const struct far_store_config *config)
{
	struct host *host = calloc(1, sizeof(*host));

	if (!host)
		return NULL;
	snprintf(host->name, sizeof(host->name), "%s", config->spec);
	host->store.ops = &far_store_ucx;
	host->store.page_size = config->page_size;
	host->store.pages = config->pages;
	host->hello.op = FAR_OP_HELLO;
	host->hello.magic = FAR_WIRE_MAGIC;
	host->hello.version = FAR_WIRE_VERSION;
	host->hello.page_size = config->page_size;
	host->hello.pages = config->pages;
	init_lock(host);
	init_queues(host);
	return host;
}

static void destroy(struct host *host)
{
	if (!host->err)
		host_break(host, -ESHUTDOWN, "closed");
	host_disconnect(host);
	pthread_cond_destroy(&host->changed);
	pthread_mutex_destroy(&host->lock);
	free(host);
}

static int open_host(const struct far_store_config *config, struct far_store **store)
{
	struct host *host;
	int err;

	if (strlen(config->spec) >= sizeof(host->name))
		return far_fail(-EINVAL, "server %.40s...: the name is too long", config->spec);
	host = make(config);
	if (!host)
		return far_fail(-ENOMEM, "server %s: %s", config->spec, strerror(ENOMEM));
	pthread_mutex_lock(&host->lock);
	err = host_connect(host, config->key);
	pthread_mutex_unlock(&host->lock);
	if (err) {
		fail(host, err);
		destroy(host);
		return err;
	}
	*store = &host->store;
	return 0;
}

static int run(struct far_store *store, enum far_op kind, uint64_t first, uint64_t count, void *buf)
{
	struct host *host = of(store);
	struct host_op op = { .kind = kind, .first = first, .count = count, .buf = buf };

	if (!count)
		return 0;
	pthread_mutex_lock(&host->lock);
	host_start(host, &op);
	while (!op.done)
		host_drive(host, INFINITY);
	if (op.err)
		fail(host, op.err);
	pthread_mutex_unlock(&host->lock);
	return op.err;
}

static int put(struct far_store *store, uint64_t first, uint64_t count, const void *buf)
{
	return run(store, FAR_OP_PUT, first, count, (void *)buf);
}

static int get(struct far_store *store, uint64_t first, uint64_t count, void *buf)
{
	return run(store, FAR_OP_GET, first, count, buf);
}

/* If the connection is lost, so are the pages. */
static void discard(struct far_store *store, uint64_t first, uint64_t count)
{
	run(store, FAR_OP_DISCARD, first, count, NULL);
}

static void counters(struct far_store *store, struct far_store_counters *result)
{
	struct host *host = of(store);

	pthread_mutex_lock(&host->lock);
	*result = host->counters;
	pthread_mutex_unlock(&host->lock);
}

static void close_host(struct far_store *store)
{
	destroy(of(store));
}

static void abandon(struct far_store *store)
{
	struct host *host = of(store);

	pthread_mutex_lock(&host->lock);
	host_break(host, -ESHUTDOWN, "the job has ended");
	host_wake(host);
	pthread_cond_broadcast(&host->changed);
	pthread_mutex_unlock(&host->lock);
}

static int together(struct far_store *store, const struct far_io *ios, unsigned int count)
{
	struct host_op *ops = calloc(count, sizeof(*ops));
	struct host *host = of(store);
	unsigned int i;
	int err = 0;

	if (!ops)
		return far_fail(-ENOMEM, "server %s: %s", host->name, strerror(ENOMEM));
	pthread_mutex_lock(&host->lock);
	for (i = 0; i < count; i++) {
		ops[i].kind = ios[i].put ? FAR_OP_PUT : FAR_OP_GET;
		ops[i].first = ios[i].first;
		ops[i].count = ios[i].count;
		ops[i].buf = ios[i].buf;
		ops[i].done = !ios[i].count;
		if (ios[i].count)
			host_start(host, &ops[i]);
	}
	for (i = 0; i < count; i++) {
		while (!ops[i].done)
			host_drive(host, INFINITY);
		err = err ? err : ops[i].err;
	}
	if (err)
		fail(host, err);
	pthread_mutex_unlock(&host->lock);
	free(ops);
	return err;
}

const struct far_store_ops far_store_ucx = {
	.scheme = "host",
	.open = open_host,
	.put = put,
	.get = get,
	.discard = discard,
	.counters = counters,
	.close = close_host,
	.abandon = abandon,
	.together = together,
};
