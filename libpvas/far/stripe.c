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

/* A run goes into one store as a whole if there is but one. */
static int put_all(struct far_stripe *s, uint64_t first, uint64_t count, const void *buf)
{
	return s->store[0]->ops->put(s->store[0], first, count, buf);
}

static int put_one(struct far_stripe *s, uint64_t page, const void *buf)
{
	unsigned int copy, n, done = 0;
	uint64_t row;
	int err;

	for (copy = 0; copy < s->copies; copy++) {
		n = place_of(s, page, copy, &row);
		if (has_failed(s, n))
			continue;
		err = s->store[n]->ops->put(s->store[n], row, 1, buf);
		if (!err)
			done++;
		else if (drop(s, n, err))
			return err;
	}
	return done ? 0 : lost(s, page);
}

int far_stripe_put(struct far_stripe *s, uint64_t first, uint64_t count, const void *buf)
{
	uint64_t i;
	int err = 0;

	if (s->count == 1)
		return put_all(s, first, count, buf);
	for (i = 0; i < count && !err; i++)
		err = put_one(s, first + i, (const char *)buf + i * s->page_size);
	return err;
}

static int get_one(struct far_stripe *s, uint64_t page, void *buf)
{
	unsigned int copy, n;
	uint64_t row;
	int err;

	for (copy = 0; copy < s->copies; copy++) {
		n = place_of(s, page, copy, &row);
		if (has_failed(s, n))
			continue;
		err = s->store[n]->ops->get(s->store[n], row, 1, buf);
		if (!err)
			return 0;
		if (drop(s, n, err))
			return err;
	}
	return lost(s, page);
}

int far_stripe_get(struct far_stripe *s, uint64_t first, uint64_t count, void *buf)
{
	uint64_t i;
	int err = 0;

	if (s->count == 1)
		return s->store[0]->ops->get(s->store[0], first, count, buf);
	for (i = 0; i < count && !err; i++)
		err = get_one(s, first + i, (char *)buf + i * s->page_size);
	return err;
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
