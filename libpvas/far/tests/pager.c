// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The pager with each kind of store, page and kernel: contents are those last written, by
 * any number of threads, and never more is resident than the budget.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "far_test.h"

FIXTURE(pager)
{
	size_t ram;
	size_t size;
	volatile uint64_t *p;
};

FIXTURE_VARIANT(pager)
{
	struct how how;
	size_t ram;
};

FIXTURE_VARIANT_ADD(pager, zip_4k) { { "zip", 4096 }, MIB };
FIXTURE_VARIANT_ADD(pager, zip_4k_no_move) { { "zip", 4096, .no_move = true }, MIB };
FIXTURE_VARIANT_ADD(pager, zip_64k) { { "zip", 65536, .kernel_faults = true }, 8 * MIB };
FIXTURE_VARIANT_ADD(pager, file_64k) { { "file:/var/tmp", 65536 }, 8 * MIB };
FIXTURE_VARIANT_ADD(pager, file_64k_no_move) {
	{ "file:/var/tmp", 65536, .no_move = true }, 8 * MIB
};
FIXTURE_VARIANT_ADD(pager, file_1m) { { "file:/var/tmp", 1 << 20 }, 40 * MIB };
FIXTURE_VARIANT_ADD(pager, smallest) { { "zip", 65536 }, PVAS_FAR_RAM_MIN_PAGES * 65536 };
FIXTURE_VARIANT_ADD(pager, smallest_no_move) { { "zip", 65536, .no_move = true },
					       PVAS_FAR_RAM_MIN_PAGES * 65536 };
FIXTURE_VARIANT_ADD(pager, striped) { { "zip,file:/var/tmp,zip", 65536 }, 4 * MIB };
FIXTURE_VARIANT_ADD(pager, copies) { { "zip,zip,zip", 65536, .copies = 2 }, 4 * MIB };
FIXTURE_VARIANT_ADD(pager, adapt) { { "zip", PVAS_FAR_PAGE_AUTO }, 8 * MIB };
FIXTURE_VARIANT_ADD(pager, adapt_no_move) {
	{ "file:/var/tmp", PVAS_FAR_PAGE_AUTO, .no_move = true }, 8 * MIB
};

/* The DLM paper's protocols */
FIXTURE_VARIANT_ADD(pager, r3) { { "zip", 4096, .protocol = "r3" }, MIB };
FIXTURE_VARIANT_ADD(pager, r58) { { "zip", 4096, .protocol = "r58" }, MIB };
FIXTURE_VARIANT_ADD(pager, r77) { { "zip", 4096, .protocol = "r77" }, MIB };
FIXTURE_VARIANT_ADD(pager, r77_no_move) {
	{ "zip", 65536, .no_move = true, .protocol = "r77" }, 8 * MIB
};
FIXTURE_VARIANT_ADD(pager, r77_file_1m) {
	{ "file:/var/tmp", 1 << 20, .protocol = "r77" }, 40 * MIB
};
FIXTURE_VARIANT_ADD(pager, r58_striped_smallest) {
	{ "zip,file:/var/tmp,zip", 65536, .protocol = "r58" }, PVAS_FAR_RAM_MIN_PAGES * 65536
};
FIXTURE_VARIANT_ADD(pager, r77_copies) {
	{ "zip,zip,zip", 65536, .copies = 2, .protocol = "r77" }, 4 * MIB
};

FIXTURE_SETUP(pager)
{
	self->ram = variant->ram;
	self->size = 4 * variant->ram;
	ASSERT_EQ(0, open_far(&variant->how, self->ram, self->size));
	ASSERT_EQ(0, pvas_far_alloc((void **)&self->p, self->size));
}

FIXTURE_TEARDOWN(pager)
{
	EXPECT_EQ(0, pvas_far_close());
}

TEST_F(pager, sweep)
{
	size_t i, n = self->size / sizeof(*self->p), wrong = 0;
	int round;

	for (i = 0; i < n; i++)
		wrong += self->p[i] != 0;
	for (round = 1; round <= 2; round++) {
		for (i = 0; i < n; i++)
			self->p[i] = i * (size_t)round;
		for (i = 0; i < n; i++)
			wrong += self->p[i] != i * (size_t)round;
	}
	EXPECT_EQ(0, wrong);
}

/* ---- 16 threads store to the same pages, each to words of its own ---- */

enum { THREADS = 16 };

struct writer {
	volatile uint64_t *p;
	size_t pages, page_words;
	unsigned int number;
	unsigned int ops;
	unsigned int wrong;
};

static void *write_at_random(void *arg)
{
	struct writer *w = arg;
	uint32_t *count = calloc(w->pages, sizeof(*count));
	uint64_t seed = 88172645463325252ULL + w->number;
	volatile uint64_t *word;
	unsigned int op;
	size_t page;

	for (op = 0; op < w->ops; op++) {
		page = next_random(&seed) % w->pages;
		word = w->p + page * w->page_words + w->number;
		/* A load brings the page in write-protected; the store must fault again. */
		if (next_random(&seed) % 2)
			w->wrong += *word != count[page];
		*word = ++count[page];
	}
	for (page = 0; page < w->pages; page++)
		w->wrong += w->p[page * w->page_words + w->number] != count[page];
	free(count);
	return NULL;
}

static unsigned int times(const char *name)
{
	const char *value = getenv(name);
	int n = value ? atoi(value) : 1;

	return n > 1 ? (unsigned int)n : 1;
}

TEST_F(pager, no_store_is_lost)
{
	size_t page = counters().page;
	/*
	 * Large pages cost time, not only faults, and so do the paper's protocols, which exchange
	 * one page after the other; SLOW is a machine's, how many times. MORE=10 does ten times as
	 * much.
	 */
	unsigned int most = variant->how.protocol ? 400 : page > 4096 ? 1000 : 3000;
	unsigned int i, ops = (page > 65536 ? 150 : most) * times("MORE") / times("SLOW");
	pthread_t thread[THREADS];
	struct writer w[THREADS];

	for (i = 0; i < THREADS; i++) {
		w[i] = (struct writer){ self->p, self->size / page, page / 8, i, ops };
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, write_at_random, &w[i]));
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		EXPECT_EQ(0, w[i].wrong);
	}
	EXPECT_LT(0, counters().fetched);
	/* Of the protocols, all pages count as written. */
	EXPECT_EQ(!variant->how.protocol, counters().write_faults > 0);
}

/* ---- the budget ---- */

struct watch {
	bool stop;
	size_t most;
	unsigned int looks;
};

static void *watch_resident(void *arg)
{
	struct timespec pause = { .tv_nsec = 10000000 };
	struct watch *w = arg;
	size_t now;

	while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE)) {
		now = resident();
		w->most = now > w->most ? now : w->most;
		w->looks++;
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* The program's own memory, and what zip has compressed, are not in the budget. */
TEST_F(pager, budget)
{
	size_t i, n = self->size / sizeof(*self->p), base = resident(), stored = 0;
	struct watch w = { false };
	struct pvas_far_counters c;
	pthread_t watcher;
	int round;

	ASSERT_EQ(0, pthread_create(&watcher, NULL, watch_resident, &w));
	for (round = 0; round < 3; round++)
		for (i = 0; i < n; i++)
			self->p[i] += i;
	__atomic_store_n(&w.stop, true, __ATOMIC_RELEASE);
	pthread_join(watcher, NULL);
	c = counters();
	EXPECT_LE(c.resident, self->ram);
	/* Integers in a row get about half as small; 2 MiB: the heaps' own loss. */
	if (strstr(variant->how.stores, "zip"))
		stored = c.stored + c.stored / 2 + 2 * MIB;
	EXPECT_LE(w.most, base + self->ram + self->ram / 20 + stored + MIB / 2);
	EXPECT_LT(3, w.looks);
}

/* ---- what is not transferred ---- */

TEST_F(pager, clean_pages_are_dropped)
{
	size_t page = counters().page, i, n = self->size / page, put, sum = 0;

	if (variant->how.protocol)
		SKIP(return, "the paper's protocols send all pages");
	for (i = 0; i < n; i++)
		self->p[i * page / 8] = i + 1;
	/* Once more, so that all are in the store */
	for (i = 0; i < n; i++)
		sum += self->p[i * page / 8];
	EXPECT_EQ(n * (n + 1) / 2, sum);
	put = counters().put;
	for (i = 0; i < 2 * n; i++)
		sum += self->p[i % n * page / 8];
	EXPECT_LE(counters().put, put + n / 4);
	EXPECT_LT(n, counters().dropped);
}

TEST_F(pager, zeros_are_not_put)
{
	size_t page = counters().page, i, n = self->size / page;

	for (i = 0; i < n; i++)
		self->p[i * page / 8] = 0;
	for (i = 0; i < n; i++)
		EXPECT_EQ(0, self->p[i * page / 8]);
	EXPECT_EQ(0, counters().put);
	EXPECT_LT(0, counters().zeros);
}

/* ---- the unit of transfer ---- */

/* In order, many pages come with each fault; at random, none but the one that is touched. */
TEST_F(pager, unit_of_transfer)
{
	size_t page = counters().page, i, n = self->size / page, wrong = 0;
	uint64_t seed = 88172645463325252ULL;
	struct pvas_far_counters c, before;

	if (variant->how.page != PVAS_FAR_PAGE_AUTO)
		SKIP(return, "it is one page");
	EXPECT_EQ(16384, page);
	for (i = 0; i < self->size / 8; i++)
		self->p[i] = i;
	before = counters();
	EXPECT_GT(n / 2, before.faults);
	for (i = 0; i < self->size / 8; i++)
		wrong += self->p[i]++ != i;
	c = counters();
	EXPECT_GT(n / 2, c.faults - before.faults);
	EXPECT_GT(n / 2, c.write_faults - before.write_faults);
	before = c;
	for (i = 0; i < 2 * n; i++)
		wrong += self->p[next_random(&seed) % n * page / 8] != seed % n * page / 8 + 1;
	c = counters();
	EXPECT_LT(n, c.faults - before.faults);
	EXPECT_GT((c.faults - before.faults) * 5 / 4, c.fetched - before.fetched);
	EXPECT_EQ(0, wrong);
}

/* ---- several streams in a budget with few slots ---- */

/* Read at so many places in turn, at each in order: what was fetched, as parts of all there is */
static double fetched_by_streams(unsigned int streams)
{
	struct how how = { "zip", 4096 };
	const size_t each = 128;
	volatile uint64_t *p;
	size_t i, pages = streams * each;
	unsigned int s;
	double before;

	if (open_far(&how, 40 * how.page, pages * how.page) ||
	    pvas_far_alloc((void **)&p, pages * how.page))
		return -1;
	for (i = 0; i < pages; i++)
		p[i * 512] = i + 1;
	before = (double)counters().fetched;
	for (i = 0; i < each; i++)
		for (s = 0; s < streams; s++)
			if (p[(s * each + i) * 512] != s * each + i + 1)
				return -1;
	before = ((double)counters().fetched - before) / (double)pages;
	return pvas_far_close() ? -1 : before;
}

/* Pages that were fetched ahead stay until they are used: few, or none, are fetched twice. */
TEST(streams_share_the_slots)
{
	unsigned int streams;
	double parts;

	for (streams = 2; streams <= 12; streams += 2) {
		parts = fetched_by_streams(streams);
		EXPECT_LT(0.5, parts);
		EXPECT_GT(streams <= 4 ? 1.1 : 1.5, parts);
	}
}

TEST_HARNESS_MAIN
