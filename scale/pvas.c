// SPDX-License-Identifier: GPL-2.0-only
/*
 * The BTL component pvas, by the rule of the K paper: M(n) = base + a n + what the fast peers
 * have. A peer becomes a fast one after some messages, first come, first served, up to a cap.
 * Unlike on the K computer, fast boxes share a budget: endpoints and fragments come first, and
 * a box takes at most half of what is left. The numbers are those of btl_glue/; its test
 * "model" compares its counters.
 */
#include "saturate.h"

/* Bytes: the queue, and for each peer or fast box a rank can have */
#define QUEUE		4096
#define GROUP		16
#define ENDPOINT	40
#define FAST_ENTRY	48
#define FRAGMENT	224
#define MALLOC		16
/* Fast boxes */
#define LARGEST		8192
#define SMALLEST	1024
#define PAGE		4096
#define BUDGET		(LARGEST + LARGEST / 2 + 1700)
/* Fragments */
#define MOST		64
#define LEAST		2

static uint64_t endpoint_bytes(uint64_t peers)
{
	return SUM(GROUP, PRODUCT(ENDPOINT, peers));
}

static uint64_t clamp(uint64_t least, uint64_t value, uint64_t most)
{
	return value < least ? least : value < most ? value : most;
}

static uint64_t fragment_limit(uint64_t peers)
{
	return clamp(LEAST, MOST / 8 + 2 * MOST / peers, MOST);
}

/* In an exchange with all peers, one for each, as far as the limit goes */
static uint64_t fragments(uint64_t peers)
{
	uint64_t limit = fragment_limit(peers);

	return peers < limit ? peers : limit;
}

static uint64_t reserved_bytes(uint64_t peers)
{
	return clamp(LEAST, peers > MOST ? MOST : 2 * peers, fragment_limit(peers)) *
	       (FRAGMENT + MALLOC);
}

/* Of a box, if @left bytes are left for it and @others more; 0: there is no room */
static uint64_t box_bytes(uint64_t left, uint64_t others, bool first)
{
	uint64_t bytes = LARGEST;

	while (bytes > SMALLEST && bytes > (others ? left / 2 : left))
		bytes /= 2;
	return bytes <= left || first ? bytes : 0;
}

static uint64_t left_of_budget(uint64_t taken)
{
	return taken < BUDGET ? BUDGET - taken : 0;
}

/* Bytes of all fast boxes, and their number in *@boxes */
static uint64_t fast_bytes(uint64_t peers, uint64_t cap, uint64_t *boxes)
{
	uint64_t taken = SUM(endpoint_bytes(peers), reserved_bytes(peers)), sum = 0, bytes;

	if (cap > peers)
		cap = peers;
	for (*boxes = 0; *boxes < cap; ++*boxes) {
		bytes = box_bytes(left_of_budget(SUM(taken, sum)), cap - *boxes - 1, !*boxes);
		if (!bytes)
			break;
		sum += bytes;
	}
	return sum;
}

uint64_t scale_pvas_fast_peers(uint64_t ranks, uint64_t cap)
{
	uint64_t boxes = 0;

	if (ranks > 1)
		fast_bytes(ranks - 1, cap, &boxes);
	return boxes;
}

uint64_t scale_pvas_bytes(uint64_t ranks, uint64_t cap)
{
	uint64_t peers = ranks - 1, boxes;

	/* Alone, a rank does not use the component. */
	if (!peers)
		return 0;
	return SUM(QUEUE, endpoint_bytes(peers), fragments(peers) * FRAGMENT,
		   PRODUCT(FAST_ENTRY, (peers < cap ? peers : cap) + 1),
		   fast_bytes(peers, cap, &boxes));
}
