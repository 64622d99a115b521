// SPDX-License-Identifier: GPL-2.0-only
/*
 * The K paper, section 6.4: M(n) = base + a n + b min(n, cap), for one rank a node. Figure 10 is
 * lost but for its four values at 9,216 nodes, from which base, a and b follow. The measured
 * values are kept, not the rounded a and b: so the model returns them exactly.
 */
#include "saturate.h"

/* Figure 10, bytes */
#define NODES		9216UL
#define CAP		1024UL
#define INITIALISED	80000000UL	/* MPI_Init and MPI_Finalize only */
#define LEAN		140000000UL
#define CAPPED		1520000000UL
#define FAST		12900000000UL

/* Sections 4 and 5; powers of two are those of buffers in memory */
#define RDMA_UNIT_BYTES		128
#define RDMA_UNITS		256
#define FAST_BUFFER_BYTES	(1UL << 20)
#define EAGER_BUFFER_BYTES	128000UL	/* 25.6 GB for 100,000 ranks: decimal */
#define NEAR_HOPS		1
#define NEAR_LIMIT_BYTES	(18UL << 10)
#define FAR_HOPS		40
#define FAR_LIMIT_BYTES		(60UL << 10)
#define LATENCY_NS		1270
#define HOP_NS			100
/* Section 6.3, MB/s on 9,216 nodes: Trinaryx3, and Open MPI's ring */
#define ALLREDUCE_MB		7100
#define RING_MB			1400

/* The peers with large buffers: first come, first served, up to the cap */
uint64_t scale_k_fast_peers(enum scale_k_mode mode, uint64_t ranks, uint64_t cap)
{
	if (mode == SCALE_K_LEAN)
		return 0;
	return mode == SCALE_K_CAPPED && cap < ranks ? cap : ranks;
}

/* a n */
static uint64_t lean_bytes(uint64_t ranks)
{
	return scale_share(ranks, LEAN - INITIALISED, NODES);
}

/* b min(n, cap), where b is that of the mode's own value in figure 10 */
static uint64_t fast_bytes(enum scale_k_mode mode, uint64_t peers)
{
	if (mode == SCALE_K_CAPPED)
		return scale_share(peers, CAPPED - LEAN, CAP);
	return scale_share(peers, FAST - LEAN, NODES);
}

uint64_t scale_k_bytes(enum scale_k_mode mode, uint64_t ranks, uint64_t cap)
{
	const uint64_t peers = scale_k_fast_peers(mode, ranks, cap);

	return SUM(INITIALISED, lean_bytes(ranks), fast_bytes(mode, peers));
}

uint64_t scale_k_base_bytes(void)
{
	return INITIALISED;
}

uint64_t scale_k_lean_peer_bytes(void)
{
	return lean_bytes(1);
}

uint64_t scale_k_fast_peer_bytes(enum scale_k_mode mode)
{
	return mode == SCALE_K_LEAN ? 0 : fast_bytes(mode, 1);
}

/* The ring of a peer at one hop */
uint64_t scale_k_eager_rdma_bytes(void)
{
	return RDMA_UNIT_BYTES * RDMA_UNITS;
}

uint64_t scale_k_fast_buffers_bytes(void)
{
	return FAST_BUFFER_BYTES + scale_k_eager_rdma_bytes();
}

/* Section 3.2: buffers of the usual eager protocol, to send and to receive, for each rank */
uint64_t scale_k_all_eager_bytes(uint64_t ranks)
{
	return PRODUCT(2, EAGER_BUFFER_BYTES, ranks);
}

/* Above this length RDMA is faster: on the line through the two points of figure 3 */
uint64_t scale_k_eager_limit_bytes(uint64_t hops)
{
	return SUM(NEAR_LIMIT_BYTES,
		   scale_share(hops - NEAR_HOPS, FAR_LIMIT_BYTES - NEAR_LIMIT_BYTES,
			       FAR_HOPS - NEAR_HOPS));
}

/* Of a short message of MPI */
uint64_t scale_k_latency_ns(uint64_t hops)
{
	return SUM(LATENCY_NS, PRODUCT(HOP_NS, hops - NEAR_HOPS));
}

void scale_k_notes(struct scale_notes *notes)
{
	scale_note(notes, "figure 10: a fast peer costs %.2f MB by the value with the cap, and "
		   "%.2f MB by the one without; no single b gives both, so each mode has its own",
		   scale_k_fast_peer_bytes(SCALE_K_CAPPED) / 1e6,
		   scale_k_fast_peer_bytes(SCALE_K_FAST) / 1e6);
	scale_note(notes, "the buffers that the paper names, 1 MB and 32 KB, explain %.2f MB of it",
		   scale_k_fast_buffers_bytes() / 1e6);
	scale_note(notes, "section 6.3 prints 5.0 times for allreduce at %.1f GB/s against %.1f GB/s, "
		   "which is %.2f times", ALLREDUCE_MB / 1e3, RING_MB / 1e3,
		   (double)ALLREDUCE_MB / RING_MB);
	scale_note(notes, "buffers of 1 MB and 32 KB are powers of two here; those of 128 KB are "
		   "decimal, as the paper's 25.6 GB for 100,000 ranks");
}
