/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A ring buffer of records in the memory of the process that reads it.
 *
 * A record begins on a cache line with a header word, and is complete once that word
 * is not zero. The word where the next record will begin is always zero: a writer clears
 * it when it reserves room, so the reader writes nothing but @head. A ring has either:
 *
 *  - many writers (the queue): bit 0 of @tail is a lock, held for a few stores;
 *  - a single writer (a fast box): after a record, it also clears and prefetches the
 *    lines for the next one, out of the latency path.
 *
 * A writer that ends between reserving and committing a record blocks the queue for good.
 * No function here waits, so the reader goes on to check its peers (peer_failure.c), and
 * reports it.
 *
 * A position has a lap number in its upper half and an offset in its lower half, so the
 * size need not be a power of two.
 */
#ifndef BTL_PVAS_RING_H
#define BTL_PVAS_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MCA_BTL_PVAS_CACHE_LINE 64

enum mca_btl_pvas_record_type {
	MCA_BTL_PVAS_RECORD_NONE,
	MCA_BTL_PVAS_RECORD_PAD,	  /* unused up to the end of the ring */
	MCA_BTL_PVAS_RECORD_DATA,	  /* a fragment */
	MCA_BTL_PVAS_RECORD_REFERENCE,	  /* the address of a fragment in the sender's memory */
	MCA_BTL_PVAS_RECORD_FBOX_REQUEST, /* the sender requests a fast box */
	MCA_BTL_PVAS_RECORD_BARRIER,	  /* wait until the queue was read up to a position */
};

/* A record's header: one word, so that one store commits the record */
union mca_btl_pvas_record_hdr {
	uint64_t word;
	struct {
		uint32_t len;	/* of the body */
		uint16_t from;	/* the sender's partition */
		uint8_t tag;
		uint8_t type;
	};
};

/**
 * struct mca_btl_pvas_ring
 * @head:	written by the reader: all before it is free
 * @tail:	written by writers: where the next record begins; odd while locked
 * @seen:	writers' copy of @head
 * @cleared:	single writer only: a position beyond @tail that is cleared already
 * @data:	constant, like @size
 */
struct mca_btl_pvas_ring {
	_Alignas(MCA_BTL_PVAS_CACHE_LINE) uint64_t head;
	_Alignas(MCA_BTL_PVAS_CACHE_LINE) uint64_t tail;
	uint64_t seen;
	uint64_t cleared;
	_Alignas(MCA_BTL_PVAS_CACHE_LINE) char *data;
	uint32_t size;
};

static inline uint32_t mca_btl_pvas_record_size(size_t len)
{
	return (len + sizeof(union mca_btl_pvas_record_hdr) + MCA_BTL_PVAS_CACHE_LINE - 1) &
	       ~(MCA_BTL_PVAS_CACHE_LINE - 1);
}

/* The longest record that always fits into an empty ring, wherever its head is */
static inline uint32_t mca_btl_pvas_ring_max_record(const struct mca_btl_pvas_ring *ring)
{
	return ring->size / 2;
}

static inline union mca_btl_pvas_record_hdr *
mca_btl_pvas_ring_hdr(const struct mca_btl_pvas_ring *ring, uint64_t pos)
{
	return (union mca_btl_pvas_record_hdr *)(ring->data + (uint32_t)pos);
}

static inline bool mca_btl_pvas_ring_before(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) < 0;
}

static inline void *mca_btl_pvas_record_body(union mca_btl_pvas_record_hdr *head)
{
	return head + 1;
}

void mca_btl_pvas_ring_init(struct mca_btl_pvas_ring *ring, char *data, size_t bytes);

/* One of many writers: reserve room for @len bytes. NULL: none, or @tail stays locked. */
union mca_btl_pvas_record_hdr *mca_btl_pvas_ring_reserve(struct mca_btl_pvas_ring *ring,
							 size_t len);

static inline void mca_btl_pvas_ring_commit(union mca_btl_pvas_record_hdr *head,
					    union mca_btl_pvas_record_hdr value)
{
	__atomic_store_n(&head->word, value.word, __ATOMIC_RELEASE);
}

/* The same for a single writer */
union mca_btl_pvas_record_hdr *mca_btl_pvas_ring_reserve_single(struct mca_btl_pvas_ring *ring,
								size_t len);
void mca_btl_pvas_ring_commit_single(struct mca_btl_pvas_ring *ring,
				     union mca_btl_pvas_record_hdr *head,
				     union mca_btl_pvas_record_hdr value);

/* Single writer: has the reader consumed all records? */
static inline bool mca_btl_pvas_ring_empty(struct mca_btl_pvas_ring *ring)
{
	ring->seen = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	return ring->seen == ring->tail;
}

/* Writers: all records that this writer has committed lie before this position. */
static inline uint64_t mca_btl_pvas_ring_end(const struct mca_btl_pvas_ring *ring)
{
	return __atomic_load_n(&ring->tail, __ATOMIC_RELAXED) & ~1ULL;
}

/* The reader: the record at the head, or NULL. Valid until it is consumed. */
union mca_btl_pvas_record_hdr *mca_btl_pvas_ring_peek(struct mca_btl_pvas_ring *ring);
void mca_btl_pvas_ring_consume(struct mca_btl_pvas_ring *ring,
			       const union mca_btl_pvas_record_hdr *head);

#endif /* BTL_PVAS_RING_H */
