// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The schedule of an exchange over several devices: each neighbor gets every byte exactly once,
 * devices carry as much as each other, none has more than one segment in a step, and no step
 * has two segments of one neighbor if there are at least as many neighbors as devices. And the
 * values that the paper gives. No MPI.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../schedule.h"

static int wrong;

#define CHECK(condition, x)							\
	do {									\
		if (!(condition)) {						\
			printf("%u neighbors, %u devices: not %s\n",		\
			       (x).neighbors, (x).devices, #condition);		\
			wrong++;						\
		}								\
	} while (0)

/* Which bytes of which message were sent, how often */
static void check_bytes(struct mca_coll_pvas_schedule x, uint32_t bytes)
{
	char *sent = calloc(x.neighbors, bytes + 1);
	uint64_t carried, least = UINT64_MAX, most = 0;
	struct mca_coll_pvas_part part;
	uint32_t step, device, i;

	for (device = 0; device < x.devices; device++) {
		carried = 0;
		for (step = 0; step < mca_coll_pvas_steps(x); step++) {
			part = mca_coll_pvas_part_at(x, bytes, step, device);
			CHECK(part.neighbor < x.neighbors, x);
			CHECK(part.offset + part.bytes <= bytes, x);
			for (i = 0; i < part.bytes; i++)
				sent[(size_t)part.neighbor * bytes + part.offset + i]++;
			carried += part.bytes;
		}
		least = carried < least ? carried : least;
		most = carried > most ? carried : most;
	}
	for (i = 0; i < x.neighbors * bytes; i++)
		CHECK(sent[i] == 1, x);
	/* By a byte a step, if messages cannot be cut into equal segments */
	CHECK(most - least <= (bytes % mca_coll_pvas_parts(x) ? mca_coll_pvas_steps(x) : 0), x);
	free(sent);
}

static void check_steps(struct mca_coll_pvas_schedule x)
{
	uint32_t *seen = calloc(x.neighbors, sizeof(*seen)), step, device;
	struct mca_coll_pvas_part part;

	for (step = 0; x.neighbors >= x.devices && step < mca_coll_pvas_steps(x); step++) {
		for (device = 0; device < x.devices; device++) {
			part = mca_coll_pvas_part_at(x, 1000, step, device);
			CHECK(seen[part.neighbor] != step + 1, x);
			seen[part.neighbor] = step + 1;
		}
	}
	free(seen);
}

/* The last length at which the paper's model has whole messages as fast, by trying */
static void check_least(struct mca_coll_pvas_schedule x)
{
	const double latency = 20, rate = 10000 / 8.0, steps = mca_coll_pvas_steps(x);
	const double share = steps / mca_coll_pvas_parts(x);
	const double rounds = (x.neighbors + x.devices - 1) / x.devices;
	const uint64_t least = mca_coll_pvas_schedule_least(x, 20, 10000);
	double whole, cut;

	if (!mca_coll_pvas_schedule_gains(x)) {
		CHECK(least == MCA_COLL_PVAS_NEVER, x);
		return;
	}
	whole = rounds * (latency + least / rate);
	cut = latency * steps + share * least / rate;
	CHECK(cut - whole < 1e-2 && whole - cut < 1e-2, x);
	whole = rounds * (latency + 1.1 * least / rate);
	cut = latency * steps + share * 1.1 * least / rate;
	CHECK(!least || cut < whole, x);
}

int main(void)
{
	const struct mca_coll_pvas_schedule paper = { 6, 4 };
	struct mca_coll_pvas_schedule x;

	for (x.devices = 1; x.devices <= 16; x.devices++) {
		for (x.neighbors = 1; x.neighbors <= 27; x.neighbors++) {
			check_bytes(x, 0);
			check_bytes(x, 1);
			check_bytes(x, 240);
			check_bytes(x, 997);
			check_steps(x);
			check_least(x);
		}
	}
	CHECK(mca_coll_pvas_steps(paper) == 3, paper);
	CHECK(mca_coll_pvas_parts(paper) == 2, paper);
	/* 1 us and 5 GB/s */
	CHECK(mca_coll_pvas_schedule_least(paper, 1, 40000) == 10000, paper);
	printf("%d wrong\n", wrong);
	return wrong != 0;
}
