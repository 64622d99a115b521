/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stores: where far pages are while they are not in memory. Internal to libpvasfar.
 *
 * A store is an array of @pages pages of @page_size bytes. The pager puts pages there and
 * gets them back; it alone knows which pages hold data. Rules between the two:
 *
 *  - the pager never gets a page that it has not put since the store was opened or the
 *    page discarded, so a store need not know what an empty page looks like;
 *  - operations on different pages may run at the same time, in any threads; the pager
 *    never has two operations on one page under way;
 *  - a page that was put may be put again: the new contents replace the old;
 *  - if a put fails, the page's contents in the store are undefined; the pager still has
 *    the page in memory and keeps it;
 *  - buffers begin at a multiple of 4096 bytes, and page_size is a power of two, at
 *    least 4096;
 *  - functions return 0 or a negative errno value, and leave a line of text for the user
 *    by far_fail();
 *  - a store starts threads only with all signals blocked, prints nothing, and its files
 *    are close-on-exec.
 */
#ifndef PVAS_FAR_STORE_H
#define PVAS_FAR_STORE_H

#include <stddef.h>
#include <stdint.h>

/* A job's secret, random. A server gives pages only to those who know it. */
#define FAR_KEY_BYTES 32

/**
 * struct far_store_config - a store to be opened
 * @spec:	the user's text after "scheme:", as "127.0.0.1:7700" or "/scratch/far"
 * @page_size:	bytes in a page
 * @pages:	pages it must have room for
 * @key:	FAR_KEY_BYTES bytes, the same for all stores of a job; never written to disk
 */
struct far_store_config {
	const char *spec;
	size_t page_size;
	uint64_t pages;
	const uint8_t *key;
};

/** struct far_store - an open store; an implementation embeds it as its first member */
struct far_store {
	const struct far_store_ops *ops;
	size_t page_size;
	uint64_t pages;
};

/**
 * struct far_io - one of several operations at once: a run of pages
 * @put:	1: put; 0: get
 * @first:	the first page
 * @count:	pages
 * @buf:	count * page_size bytes
 */
struct far_io {
	int put;
	uint64_t first;
	uint64_t count;
	void *buf;
};

/**
 * struct far_store_counters - see counters()
 * @put_bytes:	bytes of pages put so far
 * @get_bytes:	bytes of pages got so far
 * @held_bytes:	bytes that the store uses now: compressed, on disk or on a server
 */
struct far_store_counters {
	uint64_t put_bytes;
	uint64_t get_bytes;
	uint64_t held_bytes;
};

/**
 * struct far_store_ops - an implementation
 * @scheme:	its name before the colon
 * @open:	open a store; on success *@store has the members of struct far_store set. Checks
 *		all that can be checked: room for config->pages, rights, server's version
 * @put:	store a run of pages; returns when @buf may be changed and a later get sees it
 * @get:	fetch a run of pages into @buf
 * @discard:	forget a run of pages; their room can be used for others. Can't fail
 * @counters:	may be called at any time, in any thread
 * @close:	forget all pages, free the store. No operation is under way
 * @abandon:	no page is needed any more: operations under way, and later ones, fail at once.
 *		NULL: they can't be ended. The store is never closed then
 * @together:	@count operations, as many at a time as the store can have under way. Returns when
 *		none is under way: 0, or the error of one, and then others may not be done.
 *		NULL: far_store_together() does one after another
 */
struct far_store_ops {
	const char *scheme;
	int (*open)(const struct far_store_config *config, struct far_store **store);
	int (*put)(struct far_store *store, uint64_t first, uint64_t count, const void *buf);
	int (*get)(struct far_store *store, uint64_t first, uint64_t count, void *buf);
	void (*discard)(struct far_store *store, uint64_t first, uint64_t count);
	void (*counters)(struct far_store *store, struct far_store_counters *counters);
	void (*close)(struct far_store *store);
	void (*abandon)(struct far_store *store);
	int (*together)(struct far_store *store, const struct far_io *ios, unsigned int count);
};

/* The implementations: store_file.c, store_zip.c, and, in a build with UCX, store_host.c. */
extern const struct far_store_ops far_store_file;
extern const struct far_store_ops far_store_zip;
#ifdef FAR_WITH_UCX
extern const struct far_store_ops far_store_host;
#endif

/**
 * far_store_open - open the store that the user named
 * @config:	as for open(), but with the scheme: @spec is "file:/scratch/far", "zip",
 *		"127.0.0.1:7700" (no known scheme: a server)
 * @store:	receives it
 *
 * Return: 0, -EINVAL (no such store), or the implementation's error.
 */
int far_store_open(const struct far_store_config *config, struct far_store **store);

/** far_store_together - see @together; any store has it */
int far_store_together(struct far_store *store, const struct far_io *ios, unsigned int count);

/**
 * far_fail - keep a line of text that explains an error, in this thread
 * @err:	a negative errno value
 * @format:	of printf, without a newline; names the store ("server node7:7700: ...")
 *
 * Return: @err.
 */
int far_fail(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** far_error - the text of this thread's last far_fail(); "" if there is none */
const char *far_error(void);

#endif
