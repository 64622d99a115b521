// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Figures of far memory, in lines "WHAT NAME UNIT VALUE", as bench/sections/far keeps them. With the
 * protocol that PVAS_FAR_PROTOCOL says, and pages of PVAS_FAR_PAGE, else those named here.
 *
 *	far fault NAME STORES		microseconds to load from a page of 4 KiB that is not
 *					resident: median and 90th percentile of 20,000
 *	far stream NAME STORES MIB THREADS
 *					STREAM's four kernels on three arrays of MIB MiB in all,
 *					11 % of them resident: the best rate of 3 rounds; and
 *					what came from the stores meanwhile, a second
 *	far mean NAME STORES MIB THREADS PERCENT
 *					the same with so much resident: the mean of all rates
 *	far micro NAME STORES MIB THREADS
 *					the program of figure 3 of the DLM paper: seconds to write
 *					an array of which 40 % are resident, and then to read one
 *					element of each MiB
 *	far figure3 NAME STORES MIB THREADS
 *					the same program: seconds in all, and the mean of each step
 *					of an exchange, as figures 5 and 8 of that paper have it
 *	far product NAME STORES MIB THREADS PERCENT
 *					seconds for a product of two matrices, blocked; all three
 *					have MIB MiB, of which so much is resident
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pvas_far.h"

enum { LOADS = 20000, THREADS_MAX = 64, ROUNDS = 3 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void *start(const char *stores, size_t ram, size_t size, size_t page)
{
	struct pvas_far_attr attr = {
		.size = sizeof(attr), .stores = stores, .ram = ram, .far = size,
		.page = getenv("PVAS_FAR_PAGE") ? 0 : page,
		.flags = PVAS_FAR_USER_FAULTS_ONLY,
	};
	void *p;

	if (!pvas_far_open(&attr) && !pvas_far_alloc(&p, size))
		return p;
	fprintf(stderr, "far: %s\n", pvas_far_error());
	exit(1);
}

/* ---- fault ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int fault(const char *name, const char *stores)
{
	const size_t page = 4096, pages = 32768;
	volatile uint64_t *p = start(stores, pages * page / 8, pages * page, page);
	static double took[LOADS];
	uint64_t seed = 88172645463325252ULL, before;
	size_t i, n = 0;
	double began;

	for (i = 0; i < pages * page / 8; i++)
		p[i] = i;
	for (i = 0; i < LOADS; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		before = 0;
		began = now();
		before += p[seed % pages * (page / 8)];
		took[n] = now() - began;
		if (before != seed % pages * (page / 8))
			return 1;
		/* Every eighth page is resident. */
		n += took[n] > 2;
	}
	qsort(took, n, sizeof(*took), compare);
	printf("fault %s us %.1f\nfault-90 %s us %.1f\n", name, took[n / 2], name, took[n * 9 / 10]);
	return pvas_far_close();
}

/* ---- stream ---- */

static double *a, *b, *c;
static size_t elements;
static unsigned int threads;
static int kernel;

static void run(size_t from, size_t to)
{
	size_t i;

	for (i = from; i < to; i++) {
		switch (kernel) {
		case 0:
			c[i] = a[i];
			break;
		case 1:
			b[i] = 3 * c[i];
			break;
		case 2:
			c[i] = a[i] + b[i];
			break;
		default:
			a[i] = b[i] + 3 * c[i];
		}
	}
}

static void *part(void *arg)
{
	size_t t = (size_t)arg;

	run(elements * t / threads, elements * (t + 1) / threads);
	return NULL;
}

/* Bytes a microsecond, as STREAM counts them */
static double rate(int which)
{
	static const int arrays[] = { 2, 2, 3, 3 };
	pthread_t thread[THREADS_MAX];
	double began = now();
	size_t t;

	kernel = which;
	for (t = 0; t < threads; t++)
		pthread_create(&thread[t], NULL, part, (void *)t);
	for (t = 0; t < threads; t++)
		pthread_join(thread[t], NULL);
	return (double)(arrays[which] * elements * sizeof(double)) / (now() - began);
}

/* Bytes that came from the stores so far */
static double fetched(void)
{
	struct pvas_far_counters c = { .size = sizeof(c) };

	pvas_far_get_counters(&c);
	return (double)(c.fetched * c.page);
}

static int stream(const char *name, const char *stores, size_t mib, unsigned int percent, bool mean)
{
	static const char *const names[] = { "copy", "scale", "add", "triad" };
	size_t size = mib << 20, i;
	double best[4] = { 0 }, r, began, before, sum = 0;
	int k, round;

	elements = size / 3 / sizeof(double);
	a = start(stores, size / 100 * percent, size, 1 << 20);
	b = a + elements;
	c = b + elements;
	for (i = 0; i < elements; i++) {
		a[i] = 1 + (double)i;
		b[i] = 2;
		c[i] = 0;
	}
	began = now();
	before = fetched();
	for (round = 0; round < ROUNDS; round++)
		for (k = 0; k < 4; k++) {
			r = rate(k);
			best[k] = r > best[k] ? r : best[k];
			sum += r;
		}
	if (mean)
		printf("mean %s MB/s %.1f\n", name, sum / (4 * ROUNDS));
	else
		printf("link %s MB/s %.1f\n", name, (fetched() - before) / (now() - began));
	for (k = 0; !mean && k < 4; k++)
		printf("%s %s MB/s %.1f\n", names[k], name, best[k]);
	return pvas_far_close();
}

/* ---- figure 3 ---- */

enum { EACH = 1 << 17 };	/* an element of each MiB */

static uint64_t *array;
static size_t wrong;

static void *write_part(void *arg)
{
	size_t t = (size_t)arg, i;

	for (i = elements * t / threads; i < elements * (t + 1) / threads; i++)
		array[i] = i;
	return NULL;
}

static void *read_part(void *arg)
{
	size_t t = (size_t)arg, i = (elements * t / threads + EACH - 1) / EACH * EACH;

	for (; i < elements * (t + 1) / threads; i += EACH)
		if (array[i] != i)
			__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
	return NULL;
}

static double seconds(void *(*how)(void *arg))
{
	pthread_t thread[THREADS_MAX];
	double began = now();
	size_t t;

	for (t = 0; t < threads; t++)
		pthread_create(&thread[t], NULL, how, (void *)t);
	for (t = 0; t < threads; t++)
		pthread_join(thread[t], NULL);
	return (now() - began) / 1e6;
}

/* As figures 5 and 8 have it; nothing of pvas, which has no such steps */
static void print_steps(const char *name)
{
	struct pvas_far_counters c = { .size = sizeof(c) };
	int i;

	pvas_far_get_counters(&c);
	for (i = 0; c.exchanges && i < PVAS_FAR_STEPS; i++)
		printf("step-%d %s us %.1f\n", i + 1, name, (double)c.step[i] / (double)c.exchanges);
	if (c.faults)
		printf("wait %s us %.1f\n", name, (double)c.waited / (double)c.faults);
}

static int micro(const char *name, const char *stores, size_t mib, bool figure)
{
	size_t size = mib << 20;
	double write, read;

	elements = size / sizeof(*array);
	/* 800 MB of 2 GiB */
	array = start(stores, size / 5 * 2, size, 1 << 20);
	write = seconds(write_part);
	read = seconds(read_part);
	if (!figure) {
		printf("write %s s %.3f\nread %s s %.3f\n", name, write, name, read);
	} else {
		printf("figure3 %s s %.3f\n", name, write + read);
		print_steps(name);
	}
	return wrong ? 1 : pvas_far_close();
}

/* ---- product: a = b * c, c transposed ---- */

enum { BLOCK = 64 };

static size_t order;

static void multiply_block(size_t i, size_t j, size_t k)
{
	size_t x, y, z;
	double sum;

	for (x = i; x < i + BLOCK; x++)
		for (y = j; y < j + BLOCK; y++) {
			sum = 0;
			for (z = k; z < k + BLOCK; z++)
				sum += b[x * order + z] * c[y * order + z];
			a[x * order + y] += sum;
		}
}

static void *multiply_part(void *arg)
{
	size_t t = (size_t)arg, i, j, k;

	for (i = t * BLOCK; i < order; i += threads * BLOCK)
		for (j = 0; j < order; j += BLOCK)
			for (k = 0; k < order; k += BLOCK)
				multiply_block(i, j, k);
	return NULL;
}

static int product(const char *name, const char *stores, size_t mib, unsigned int percent)
{
	size_t size = mib << 20, i;

	while ((order + BLOCK) * (order + BLOCK) * 3 * sizeof(double) <= size)
		order += BLOCK;
	a = start(stores, size / 100 * percent, size, 1 << 18);
	b = a + order * order;
	c = b + order * order;
	for (i = 0; i < order * order; i++) {
		b[i] = (double)(i % order);
		c[i] = 1;
	}
	printf("product %s s %.3f\n", name, seconds(multiply_part));
	/* Of each row of b, the sum */
	for (i = 0; i < order * order; i++)
		wrong += a[i] != (double)(order * (order - 1) / 2);
	return wrong ? 1 : pvas_far_close();
}

int main(int argc, char **argv)
{
	unsigned long n = argc >= 6 && argc <= 7 ? strtoul(argv[5], NULL, 0) : 0;
	unsigned int percent = argc == 7 ? (unsigned int)strtoul(argv[6], NULL, 0) : 11;
	size_t mib = n ? strtoul(argv[4], NULL, 0) : 0;

	if (argc == 4 && !strcmp(argv[1], "fault"))
		return fault(argv[2], argv[3]);
	threads = n <= THREADS_MAX ? (unsigned int)n : 0;
	if (threads && !strcmp(argv[1], "stream"))
		return stream(argv[2], argv[3], mib, percent, false);
	if (threads && !strcmp(argv[1], "mean"))
		return stream(argv[2], argv[3], mib, percent, true);
	if (threads && !strcmp(argv[1], "micro"))
		return micro(argv[2], argv[3], mib, false);
	if (threads && !strcmp(argv[1], "figure3"))
		return micro(argv[2], argv[3], mib, true);
	if (threads && !strcmp(argv[1], "product"))
		return product(argv[2], argv[3], mib, percent);
	fprintf(stderr, "usage: far fault NAME STORES | far stream|mean|micro|figure3|product NAME STORES MIB THREADS [PERCENT]\n");
	return 2;
}
