/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A ring of messages in the memory of the process that reads it.
 *
 * Records begin on a cache line with a header word; a header that is not zero
 * says that the record is complete. The word where the next record will begin
 * is always zero: whoever takes room for a record puts it there beforehand, so
 * the reader writes nothing but @head. Two kinds of writers:
 *
 *  - many (the queue): who takes room holds bit 0 of @tail, for a few stores;
 *  - one (a fast box): it also prepares the place after the next record while
 *    it has nothing better to do.
 *
 * A writer that dies between taking room and completing the record stops the
 * queue for good. Nobody waits inside here, so that the reader goes on to look
 * after its peers (see watch.c), and finds out.
 *
 * A position is a lap in the upper half and an offset in the lower, so that the
 * size need not be a power of two.
 */
#ifndef BTL_PVAS_RING_H
#define BTL_PVAS_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PVAS_LINE 64

enum pvas_kind {
	PVAS_KIND_NONE,
	PVAS_KIND_PAD,		/* nothing up to the end of the ring */
	PVAS_KIND_DATA,		/* a fragment */
	PVAS_KIND_REF,		/* where a fragment lies in the sender's memory */
	PVAS_KIND_ASK,		/* the sender would like to have a fast box */
	PVAS_KIND_AFTER,	/* not before the queue was read up to here */
};

/* What precedes a record's body; as one word, so that it is stored at once */
union pvas_head {
	uint64_t word;
	struct {
		uint32_t len;	/* of the body */
		uint16_t from;	/* the sender's partition */
		uint8_t tag;
		uint8_t kind;
	};
};

/**
 * struct pvas_ring
 * @head:	the reader's: all before is free
 * @tail:	the writers': where the next record begins; odd while it moves
 * @seen:	the writers': @head when they last looked
 * @cleared:	the one writer's: a position beyond @tail whose word is zero, too
 * @data:	never changes, nor does @size
 */
struct pvas_ring {
	_Alignas(PVAS_LINE) uint64_t head;
	_Alignas(PVAS_LINE) uint64_t tail;
	uint64_t seen;
	uint64_t cleared;
	_Alignas(PVAS_LINE) char *data;
	uint32_t size;
};

static inline uint32_t pvas_ring_need(size_t len)
{
	return (len + sizeof(union pvas_head) + PVAS_LINE - 1) & ~(PVAS_LINE - 1);
}

/* The longest record that an empty ring has room for, wherever its head is */
static inline uint32_t pvas_ring_longest(const struct pvas_ring *ring)
{
	return ring->size / 2;
}

static inline union pvas_head *pvas_ring_at(const struct pvas_ring *ring, uint64_t pos)
{
	return (union pvas_head *)(ring->data + (uint32_t)pos);
}

static inline bool pvas_ring_before(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) < 0;
}

static inline void *pvas_ring_body(union pvas_head *head)
{
	return head + 1;
}

void pvas_ring_init(struct pvas_ring *ring, char *data, size_t bytes);

/* One of many writers: room for @len bytes, or NULL. */
union pvas_head *pvas_ring_take(struct pvas_ring *ring, size_t len);

static inline void pvas_ring_complete(union pvas_head *head, union pvas_head value)
{
	__atomic_store_n(&head->word, value.word, __ATOMIC_RELEASE);
}

/* The same for the only writer. */
union pvas_head *pvas_ring_take_alone(struct pvas_ring *ring, size_t len);
void pvas_ring_complete_alone(struct pvas_ring *ring, union pvas_head *head,
			      union pvas_head value);

/* The only writer: was all that it wrote read? */
static inline bool pvas_ring_empty(struct pvas_ring *ring)
{
	ring->seen = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	return ring->seen == ring->tail;
}

/* A writer: where a record taken now would begin, or a little before. */
static inline uint64_t pvas_ring_end(const struct pvas_ring *ring)
{
	return __atomic_load_n(&ring->tail, __ATOMIC_RELAXED) & ~1ULL;
}

/* The reader: the record at the head, or NULL. Stays valid until it is dropped. */
union pvas_head *pvas_ring_peek(struct pvas_ring *ring);
void pvas_ring_drop(struct pvas_ring *ring, const union pvas_head *head);

#endif /* BTL_PVAS_RING_H */
