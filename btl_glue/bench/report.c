// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table. A ratio is the median of the ratios of consecutive samples. A pair does not
 * count if the distance between the cores differed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "p2p.h"

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, int n)
{
	if (!n)
		return 0;
	qsort(v, n, sizeof(*v), by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static double time_of(const struct page *p, int size, int r, enum kind kind)
{
	double v[MAX_SAMPLES];
	unsigned int i;

	for (i = 0; i < p->nr_samples; i++)
		v[i] = p->samples[size][i][r].seconds[kind];
	return median(v, p->nr_samples);
}

static bool comparable(const struct sample *a, const struct sample *b)
{
	return a->probe < b->probe * PROBE_LIMIT && b->probe < a->probe * PROBE_LIMIT;
}

/* The first one's speed relative to rival @r; @n: pairs that count */
static double ratio(const struct page *p, int size, int r, enum kind kind, int *n)
{
	double v[MAX_SAMPLES];
	unsigned int i;

	*n = 0;
	for (i = 0; i < p->nr_samples; i++) {
		const struct sample *s = p->samples[size][i];

		if (comparable(&s[0], &s[r]) && s[0].seconds[kind] > 0)
			v[(*n)++] = s[r].seconds[kind] / s[0].seconds[kind];
	}
	return median(v, *n);
}

static void report_kind(const struct page *p, enum kind kind, const char *title)
{
	unsigned int s, r;
	int n = 0;

	printf("%s\n   bytes", title);
	for (r = 0; r < p->nr_rivals; r++)
		printf(" %9s", p->names[r]);
	printf("  |");
	for (r = 1; r < p->nr_rivals; r++)
		printf(" %9s", p->names[r]);
	printf("  pairs\n");
	for (s = 0; s < p->nr_sizes; s++) {
		printf("%8zu", p->sizes[s]);
		for (r = 0; r < p->nr_rivals; r++)
			printf(" %9.3f", 1e6 * time_of(p, s, r, kind));
		printf("  |");
		for (r = 1; r < p->nr_rivals; r++)
			printf(" %9.2f", ratio(p, s, r, kind, &n));
		printf("  %5d\n", n);
	}
}

static double median_probe(const struct page *p)
{
	static double v[MAX_SIZES * MAX_SAMPLES];
	unsigned int s, i;
	int n = 0;

	for (s = 0; s < p->nr_sizes; s++)
		for (i = 0; i < p->nr_samples; i++)
			v[n++] = p->samples[s][i][0].probe;
	return median(v, n);
}

void report(const struct page *p)
{
	printf("Microseconds a message | how many times as fast %s is as each\n", p->names[0]);
	report_kind(p, LATENCY, "latency (half a round trip)");
	report_kind(p, STREAM, "stream (16 messages at a time, one way)");
	report_kind(p, FRESH, "fresh (half a round trip, each message in new pages)");
	report_kind(p, BOTH_WAYS, "both ways (16 messages each way at a time; the time is for a pair)");
	report_kind(p, RATE, "rate (64 messages at a time, one way)");
	printf("a cache line's round trip: %.0f ns\n", 1e9 * median_probe(p));
}
