// SPDX-License-Identifier: GPL-2.0-only
/*
 * A store on a server, for scripts.
 *
 * usage: t_store HOST:PORT KEYFILE PAGE_SIZE PAGES STEP...
 *
 *	put:FIRST:COUNT:SEED	put pages with contents made from the seed
 *	get:FIRST:COUNT:SEED	get them; other contents are an error
 *	zero:FIRST:COUNT	get pages that are all zero
 *	discard:FIRST:COUNT
 *	churn:SECONDS		put and get pages at once until then; the longest
 *				time without an answer is printed
 *	say:WORD		print it
 *	wait			for a line on standard input
 *
 * An error is printed, and ends it with status 1; wrong contents: with 2.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "key.h"
#include "host.h"
#include "ucx.h"

#define BATCH	16

static struct far_store *store;
static uint64_t *buf;

static uint64_t word(uint64_t seed, uint64_t i)
{
	uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15ull + i;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	return x ^ x >> 27;
}

/* Each page has the seed's and its own number. */
static void fill(uint64_t *to, uint64_t first, uint64_t count, uint64_t seed)
{
	uint64_t words = store->page_size / 8, i;

	for (i = 0; i < count * words; i++)
		to[i] = word(seed, first * words + i);
}

static int compare(const uint64_t *from, uint64_t first, uint64_t count, uint64_t seed)
{
	uint64_t words = store->page_size / 8, i;

	for (i = 0; i < count * words; i++)
		if (from[i] != word(seed, first * words + i)) {
			printf("wrong contents in page %llu\n", (unsigned long long)(first + i / words));
			return 2;
		}
	return 0;
}

static int find_nonzero(uint64_t count)
{
	uint64_t i;

	for (i = 0; i < count * store->page_size / 8; i++)
		if (buf[i]) {
			printf("not zero: word %llu\n", (unsigned long long)i);
			return 2;
		}
	return 0;
}

static int failed(void)
{
	printf("%s\n", far_error());
	return 1;
}

/* Puts a batch of runs with the round's seed, then gets them again. */
static int churn_round(uint64_t round, double *longest)
{
	uint64_t count = store->pages / BATCH, i;
	struct far_io ios[BATCH];
	double began;
	int put;

	for (put = 1; put >= 0; put--) {
		for (i = 0; i < BATCH; i++) {
			ios[i] = (struct far_io){ put, i * count, count,
						  (char *)buf + i * count * store->page_size };
			if (put)
				fill(ios[i].buf, i * count, count, round);
			else
				memset(ios[i].buf, 0x55, count * store->page_size);
		}
		began = far_now();
		if (store->ops->together(store, ios, BATCH))
			return failed();
		if (far_now() - began > *longest)
			*longest = far_now() - began;
	}
	return compare(buf, 0, count * BATCH, round);
}

static int churn(double seconds)
{
	double until = far_now() + seconds, longest = 0;
	uint64_t round = 0;
	int status;

	while (far_now() < until) {
		status = churn_round(round++, &longest);
		if (status)
			return status;
	}
	printf("churned %llu rounds, longest wait %.1f\n", (unsigned long long)round, longest);
	return 0;
}

static int step(const char *text)
{
	unsigned long long first, count, seed;
	char line[16];
	double seconds;

	if (sscanf(text, "put:%llu:%llu:%llu", &first, &count, &seed) == 3) {
		fill(buf, first, count, seed);
		return store->ops->put(store, first, count, buf) ? failed() : 0;
	}
	if (sscanf(text, "get:%llu:%llu:%llu", &first, &count, &seed) == 3) {
		memset(buf, 0x55, count * store->page_size);
		if (store->ops->get(store, first, count, buf))
			return failed();
		return compare(buf, first, count, seed);
	}
	if (sscanf(text, "zero:%llu:%llu", &first, &count) == 2) {
		memset(buf, 0x55, count * store->page_size);
		if (store->ops->get(store, first, count, buf))
			return failed();
		return find_nonzero(count);
	}
	if (sscanf(text, "discard:%llu:%llu", &first, &count) == 2) {
		store->ops->discard(store, first, count);
		return 0;
	}
	if (sscanf(text, "churn:%lf", &seconds) == 1)
		return churn(seconds);
	if (!strncmp(text, "say:", 4))
		return puts(text + 4) < 0;
	if (!strcmp(text, "wait"))
		return !fgets(line, sizeof(line), stdin);
	fprintf(stderr, "t_store: %s: no such step\n", text);
	return 3;
}

static int open_store(char **argv)
{
	uint8_t key[FAR_KEY_BYTES];
	struct far_store_config config = {
		.spec = argv[1], .page_size = strtoull(argv[3], NULL, 10),
		.pages = strtoull(argv[4], NULL, 10), .key = key,
	};
	char why[160];

	if (far_key_read(argv[2], key, why, sizeof(why))) {
		printf("key: %s\n", why);
		return 1;
	}
	if (far_store_ucx.open(&config, &store))
		return failed();
	buf = aligned_alloc(4096, config.page_size * config.pages);
	return buf ? 0 : 3;
}

int main(int argc, char **argv)
{
	int i, status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 5)
		return 3;
	status = open_store(argv);
	if (status)
		return status;
	for (i = 5; i < argc && !status; i++)
		status = step(argv[i]);
	store->ops->close(store);
	free(buf);
	return status;
}
