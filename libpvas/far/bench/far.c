// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Two figures of far memory.
 *
 *	far fault STORES		microseconds to load from a page of 4 KiB that is not
 *					resident: median and 90th percentile of 20,000
 *	far stream STORES MIB THREADS	STREAM's four kernels on three arrays of MIB MiB in all,
 *					11 % of them resident: the best rate of 3 rounds
 */
#include <pthread.h>
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
		.size = sizeof(attr), .stores = stores, .ram = ram, .far = size, .page = page,
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

static int fault(const char *stores)
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
	printf("fault %s: median %.1f us, 90 %% %.1f us, of %zu\n", stores, took[n / 2], took[n * 9 / 10], n);
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

static int stream(const char *stores, size_t mib, unsigned int n)
{
	static const char *const names[] = { "copy", "scale", "add", "triad" };
	size_t size = mib << 20, i;
	double best[4] = { 0 }, r;
	int k, round;

	threads = n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : n;
	elements = size / 3 / sizeof(double);
	a = start(stores, size / 100 * 11, size, 1 << 20);
	b = a + elements;
	c = b + elements;
	for (i = 0; i < elements; i++) {
		a[i] = 1 + (double)i;
		b[i] = 2;
		c[i] = 0;
	}
	for (round = 0; round < ROUNDS; round++)
		for (k = 0; k < 4; k++) {
			r = rate(k);
			best[k] = r > best[k] ? r : best[k];
		}
	printf("stream %s, %zu MiB, %u threads:", stores, mib, threads);
	for (k = 0; k < 4; k++)
		printf(" %s %.0f", names[k], best[k]);
	printf(" MB/s\n");
	return pvas_far_close();
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "fault"))
		return fault(argv[2]);
	if (argc == 5 && !strcmp(argv[1], "stream"))
		return stream(argv[2], strtoul(argv[3], NULL, 0),
			      (unsigned int)strtoul(argv[4], NULL, 0));
	fprintf(stderr, "usage: far fault STORES | far stream STORES MIB THREADS\n");
	return 2;
}
