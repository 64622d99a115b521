/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The schedule of an exchange with neighbors over several devices, of Morie and Nanri, "A
 * Neighboring Communication Algorithm Using Effective Multiple Communication Devices on Direct
 * Connection Network" (in Japanese). N messages over C devices, N = kN', C = kC', where k is
 * their greatest common divisor: messages are cut into C' segments, and in each of N' steps each
 * device sends one, so that all devices are busy all the time. Whole messages would leave some
 * idle at the end, unless N is a multiple of C. No step has two segments of one message, if N >= C.
 *
 * Pure functions, so that a test can look at all of it.
 */
#ifndef COLL_PVAS_SCHEDULE_H
#define COLL_PVAS_SCHEDULE_H

#include <stdint.h>

/* No message is long enough. */
#define MCA_COLL_PVAS_NEVER UINT64_MAX

struct mca_coll_pvas_schedule {
	uint32_t neighbors;
	uint32_t devices;
};

/* A segment of the message to, or from, a neighbor */
struct mca_coll_pvas_part {
	uint32_t neighbor;
	uint64_t offset;
	uint64_t bytes;
};

static inline uint32_t mca_coll_pvas_divisor(struct mca_coll_pvas_schedule x)
{
	uint32_t a = x.neighbors, b = x.devices, rest;

	while (b) {
		rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

static inline uint32_t mca_coll_pvas_steps(struct mca_coll_pvas_schedule x)
{
	return x.neighbors ? x.neighbors / mca_coll_pvas_divisor(x) : 0;
}

static inline uint32_t mca_coll_pvas_parts(struct mca_coll_pvas_schedule x)
{
	return x.devices / mca_coll_pvas_divisor(x);
}

/* Cut without a remainder, also what cannot be cut into equal segments. */
static inline struct mca_coll_pvas_part mca_coll_pvas_part_at(struct mca_coll_pvas_schedule x,
							      uint64_t bytes, uint32_t step,
							      uint32_t device)
{
	const uint64_t at = (uint64_t)step * x.devices + device, parts = mca_coll_pvas_parts(x);
	const uint64_t segment = at / x.neighbors;
	struct mca_coll_pvas_part part = { .neighbor = at % x.neighbors };

	part.offset = (unsigned __int128)bytes * segment / parts;
	part.bytes = (unsigned __int128)bytes * (segment + 1) / parts - part.offset;
	return part;
}

/* Are more steps than rounds of whole messages, but shorter ones, faster with long messages? */
static inline int mca_coll_pvas_schedule_gains(struct mca_coll_pvas_schedule x)
{
	return x.devices > 1 && x.neighbors > x.devices && x.neighbors % x.devices;
}

/*
 * M*, the length above which the schedule is faster: where L N' + N'/C' M/B, its time in the
 * paper's model, is that of whole messages, (L + M/B) ceil(N/C). A step's latency L is in us.
 */
static inline uint64_t mca_coll_pvas_schedule_least(struct mca_coll_pvas_schedule x,
						    uint64_t latency, uint64_t mbit_per_s)
{
	const uint64_t steps = mca_coll_pvas_steps(x), parts = mca_coll_pvas_parts(x);
	const uint64_t rounds = ((uint64_t)x.neighbors + x.devices - 1) / x.devices;

	if (!mca_coll_pvas_schedule_gains(x))
		return MCA_COLL_PVAS_NEVER;
	return (unsigned __int128)latency * mbit_per_s * (steps - rounds) * parts /
	       (8 * (rounds * parts - steps));
}

#endif /* COLL_PVAS_SCHEDULE_H */
