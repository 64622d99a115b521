// SPDX-License-Identifier: GPL-2.0-only
/*
 * The lean paper, section 2.3: memory of MPICH 3.2b3 and LLC on a node, when all n ranks have
 * exchanged messages and made c communicators of the size of the job.
 */
#include "saturate.h"

/* (1) ((16c + 32)m + (8c + 16)/m) n + (8c + 16)m^2 + (848c + 2256)m + 408c + 816 */
uint64_t scale_eq1_participants_bytes(const struct scale_job *job)
{
	const uint64_t n = job->ranks, m = job->ranks_per_node, c = job->communicators;

	return SUM(PRODUCT(SUM(PRODUCT(16, c), 32), m, n), PRODUCT(SUM(PRODUCT(8, c), 16), n / m),
		   PRODUCT(SUM(PRODUCT(8, c), 16), m, m),
		   PRODUCT(SUM(PRODUCT(848, c), 2256), m), PRODUCT(408, c), 816);
}

/* (2) (480n + 16 + 64(n - 1) + 396n + 8n + 16) m */
uint64_t scale_eq2_high_level_bytes(const struct scale_job *job)
{
	const uint64_t n = job->ranks, m = job->ranks_per_node;

	return PRODUCT(SUM(PRODUCT(480, n), 16, PRODUCT(64, n - 1), PRODUCT(396, n),
			   PRODUCT(8, n), 16), m);
}

/* (3) (672 + 31152(n - m) + 8n + 16) m */
uint64_t scale_eq3_low_level_bytes(const struct scale_job *job)
{
	const uint64_t n = job->ranks, m = job->ranks_per_node;

	return PRODUCT(SUM(672, PRODUCT(31152, n - m), PRODUCT(8, n), 16), m);
}

/*
 * (4) printed: (1360(n - m) + 16 + 4096 x 16(n - m)) m + 32156187 + 327680
 *     errata:  (1360(n - m) + 16 + 4096 x 16(n - m) + 16078021 + 327680) m
 */
uint64_t scale_eq4_buffers_bytes(const struct scale_job *job)
{
	const uint64_t n = job->ranks, m = job->ranks_per_node;
	const uint64_t rings = SUM(PRODUCT(1360, n - m), 16, PRODUCT(4096, 16, n - m));

	if (job->original)
		return SUM(PRODUCT(rings, m), 32156187, 327680);
	return PRODUCT(SUM(rings, 16078021, 327680), m);
}

/* (5) 30mn + 65716m^2 + 4129094m + 2256 */
uint64_t scale_eq5_shared_memory_bytes(const struct scale_job *job)
{
	const uint64_t n = job->ranks, m = job->ranks_per_node;

	return SUM(PRODUCT(30, m, n), PRODUCT(65716, m, m), PRODUCT(4129094, m), 2256);
}

/* (6) 179384 + 1096(14n + 2n/m) + 32272 + (64 + 8)(14n + 2n/m) */
uint64_t scale_eq6_processes_bytes(const struct scale_job *job)
{
	const uint64_t n = job->ranks, m = job->ranks_per_node;
	const uint64_t pairs = SUM(PRODUCT(14, n), PRODUCT(2, n / m));

	return SUM(179384, PRODUCT(1096, pairs), 32272, PRODUCT(64 + 8, pairs));
}

/*
 * (7) printed: 65540m + 13067907
 *     errata:  65540m^2 + 13067907m
 */
uint64_t scale_eq7_other_bytes(const struct scale_job *job)
{
	const uint64_t m = job->ranks_per_node;

	if (job->original)
		return SUM(PRODUCT(65540, m), 13067907);
	return SUM(PRODUCT(65540, m, m), PRODUCT(13067907, m));
}
