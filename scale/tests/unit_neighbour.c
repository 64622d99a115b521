// SPDX-License-Identifier: GPL-2.0-only
/* The neighbour paper: equations 1 to 8, figure 6, the schedule of all small N and C. */
#include <math.h>
#include <string.h>

#include "../scale.h"
#include "unit.h"

static const struct scale_link figure6 = { .latency_us = 1, .bytes_per_us = 5000 };
static const struct scale_exchange six_four = { .neighbours = 6, .devices = 4 };

static double ratio(uint64_t neighbours, uint64_t devices)
{
	const struct scale_exchange x = { .neighbours = neighbours, .devices = devices };
	const struct scale_fraction r = scale_neq3_ratio(&x);

	return (double)r.over / r.under;
}

static void check_ratios(void)
{
	PRINTED(ratio(6, 4), "1.33");
	PRINTED(ratio(5, 4), "1.6");
	PRINTED(ratio(8, 6), "1.5");
	PRINTED(ratio(9, 8), "1.78");
	PRINTED(ratio(27, 26), "1.93");
	PRINTED(ratio(26, 4), "1.08");
	PRINTED(ratio(26, 6), "1.15");
	PRINTED(ratio(8, 4), "1");
	/* Never 2, but as near as N / C is to 1 */
	PRINTED(ratio(1001, 1000), "1.998");
	EXPECT(ratio(1000001, 1000000) < 2);
	EXPECT(ratio(1000001, 1000000) > 1.99999);
}

static bool same(struct scale_fraction a, struct scale_fraction b)
{
	return a.over * b.under == b.over * a.under;
}

/* Equations 6 to 8 are equation 3. */
static void check_rewritten(void)
{
	struct scale_exchange x;
	unsigned int wrong6 = 0, wrong7 = 0, wrong8 = 0, outside = 0;

	for (x.neighbours = 3; x.neighbours <= 100; x.neighbours++)
		for (x.devices = 2; x.devices < x.neighbours; x.devices++) {
			const struct scale_fraction r = scale_neq3_ratio(&x);

			wrong6 += !same(r, scale_neq6_ratio(&x));
			wrong7 += !same(r, scale_neq7_ratio(&x));
			wrong8 += !same(r, scale_neq8_ratio(&x));
			outside += r.over < r.under || r.over >= 2 * r.under;
		}
	NUMBER(wrong6, 0);
	NUMBER(wrong7, 0);
	NUMBER(wrong8, 0);
	NUMBER(outside, 0);
}

static double rate(bool proposed, uint64_t bytes)
{
	const double us = proposed ? scale_neq2_proposed_us(&six_four, &figure6, bytes) :
				     scale_neq1_previous_us(&six_four, &figure6, bytes);

	return scale_exchange_bytes_per_us(&six_four, bytes, us) / 1e3;
}

/* Bandwidth in GB/s, at 8 MB */
static void check_figure6(void)
{
	PRINTED(rate(true, 8 << 20), "19.976");
	PRINTED(rate(false, 8 << 20), "14.991");
	PRINTED(rate(true, 8 << 20), "20");
	PRINTED(rate(false, 8 << 20), "15");
	PRINTED(rate(true, 8 << 20) / rate(false, 8 << 20), "1.33");
	EXPECT(rate(true, 8 << 10) < rate(false, 8 << 10));
	EXPECT(rate(true, 16 << 10) > rate(false, 16 << 10));
	PRINTED(scale_crossing_bytes(&six_four, &figure6), "10000");
	PRINTED(scale_neq1_previous_us(&six_four, &figure6, 10000), "6.000");
	PRINTED(scale_neq2_proposed_us(&six_four, &figure6, 10000), "6.000");
}

/* Equations 4 and 5 are 1 and 2 with 6 and 4. */
static void check_instances(void)
{
	uint64_t bytes;

	for (bytes = 1; bytes < 1UL << 40; bytes *= 8) {
		EXPECT(fabs(scale_neq4_previous_us(&figure6, bytes) /
			    scale_neq1_previous_us(&six_four, &figure6, bytes) - 1) < 1e-12);
		EXPECT(fabs(scale_neq5_proposed_us(&figure6, bytes) /
			    scale_neq2_proposed_us(&six_four, &figure6, bytes) - 1) < 1e-12);
	}
	PRINTED(scale_neq4_previous_us(&figure6, 5000), "4");
	PRINTED(scale_neq5_proposed_us(&figure6, 5000), "4.5");
}

/* Where C divides N, both are the same; elsewhere the lines cross once. */
static void check_crossings(void)
{
	struct scale_exchange x;
	unsigned int wrong = 0;
	double at;

	for (x.neighbours = 3; x.neighbours <= 60; x.neighbours++)
		for (x.devices = 2; x.devices < x.neighbours; x.devices++) {
			at = scale_crossing_bytes(&x, &figure6);
			if (x.neighbours % x.devices == 0)
				wrong += at != 0;
			else
				wrong += scale_neq2_proposed_us(&x, &figure6, at * 2) >=
					 scale_neq1_previous_us(&x, &figure6, at * 2) ||
					 scale_neq2_proposed_us(&x, &figure6, at / 2) <=
					 scale_neq1_previous_us(&x, &figure6, at / 2);
		}
	NUMBER(wrong, 0);
}

static bool is_good(const struct scale_exchange *x, uint64_t bytes, scale_schedule_fn *at)
{
	struct scale_schedule_check c;

	return !scale_schedule_check(x, bytes, at, &c) && c.whole &&
	       c.segments == x->devices * scale_reduced_neighbours(x) && !c.collisions &&
	       !c.missing && !c.repeated && c.least_bytes == c.most_bytes &&
	       c.most_bytes == x->neighbours * bytes / x->devices;
}

/* The rule written out for the paper's figure 4: step by step, the destinations */
static void check_figure4(void)
{
	static const unsigned int to[3][4] = { { 0, 1, 2, 3 }, { 4, 5, 0, 1 }, { 2, 3, 4, 5 } };
	struct scale_segment s;
	unsigned int i, j;

	for (i = 0; i < 3; i++)
		for (j = 0; j < 4; j++) {
			s = scale_segment_at(&six_four, 100, i, j);
			NUMBER(s.neighbour, to[i][j]);
			NUMBER(s.segment, i * 4 + j >= 6);
			NUMBER(s.offset, i * 4 + j >= 6 ? 50 : 0);
			NUMBER(s.bytes, 50);
		}
}

static struct scale_segment to_one_neighbour(const struct scale_exchange *x, uint64_t bytes,
					     uint64_t step, uint64_t device)
{
	struct scale_segment s = scale_segment_at(x, bytes, step, device);

	s.neighbour -= s.neighbour % 2;
	return s;
}

static struct scale_segment unequal(const struct scale_exchange *x, uint64_t bytes,
				    uint64_t step, uint64_t device)
{
	struct scale_segment s = scale_segment_at(x, bytes, step, device);

	s.bytes += device;
	return s;
}

static struct scale_segment first_segment(const struct scale_exchange *x, uint64_t bytes,
					  uint64_t step, uint64_t device)
{
	struct scale_segment s = scale_segment_at(x, bytes, step, device);

	s.segment = 0;
	return s;
}

static void check_schedules(void)
{
	struct scale_schedule_check c;
	struct scale_exchange x;
	unsigned int bad = 0;

	for (x.neighbours = 3; x.neighbours <= 40; x.neighbours++)
		for (x.devices = 2; x.devices < x.neighbours; x.devices++)
			bad += !is_good(&x, 1000 * scale_reduced_devices(&x), scale_segment_at);
	NUMBER(bad, 0);
	/* The check finds what is wrong. */
	EXPECT(!scale_schedule_check(&six_four, 100, to_one_neighbour, &c) && c.collisions == 6 &&
	       c.missing == 6 && c.repeated == 6);
	EXPECT(!scale_schedule_check(&six_four, 100, unequal, &c) && !c.collisions &&
	       c.most_bytes - c.least_bytes == 9);
	EXPECT(!scale_schedule_check(&six_four, 100, first_segment, &c) && c.missing == 6 &&
	       c.repeated == 6);
	/* Too large to look at as a whole, or at all */
	x = (struct scale_exchange){ .neighbours = 1001, .devices = 1000 };
	EXPECT(!scale_schedule_check(&x, 1000, scale_segment_at, &c) && !c.whole &&
	       c.segments == 32000 && !c.collisions && c.least_bytes == c.most_bytes);
	x = (struct scale_exchange){ .neighbours = 1UL << 40, .devices = 3 };
	EXPECT(!scale_schedule_check(&x, 1000, scale_segment_at, &c) && !c.segments);
}

void test_neighbour(void)
{
	check_ratios();
	check_rewritten();
	check_figure6();
	check_instances();
	check_crossings();
	check_figure4();
	check_schedules();
}
