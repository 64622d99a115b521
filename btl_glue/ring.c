// SPDX-License-Identifier: LGPL-2.1-or-later
/* Ring buffers of records: see ring.h. */
#include "ring.h"

/* Attempts to lock @tail: it is held for a few stores, or by a writer that was preempted. */
#define MAX_TRIES 64

#define LAP (1ULL << 32)

void mca_btl_pvas_ring_init(struct mca_btl_pvas_ring *ring, char *data, size_t bytes)
{
	*ring = (struct mca_btl_pvas_ring) {
		/* Not a valid position */
		.cleared = UINT64_MAX,
		.data = data,
		.size = bytes & ~(size_t)(MCA_BTL_PVAS_CACHE_LINE - 1),
	};
	mca_btl_pvas_ring_clear(ring, 0);
}

static uint64_t advance(const struct mca_btl_pvas_ring *ring, uint64_t pos, uint32_t bytes)
{
	pos += bytes;
	return (uint32_t)pos < ring->size ? pos : pos - (uint32_t)pos + LAP;
}

/* Bytes from @head to @tail, which are less than a lap apart */
static uint32_t used(const struct mca_btl_pvas_ring *ring, uint64_t tail, uint64_t head)
{
	uint32_t bytes = (uint32_t)tail - (uint32_t)head;

	return (tail ^ head) >> 32 ? bytes + ring->size : bytes;
}

/* Bytes to skip at @pos so that @need bytes are contiguous */
static uint32_t padding(const struct mca_btl_pvas_ring *ring, uint64_t pos, uint32_t need)
{
	uint32_t left = ring->size - (uint32_t)pos;

	return need > left ? left : 0;
}

/* One step stays free, for the cleared word after the last record. */
static bool fits(const struct mca_btl_pvas_ring *ring, uint64_t tail, uint64_t head, uint32_t need)
{
	return used(ring, tail, head) + padding(ring, tail, need) + need +
		       MCA_BTL_PVAS_RECORD_STEP <=
	       ring->size;
}

/* Returns the position of the ring's begin, in the next lap. */
static uint64_t write_padding(struct mca_btl_pvas_ring *ring, uint64_t pos, uint32_t pad)
{
	union mca_btl_pvas_record_hdr head = {
		.len = pad - sizeof(head),
		.type = MCA_BTL_PVAS_RECORD_PAD,
	};
	uint64_t next = advance(ring, pos, pad);

	mca_btl_pvas_ring_clear(ring, next);
	mca_btl_pvas_ring_commit(mca_btl_pvas_ring_hdr(ring, pos), head);
	return next;
}

/* Reserve room at *@tail, and advance it. There is one caller at a time. */
static union mca_btl_pvas_record_hdr *reserve(struct mca_btl_pvas_ring *ring, uint64_t *tail,
					      uint32_t need)
{
	union mca_btl_pvas_record_hdr *head;
	uint32_t pad;

	if (!fits(ring, *tail, ring->seen, need)) {
		ring->seen = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
		if (!fits(ring, *tail, ring->seen, need))
			return NULL;
	}
	pad = padding(ring, *tail, need);
	if (pad)
		*tail = write_padding(ring, *tail, pad);
	head = mca_btl_pvas_ring_hdr(ring, *tail);
	*tail = advance(ring, *tail, need);
	if (*tail != ring->cleared)
		mca_btl_pvas_ring_clear(ring, *tail);
	return head;
}

/* Do not contend for the lock if the record would not fit anyway. */
static bool is_full(struct mca_btl_pvas_ring *ring, uint32_t need)
{
	uint64_t tail = mca_btl_pvas_ring_end(ring);

	return !fits(ring, tail, __atomic_load_n(&ring->seen, __ATOMIC_RELAXED), need) &&
	       !fits(ring, tail, __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE), need);
}

static bool lock_tail(struct mca_btl_pvas_ring *ring, uint64_t *tail)
{
	int i;

	for (i = 0; i < MAX_TRIES; i++) {
		*tail = mca_btl_pvas_ring_end(ring);
		if (__atomic_compare_exchange_n(&ring->tail, tail, *tail | 1, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return true;
		__builtin_ia32_pause();
	}
	return false;
}

union mca_btl_pvas_record_hdr *mca_btl_pvas_ring_reserve(struct mca_btl_pvas_ring *ring, size_t len)
{
	uint32_t need = mca_btl_pvas_record_size(len);
	union mca_btl_pvas_record_hdr *head;
	uint64_t tail;

	if (is_full(ring, need) || !lock_tail(ring, &tail))
		return NULL;
	head = reserve(ring, &tail, need);
	__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
	return head;
}

/* A shorter record fits before the ring's end and leaves a step free. */
static uint32_t room(const struct mca_btl_pvas_ring *ring)
{
	uint32_t to_end = ring->size - (uint32_t)ring->tail;
	uint32_t available = ring->size - used(ring, ring->tail, ring->seen);

	if (available <= MCA_BTL_PVAS_RECORD_STEP)
		return 0;
	available -= MCA_BTL_PVAS_RECORD_STEP - 1;
	return available < to_end ? available : to_end;
}

union mca_btl_pvas_record_hdr *mca_btl_pvas_ring_reserve_slowly(struct mca_btl_pvas_ring *ring,
								uint32_t need)
{
	union mca_btl_pvas_record_hdr *head = reserve(ring, &ring->tail, need);

	ring->room = room(ring);
	return head;
}

bool mca_btl_pvas_ring_stays_half_free(struct mca_btl_pvas_ring *ring, size_t len)
{
	const uint32_t need = mca_btl_pvas_record_size(len);

	if (used(ring, ring->tail, ring->seen) + need <= ring->size / 2)
		return true;
	ring->seen = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	return used(ring, ring->tail, ring->seen) + need <= ring->size / 2;
}

union mca_btl_pvas_record_hdr *mca_btl_pvas_ring_peek(struct mca_btl_pvas_ring *ring,
						      uint64_t *pos)
{
	union mca_btl_pvas_record_hdr *head, value;

	for (;;) {
		head = mca_btl_pvas_ring_hdr(ring, *pos);
		value.word = __atomic_load_n(&head->word, __ATOMIC_ACQUIRE);
		if (value.type != MCA_BTL_PVAS_RECORD_PAD)
			return value.type == MCA_BTL_PVAS_RECORD_NONE ? NULL : head;
		*pos = mca_btl_pvas_ring_next(ring, *pos, head);
	}
}

uint64_t mca_btl_pvas_ring_next(const struct mca_btl_pvas_ring *ring, uint64_t pos,
				const union mca_btl_pvas_record_hdr *head)
{
	return advance(ring, pos, mca_btl_pvas_record_size(head->len));
}
