// SPDX-License-Identifier: LGPL-2.1-or-later
/* The store zip: memory, each page compressed by LZ4, or as it is if that makes it no smaller. */
#include <errno.h>
#include <lz4.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "store.h"

/**
 * struct zip_page - one page
 * @data:	NULL: none
 * @size:	bytes of it; the page size: not compressed
 */
struct zip_page {
	void *data;
	uint32_t size;
};

/**
 * struct zip_store - all pages
 * @page:	a table; the pager never has two operations on one entry
 * @held:	bytes of all @data
 */
struct zip_store {
	struct far_store store;
	uint64_t held, put_bytes, get_bytes;
	struct zip_page *page;
};

static struct zip_store *to_zip(struct far_store *store)
{
	return (struct zip_store *)store;
}

/* A buffer to compress into, each thread's own, freed when it ends */
struct buffer {
	size_t size;
	char data[];
};

static pthread_key_t buffer_key;
static pthread_once_t buffer_once = PTHREAD_ONCE_INIT;

static void make_key(void)
{
	pthread_key_create(&buffer_key, free);
}

static char *buffer_of(size_t size)
{
	struct buffer *b = pthread_getspecific(buffer_key);

	if (b && b->size >= size)
		return b->data;
	free(b);
	b = malloc(sizeof(*b) + size);
	if (b)
		b->size = size;
	pthread_setspecific(buffer_key, b);
	return b ? b->data : NULL;
}

static int zip_open(const struct far_store_config *config, struct far_store **store)
{
	struct zip_store *z;

	if (*config->spec)
		return far_fail(-EINVAL, "zip:%s: zip has no arguments", config->spec);
	pthread_once(&buffer_once, make_key);
	z = calloc(1, sizeof(*z));
	if (!z)
		return far_fail(-ENOMEM, "no memory");
	z->store = (struct far_store){ &far_store_zip, config->page_size, config->pages };
	z->page = mmap(NULL, config->pages * sizeof(*z->page), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (z->page == MAP_FAILED) {
		free(z);
		return far_fail(-ENOMEM, "zip: no memory for a table");
	}
	*store = &z->store;
	return 0;
}

static void forget(struct zip_store *z, uint64_t n)
{
	/* A table of pages never put takes no memory, and is not to take any now. */
	if (!z->page[n].data)
		return;
	__atomic_fetch_sub(&z->held, z->page[n].size, __ATOMIC_RELAXED);
	free(z->page[n].data);
	z->page[n] = (struct zip_page){ NULL, 0 };
}

static int put_one(struct zip_store *z, uint64_t n, const char *from)
{
	int page = (int)z->store.page_size, size;
	char *buffer = buffer_of((size_t)page);
	void *data;

	/* The old contents first: their room may be the only one. */
	forget(z, n);
	size = buffer ? LZ4_compress_default(from, buffer, page, page - 1) : 0;
	if (size <= 0) {
		size = page;
		buffer = NULL;
	}
	data = malloc((size_t)size);
	if (!data)
		return far_fail(-ENOMEM, "zip: no memory for a page");
	memcpy(data, buffer ? buffer : from, (size_t)size);
	z->page[n] = (struct zip_page){ data, (uint32_t)size };
	__atomic_fetch_add(&z->held, (uint64_t)size, __ATOMIC_RELAXED);
	/* cppcheck-suppress memleak ; the store has it */
	return 0;
}

static int get_one(struct zip_store *z, uint64_t n, char *to)
{
	const struct zip_page *p = &z->page[n];
	int page = (int)z->store.page_size;

	if (p->size == (uint32_t)page)
		memcpy(to, p->data, (size_t)page);
	else if (LZ4_decompress_safe(p->data, to, (int)p->size, page) != page)
		return far_fail(-EIO, "zip: a page is damaged (by a stray store of the program?)");
	return 0;
}

static int zip_put(struct far_store *store, uint64_t first, uint64_t count, const void *buf)
{
	struct zip_store *z = to_zip(store);
	uint64_t i;
	int err = 0;

	for (i = 0; i < count && !err; i++)
		err = put_one(z, first + i, (const char *)buf + i * store->page_size);
	__atomic_fetch_add(&z->put_bytes, count * store->page_size, __ATOMIC_RELAXED);
	return err;
}

static int zip_get(struct far_store *store, uint64_t first, uint64_t count, void *buf)
{
	struct zip_store *z = to_zip(store);
	uint64_t i;
	int err = 0;

	for (i = 0; i < count && !err; i++)
		err = get_one(z, first + i, (char *)buf + i * store->page_size);
	__atomic_fetch_add(&z->get_bytes, count * store->page_size, __ATOMIC_RELAXED);
	return err;
}

static void zip_discard(struct far_store *store, uint64_t first, uint64_t count)
{
	uint64_t i;

	for (i = 0; i < count; i++)
		forget(to_zip(store), first + i);
}

static void zip_counters(struct far_store *store, struct far_store_counters *counters)
{
	struct zip_store *z = to_zip(store);

	counters->put_bytes = __atomic_load_n(&z->put_bytes, __ATOMIC_RELAXED);
	counters->get_bytes = __atomic_load_n(&z->get_bytes, __ATOMIC_RELAXED);
	counters->held_bytes = __atomic_load_n(&z->held, __ATOMIC_RELAXED);
}

static void zip_close(struct far_store *store)
{
	struct zip_store *z = to_zip(store);

	zip_discard(store, 0, store->pages);
	munmap(z->page, store->pages * sizeof(*z->page));
	free(z);
}

const struct far_store_ops far_store_zip = {
	.scheme = "zip",
	.open = zip_open,
	.put = zip_put,
	.get = zip_get,
	.discard = zip_discard,
	.counters = zip_counters,
	.close = zip_close,
};
