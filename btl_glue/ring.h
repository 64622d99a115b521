/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A ring of messages in the memory of the process that reads it.
 *
 * Records begin on a cache line with a header word; a header that is not zero
 * says that the record is complete. Positions count bytes and never wrap; the
 * size is a power of two. Two kinds of writers:
 *
 *  - many (the queue): space is taken by an atomic step of @tail. The reader
 *    leaves zeroes where a header may come to lie;
 *  - one (a fast box): the writer keeps the tail to itself, and puts a zero
 *    where its next header will be before it completes a record.
 *
 * A writer that dies between taking space and completing the record stops the
 * queue for good. Nobody waits inside here, so that the reader goes on to look
 * after its peers (see watch.c), and finds out.
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

struct pvas_ring {
	_Alignas(PVAS_LINE) uint64_t tail;	/* many writers */
	_Alignas(PVAS_LINE) uint64_t head;	/* the reader: all before is free */
	_Alignas(PVAS_LINE) char *data;
	uint64_t size;
};

static inline uint64_t pvas_ring_need(size_t len)
{
	return (len + sizeof(union pvas_head) + PVAS_LINE - 1) & ~(uint64_t)(PVAS_LINE - 1);
}

static inline union pvas_head *pvas_ring_at(const struct pvas_ring *ring, uint64_t pos)
{
	return (union pvas_head *)(ring->data + (pos & (ring->size - 1)));
}

static inline void *pvas_ring_body(union pvas_head *head)
{
	return head + 1;
}

void pvas_ring_init(struct pvas_ring *ring, char *data, uint64_t size);

/* One of many writers: room for @len bytes at @pos, or NULL. */
union pvas_head *pvas_ring_take(struct pvas_ring *ring, size_t len, uint64_t *pos);

/* The only writer, with its own @tail and what it last saw of the head. */
union pvas_head *pvas_ring_take_alone(struct pvas_ring *ring, size_t len, uint64_t *tail,
				      uint64_t *seen);

static inline void pvas_ring_complete(union pvas_head *head, union pvas_head value)
{
	__atomic_store_n(&head->word, value.word, __ATOMIC_RELEASE);
}

/* The reader: the record at the head, or NULL. Stays valid until it is dropped. */
union pvas_head *pvas_ring_peek(struct pvas_ring *ring, bool many);
void pvas_ring_drop(struct pvas_ring *ring, const union pvas_head *head, bool many);

#endif /* BTL_PVAS_RING_H */
