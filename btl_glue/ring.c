// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rings of messages: see ring.h. */
#include "ring.h"

#include <x86intrin.h>

/* How often to try for @tail: it is held for a few stores, or by one that doesn't run. */
#define TRIES 64

#define LAP (1ULL << 32)

void pvas_ring_init(struct pvas_ring *ring, char *data, size_t bytes)
{
	ring->head = 0;
	ring->tail = 0;
	ring->seen = 0;
	/* No position there is */
	ring->cleared = UINT64_MAX;
	ring->data = data;
	ring->size = bytes & ~(size_t)(PVAS_LINE - 1);
}

static uint64_t advance(const struct pvas_ring *ring, uint64_t pos, uint32_t bytes)
{
	pos += bytes;
	return (uint32_t)pos < ring->size ? pos : pos - (uint32_t)pos + LAP;
}

/* From @head to @tail, which is less than a lap away */
static uint32_t used(const struct pvas_ring *ring, uint64_t tail, uint64_t head)
{
	uint32_t bytes = (uint32_t)tail - (uint32_t)head;

	return (tail ^ head) >> 32 ? bytes + ring->size : bytes;
}

/* Bytes to skip so that @need bytes at @pos lie in one piece. */
static uint32_t pad_before(const struct pvas_ring *ring, uint64_t pos, uint32_t need)
{
	uint32_t left = ring->size - (uint32_t)pos;

	return need > left ? left : 0;
}

/* One line stays free: the word after the last record must not be one still to be read. */
static bool fits(const struct pvas_ring *ring, uint64_t tail, uint64_t head, uint32_t need)
{
	return used(ring, tail, head) + pad_before(ring, tail, need) + need + PVAS_LINE <=
	       ring->size;
}

static void clear_head(struct pvas_ring *ring, uint64_t pos)
{
	__atomic_store_n(&pvas_ring_at(ring, pos)->word, 0, __ATOMIC_RELAXED);
}

/* Returns where the ring begins anew. */
static uint64_t write_pad(struct pvas_ring *ring, uint64_t pos, uint32_t pad)
{
	union pvas_head head = {
		.len = pad - sizeof(head),
		.kind = PVAS_KIND_PAD,
	};
	uint64_t next = advance(ring, pos, pad);

	clear_head(ring, next);
	pvas_ring_complete(pvas_ring_at(ring, pos), head);
	return next;
}

/* Room at *@tail, which moves. There is one caller at a time. */
static union pvas_head *reserve(struct pvas_ring *ring, uint64_t *tail, uint32_t need)
{
	union pvas_head *head;
	uint32_t pad;

	if (!fits(ring, *tail, ring->seen, need)) {
		ring->seen = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
		if (!fits(ring, *tail, ring->seen, need))
			return NULL;
	}
	pad = pad_before(ring, *tail, need);
	if (pad)
		*tail = write_pad(ring, *tail, pad);
	head = pvas_ring_at(ring, *tail);
	*tail = advance(ring, *tail, need);
	if (*tail != ring->cleared)
		clear_head(ring, *tail);
	return head;
}

/* Who would find no room must not disturb those that could. */
static bool is_full(struct pvas_ring *ring, uint32_t need)
{
	uint64_t tail = pvas_ring_end(ring);

	return !fits(ring, tail, __atomic_load_n(&ring->seen, __ATOMIC_RELAXED), need) &&
	       !fits(ring, tail, __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE), need);
}

static bool hold_tail(struct pvas_ring *ring, uint64_t *tail)
{
	int i;

	for (i = 0; i < TRIES; i++) {
		*tail = pvas_ring_end(ring);
		if (__atomic_compare_exchange_n(&ring->tail, tail, *tail | 1, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return true;
		__builtin_ia32_pause();
	}
	return false;
}

union pvas_head *pvas_ring_take(struct pvas_ring *ring, size_t len)
{
	uint32_t need = pvas_ring_need(len);
	union pvas_head *head;
	uint64_t tail;

	if (is_full(ring, need) || !hold_tail(ring, &tail))
		return NULL;
	head = reserve(ring, &tail, need);
	__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
	return head;
}

union pvas_head *pvas_ring_take_alone(struct pvas_ring *ring, size_t len)
{
	return reserve(ring, &ring->tail, pvas_ring_need(len));
}

/*
 * A store into a line that the reader has seen costs a trip to its core, and
 * stores are done in their order. So what the next record will need, if it is as
 * long as this one, is fetched now: its lines but the first, which the reader
 * looks at, and the place for the zero after it.
 */
static void prepare_next(struct pvas_ring *ring, uint32_t need)
{
	const char *next = (const char *)pvas_ring_at(ring, ring->tail);
	uint32_t i;

	if (pad_before(ring, ring->tail, need) || !fits(ring, ring->tail, ring->seen, need))
		return;
	ring->cleared = advance(ring, ring->tail, need);
	clear_head(ring, ring->cleared);
	for (i = PVAS_LINE; i < need; i += PVAS_LINE)
		_m_prefetchw((void *)(next + i));
}

void pvas_ring_complete_alone(struct pvas_ring *ring, union pvas_head *head,
			      union pvas_head value)
{
	pvas_ring_complete(head, value);
	prepare_next(ring, pvas_ring_need(value.len));
}

union pvas_head *pvas_ring_peek(struct pvas_ring *ring)
{
	union pvas_head *head, value;

	for (;;) {
		head = pvas_ring_at(ring, ring->head);
		value.word = __atomic_load_n(&head->word, __ATOMIC_ACQUIRE);
		if (value.kind != PVAS_KIND_PAD)
			return value.kind == PVAS_KIND_NONE ? NULL : head;
		pvas_ring_drop(ring, head);
	}
}

void pvas_ring_drop(struct pvas_ring *ring, const union pvas_head *head)
{
	__atomic_store_n(&ring->head, advance(ring, ring->head, pvas_ring_need(head->len)),
			 __ATOMIC_RELEASE);
}
