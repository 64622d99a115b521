// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rings of messages: see ring.h. */
#include "ring.h"

void pvas_ring_init(struct pvas_ring *ring, char *data, uint64_t size)
{
	ring->tail = 0;
	ring->head = 0;
	ring->data = data;
	ring->size = size;
}

/* Bytes to skip so that @need bytes at @pos lie in one piece. */
static uint64_t pad_before(const struct pvas_ring *ring, uint64_t pos, uint64_t need)
{
	uint64_t left = ring->size - (pos & (ring->size - 1));

	return need > left ? left : 0;
}

static void complete_pad(struct pvas_ring *ring, uint64_t pos, uint64_t pad)
{
	union pvas_head head = {
		.len = pad - sizeof(head),
		.kind = PVAS_KIND_PAD,
	};

	pvas_ring_complete(pvas_ring_at(ring, pos), head);
}

union pvas_head *pvas_ring_take(struct pvas_ring *ring, size_t len, uint64_t *pos)
{
	uint64_t need = pvas_ring_need(len);
	uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
	uint64_t pad;

	do {
		pad = pad_before(ring, tail, need);
		if (tail + pad + need - __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) > ring->size)
			return NULL;
	} while (!__atomic_compare_exchange_n(&ring->tail, &tail, tail + pad + need, true,
					      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	if (pad)
		complete_pad(ring, tail, pad);
	*pos = tail + pad;
	return pvas_ring_at(ring, *pos);
}

static void clear_head(struct pvas_ring *ring, uint64_t pos)
{
	__atomic_store_n(&pvas_ring_at(ring, pos)->word, 0, __ATOMIC_RELAXED);
}

union pvas_head *pvas_ring_take_alone(struct pvas_ring *ring, size_t len, uint64_t *tail,
				      uint64_t *seen)
{
	uint64_t need = pvas_ring_need(len);
	uint64_t pad = pad_before(ring, *tail, need);
	/* One line more: the next header must not be one that is still read. */
	uint64_t end = *tail + pad + need + PVAS_LINE;
	union pvas_head *head;

	if (end - *seen > ring->size) {
		*seen = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
		if (end - *seen > ring->size)
			return NULL;
	}
	if (pad) {
		clear_head(ring, *tail + pad);
		complete_pad(ring, *tail, pad);
		*tail += pad;
	}
	head = pvas_ring_at(ring, *tail);
	*tail += need;
	clear_head(ring, *tail);
	return head;
}

union pvas_head *pvas_ring_peek(struct pvas_ring *ring, bool many)
{
	union pvas_head *head, value;

	for (;;) {
		head = pvas_ring_at(ring, ring->head);
		value.word = __atomic_load_n(&head->word, __ATOMIC_ACQUIRE);
		if (value.kind != PVAS_KIND_PAD)
			return value.kind == PVAS_KIND_NONE ? NULL : head;
		pvas_ring_drop(ring, head, many);
	}
}

void pvas_ring_drop(struct pvas_ring *ring, const union pvas_head *head, bool many)
{
	uint64_t end = ring->head + pvas_ring_need(head->len);
	uint64_t pos;

	if (many)
		for (pos = ring->head; pos < end; pos += PVAS_LINE)
			clear_head(ring, pos);
	__atomic_store_n(&ring->head, end, __ATOMIC_RELEASE);
}
