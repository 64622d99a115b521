// SPDX-License-Identifier: LGPL-2.1-or-later
/* Several stores as one: see stripe.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "stripe.h"

/* Where copy @copy of a page is: the store; *@row receives the place in it. */
static unsigned int place_of(const struct far_stripe *s, uint64_t page, unsigned int copy,
			     uint64_t *row)
{
	*row = page / s->count + copy * s->rows;
	return (unsigned int)((page + copy) % s->count);
}

static bool has_failed(const struct far_stripe *s, unsigned int n)
{
	return __atomic_load_n(&s->failed[n], __ATOMIC_ACQUIRE);
}

/* A store doesn't work. With copies it is used no more, and the user is told once. */
static int drop(struct far_stripe *s, unsigned int n, int err)
{
	if (s->copies < 2 || __atomic_load_n(&s->abandoned, __ATOMIC_ACQUIRE))
		return err;
	if (!__atomic_exchange_n(&s->failed[n], true, __ATOMIC_ACQ_REL))
		/* Not stdio: a thread that waits for a page may hold its lock. */
		dprintf(STDERR_FILENO, "pvas-far: %s: used no more, its pages have second copies\n", far_error());
	return 0;
}

static int lost(const struct far_stripe *s, uint64_t page)
{
	return far_fail(-EIO, "page %llu: all its stores have failed, %s first",
			(unsigned long long)page, s->name[page % s->count]);
}

/* The pages of several operations that are in one store: @of: the how manieth each is of all */
struct share {
	struct far_io io[FAR_TOGETHER];
	uint8_t of[FAR_TOGETHER];
	unsigned int count;
};

#define NO_ROW UINT64_MAX

/* Where a page is got from: the first copy whose store works; s->count: none */
static unsigned int source_of(const struct far_stripe *s, uint64_t page, uint64_t *row)
{
	unsigned int copy, n;

	*row = NO_ROW;
	for (copy = 0; copy < s->copies; copy++) {
		n = place_of(s, page, copy, row);
		if (!has_failed(s, n))
			return n;
	}
	return s->count;
}

/* Where @store has the page, or puts it; NO_ROW: others do that */
static uint64_t row_in(const struct far_stripe *s, unsigned int store, int put, uint64_t page)
{
	unsigned int copy;
	uint64_t row;

	if (!put)
		return source_of(s, page, &row) == store ? row : NO_ROW;
	for (copy = 0; copy < s->copies; copy++)
		if (place_of(s, page, copy, &row) == store)
			return row;
	return NO_ROW;
}

/* Those pages that @store has, or shall have, and that are still to be got */
static void collect(const struct far_stripe *s, unsigned int store, const struct far_io *ios,
		    unsigned int count, const bool *done, struct share *share)
{
	unsigned int i, nr = 0;
	uint64_t page, row;

	for (share->count = i = 0; i < count; i++) {
		for (page = 0; page < ios[i].count; page++, nr++) {
			row = row_in(s, store, ios[i].put, ios[i].first + page);
			if (row == NO_ROW || (done[nr] && !ios[i].put))
				continue;
			share->io[share->count] = (struct far_io){
				ios[i].put, row, 1, (char *)ios[i].buf + page * s->page_size,
			};
			share->of[share->count++] = (uint8_t)nr;
		}
	}
}

/* With each store that works, what it has to do with the pages; @done: those that one has done */
static int try_each(struct far_stripe *s, const struct far_io *ios, unsigned int count, bool *done)
{
	struct share share;
	unsigned int n, i;
	int err;

	for (n = 0; n < s->count; n++) {
		if (has_failed(s, n))
			continue;
		collect(s, n, ios, count, done, &share);
		if (!share.count)
			continue;
		err = far_store_together(s->store[n], share.io, share.count);
		if (err && drop(s, n, err))
			return err;
		for (i = 0; i < share.count && !err; i++)
			done[share.of[i]] = true;
	}
	return 0;
}

/* The first page that no store has done; NULL: there is none */
static const struct far_io *find_left(const struct far_io *ios, unsigned int count,
				      const bool *done, uint64_t *page)
{
	unsigned int i, nr = 0;

	for (i = 0; i < count; i++)
		for (*page = 0; *page < ios[i].count; ++*page)
			if (!done[nr++])
				return &ios[i];
	return NULL;
}

/* Once more for each store that fails meanwhile: its pages are got from others. */
static int do_split(struct far_stripe *s, const struct far_io *ios, unsigned int count)
{
	bool done[FAR_TOGETHER] = { false };
	const struct far_io *left;
	uint64_t page, row;
	int err;

	do {
		err = try_each(s, ios, count, done);
		left = find_left(ios, count, done, &page);
	} while (!err && left && source_of(s, left->first + page, &row) != s->count);
	return err || !left ? err : lost(s, left->first + page);
}

int far_stripe_together(struct far_stripe *s, const struct far_io *ios, unsigned int count)
{
	if (s->count == 1)
		return far_store_together(s->store[0], ios, count);
	return do_split(s, ios, count);
}

static int do_one(struct far_stripe *s, int put, uint64_t first, uint64_t count, void *buf)
{
	struct far_io io = { .put = put, .first = first, .buf = buf };
	int err = 0;

	for (; count && !err; count -= io.count) {
		io.count = s->count == 1 || count < FAR_TOGETHER ? count : FAR_TOGETHER;
		err = far_stripe_together(s, &io, 1);
		io.first += io.count;
		io.buf = (char *)io.buf + io.count * s->page_size;
	}
	return err;
}

int far_stripe_put(struct far_stripe *s, uint64_t first, uint64_t count, const void *buf)
{
	return do_one(s, 1, first, count, (void *)(uintptr_t)buf);
}

int far_stripe_get(struct far_stripe *s, uint64_t first, uint64_t count, void *buf)
{
	return do_one(s, 0, first, count, buf);
}

/* Of pages in a row, those in one store are a row there. */
static void discard_copy(struct far_stripe *s, uint64_t first, uint64_t count, unsigned int copy)
{
	uint64_t i, row;
	unsigned int n;

	for (i = 0; i < count && i < s->count; i++) {
		n = place_of(s, first + i, copy, &row);
		if (!has_failed(s, n))
			s->store[n]->ops->discard(s->store[n], row, (count - i - 1) / s->count + 1);
	}
}

void far_stripe_discard(struct far_stripe *s, uint64_t first, uint64_t count)
{
	unsigned int copy;

	for (copy = 0; copy < s->copies; copy++)
		discard_copy(s, first, count, copy);
}

void far_stripe_abandon(struct far_stripe *s)
{
	unsigned int n;

	__atomic_store_n(&s->abandoned, true, __ATOMIC_RELEASE);
	for (n = 0; n < s->count; n++)
		if (s->store[n]->ops->abandon)
			s->store[n]->ops->abandon(s->store[n]);
}

uint64_t far_stripe_held(struct far_stripe *s)
{
	struct far_store_counters c;
	uint64_t held = 0;
	unsigned int n;

	for (n = 0; n < s->count; n++) {
		s->store[n]->ops->counters(s->store[n], &c);
		held += c.held_bytes;
	}
	return held;
}

void far_stripe_close(struct far_stripe *s)
{
	while (s->count) {
		s->count--;
		s->store[s->count]->ops->close(s->store[s->count]);
		free(s->name[s->count]);
	}
}

/* The names between the commas; -1: none, or too many */
static int split(struct far_stripe *s, const char *specs, unsigned int *count)
{
	size_t len;

	for (*count = 0; ; specs += len + 1) {
		len = strcspn(specs, ",");
		if (!len || *count == PVAS_FAR_STORES_MAX)
			return far_fail(-EINVAL, "stores: an empty name, or more than %d",
					PVAS_FAR_STORES_MAX);
		s->name[*count] = strndup(specs, len);
		if (!s->name[*count])
			return far_fail(-ENOMEM, "no memory");
		++*count;
		if (!specs[len])
			return 0;
	}
}

static int open_each(struct far_stripe *s, unsigned int count, uint64_t pages, const uint8_t *key)
{
	struct far_store_config config = { .page_size = s->page_size, .key = key };
	int err = 0;

	s->rows = (pages + count - 1) / count;
	config.pages = s->rows * s->copies;
	for (s->count = 0; s->count < count; s->count++) {
		config.spec = s->name[s->count];
		err = far_store_open(&config, &s->store[s->count]);
		if (err)
			break;
	}
	return err;
}

int far_stripe_open(struct far_stripe *s, const char *specs, unsigned int copies,
		    size_t page_size, uint64_t pages)
{
	unsigned int count, opened, n;
	uint8_t key[FAR_KEY_BYTES];
	int err;

	memset(s, 0, sizeof(*s));
	s->page_size = page_size;
	s->copies = copies;
	err = split(s, specs, &count);
	if (!err && copies > count)
		err = far_fail(-EINVAL, "%u copies need as many stores, not %u", copies, count);
	if (!err && getrandom(key, sizeof(key), 0) != sizeof(key))
		err = far_fail(-errno, "getrandom: %s", strerror(errno));
	if (!err)
		err = open_each(s, count, pages, key);
	explicit_bzero(key, sizeof(key));
	if (!err)
		return 0;
	opened = s->count;
	far_stripe_close(s);
	for (n = opened; n < PVAS_FAR_STORES_MAX; n++)
		free(s->name[n]);
	return err;
}
