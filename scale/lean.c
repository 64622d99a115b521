// SPDX-License-Identifier: GPL-2.0-only
/*
 * The lean paper, section 3: the same library with at most gamma active contexts, shared
 * buffers, and tables that the ranks of a node share.
 */
#include "saturate.h"

/* Up to 2^13 ranks the history keeps all its entries. */
#define FULL_HISTORY_LOG2	13
#define FULL_HISTORY_RANKS	(1UL << FULL_HISTORY_LOG2)
#define HISTORY_ENTRIES		1024UL	/* shifted by up to 51 */
#define HISTORY_CAP_BYTES	67108864

const uint64_t scale_eq10_constant_bytes = 5092928;

/* (8) (4c + 8)n + ((40g + 856)c + 104g + 2208)m + (448 + 20g)c + 40g + 960 */
uint64_t scale_eq8_participants_bytes(const struct scale_job *job)
{
	const uint64_t n = job->ranks, m = job->ranks_per_node, c = job->communicators;
	const uint64_t g = job->contexts;

	return SUM(PRODUCT(SUM(PRODUCT(4, c), 8), n),
		   PRODUCT(SUM(PRODUCT(SUM(PRODUCT(40, g), 856), c), PRODUCT(104, g), 2208), m),
		   PRODUCT(SUM(448, PRODUCT(20, g)), c), PRODUCT(40, g), 960);
}

/* (9) 480g + 16 + 64(g - 1) + (380 + 16)g + 8n + 16 */
uint64_t scale_eq9_high_level_bytes(const struct scale_job *job)
{
	const uint64_t n = job->ranks, g = job->contexts;

	return SUM(PRODUCT(480, g), 16, PRODUCT(64, g - 1), PRODUCT(380 + 16, g),
		   PRODUCT(8, n), 16);
}

/* (10) 24n + 168g + 5092928 */
uint64_t scale_eq10_low_level_bytes(const struct scale_job *job)
{
	return SUM(PRODUCT(24, job->ranks), PRODUCT(168, job->contexts),
		   scale_eq10_constant_bytes);
}

/* Section 3.3, in its order: DC for data, DC for flow control, RC, two tables */
uint64_t scale_eq10_parts_bytes(void)
{
	return SUM(243520, 164624, 16, 168736, 524304, 16, 672, PRODUCT(31152, 128),
		   PRODUCT(8, 128), PRODUCT(8 + 4 + 8, 128), 16, 16);
}

/*
 * (11) printed: 16785408 + 1360 x 1024 + 16 + 65536 x 1024 + 32156187 + 327680
 *      errata:  16785408 + 1360 x 1024 + 16 + 65536 x 1024 + (16078021 + 327680)m
 */
uint64_t scale_eq11_buffers_bytes(const struct scale_job *job)
{
	const uint64_t rings = SUM(16785408, PRODUCT(1360, 1024), 16, PRODUCT(65536, 1024));

	if (job->original)
		return SUM(rings, 32156187, 327680);
	return SUM(rings, PRODUCT(16078021 + 327680, job->ranks_per_node));
}

/* (12) 1024 if n <= 2^13, else 1024 / 2^(ceil(log2 n) - 13) */
uint64_t scale_eq12_history_entries(const struct scale_job *job)
{
	unsigned int log2_up;

	if (job->ranks <= FULL_HISTORY_RANKS)
		return HISTORY_ENTRIES;
	log2_up = 64 - __builtin_clzll(job->ranks - 1);
	return HISTORY_ENTRIES >> (log2_up - FULL_HISTORY_LOG2);
}

/* An entry is a counter of 64 bits, one for each rank that sends. */
uint64_t scale_eq12_history_bytes(const struct scale_job *job)
{
	return PRODUCT(8, scale_eq12_history_entries(job), job->ranks, job->ranks_per_node);
}

/* First term of (13): 8 x 1024mn if n <= 2^13, else 67108864m */
uint64_t scale_eq13_history_bytes(const struct scale_job *job)
{
	const uint64_t n = job->ranks, m = job->ranks_per_node;

	if (n <= FULL_HISTORY_RANKS)
		return PRODUCT(8, HISTORY_ENTRIES, m, n);
	return PRODUCT(HISTORY_CAP_BYTES, m);
}

/*
 * (13) that + ((8 x 1024 + (4 + 4 + 8) x 1024 + 16)(3 + 13) + 8n + 16 + 165008 + 524304) m
 */
uint64_t scale_eq13_switching_bytes(const struct scale_job *job)
{
	const uint64_t n = job->ranks, m = job->ranks_per_node;
	const uint64_t choice = PRODUCT(8 * 1024 + (4 + 4 + 8) * 1024 + 16, 3 + 13);

	return SUM(scale_eq13_history_bytes(job),
		   PRODUCT(SUM(choice, PRODUCT(8, n), 16, 165008, 524304), m));
}

/* (14) 6mn + 65756m^2 + 4129094m + 2256 */
uint64_t scale_eq14_shared_memory_bytes(const struct scale_job *job)
{
	const uint64_t n = job->ranks, m = job->ranks_per_node;

	return SUM(PRODUCT(6, m, n), PRODUCT(65756, m, m), PRODUCT(4129094, m), 2256);
}

/* (15) 179384 + (64 + 8)(13m + 2) + 32272 */
uint64_t scale_eq15_processes_bytes(const struct scale_job *job)
{
	return SUM(179384, PRODUCT(64 + 8, SUM(PRODUCT(13, job->ranks_per_node), 2)), 32272);
}
