// SPDX-License-Identifier: GPL-2.0-only
/*
 * Times of puts and gets: one page at a time, and many under way.
 *
 * usage: t_bench HOST:PORT KEYFILE [SECONDS]
 *
 * One line for each page size: the medians in us, and bytes a second with DEPTH pages under way.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "key.h"
#include "host.h"
#include "ucx.h"

#define BYTES	(64ull << 20)
#define DEPTH	16
#define MOST	20000

static double times[MOST], longest;

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The median of one operation, in us */
static double alone(struct far_store *store, int put, char *buf, double seconds)
{
	double end = far_now() + seconds, begin;
	uint64_t page;
	int n = 0, err;

	while (n < MOST && far_now() < end) {
		page = (n * 7919ull) % store->pages;
		begin = far_now();
		err = put ? store->ops->put(store, page, 1, buf) :
			    store->ops->get(store, page, 1, buf);
		times[n++] = far_now() - begin;
		if (err) {
			fprintf(stderr, "%s\n", far_error());
			exit(1);
		}
	}
	qsort(times, n, sizeof(*times), by_time);
	longest = times[n - 1];
	return times[n / 2] * 1e6;
}

/* Bytes a second with DEPTH operations at once */
static double together(struct far_store *store, int put, char *buf, double seconds)
{
	double begin = far_now(), end = begin + seconds;
	struct far_io ios[DEPTH];
	uint64_t pages = 0;
	unsigned int i;

	while (far_now() < end) {
		for (i = 0; i < DEPTH; i++, pages++)
			ios[i] = (struct far_io){ put, pages % store->pages, 1,
						  buf + i * store->page_size };
		if (store->ops->together(store, ios, DEPTH)) {
			fprintf(stderr, "%s\n", far_error());
			exit(1);
		}
	}
	return pages * store->page_size / (far_now() - begin);
}

static void measure(const char *spec, const uint8_t *key, size_t page_size, double seconds)
{
	struct far_store_config config = {
		.spec = spec, .page_size = page_size, .pages = BYTES / page_size, .key = key,
	};
	struct far_store *store;
	double put, get;
	char *buf;

	buf = aligned_alloc(4096, page_size * DEPTH);
	if (!buf || far_store_ucx.open(&config, &store)) {
		fprintf(stderr, "%s\n", far_error());
		exit(1);
	}
	memset(buf, 1, page_size * DEPTH);
	together(store, 1, buf, 0.2);
	put = alone(store, 1, buf, seconds);
	get = alone(store, 0, buf, seconds);
	printf("page %7zu  put %7.1f us  get %7.1f us (at most %.0f)", page_size, put, get, longest * 1e6);
	put = together(store, 1, buf, seconds);
	get = together(store, 0, buf, seconds);
	printf("  put %5.0f MB/s  get %5.0f MB/s\n", put / 1e6, get / 1e6);
	store->ops->close(store);
	free(buf);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 4096, 16384, 65536, 262144, 1048576 };
	double seconds = argc > 3 ? atof(argv[3]) : 0.5;
	uint8_t key[FAR_KEY_BYTES];
	char why[160];
	size_t i;

	if (argc < 3)
		return 3;
	if (far_key_read(argv[2], key, why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		measure(argv[1], key, sizes[i], seconds);
	return 0;
}
