/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A ring buffer of records in the memory of the process that reads it.
 *
 * A record begins with a header word, at a multiple of 32 bytes so that two short records
 * share a cache line, and is complete once that word is not zero. The word where the next
 * record will begin is always zero: a writer clears it when it reserves room, so the reader
 * writes nothing but @head, and that once for all records that it finds. A ring has either:
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
#include <x86intrin.h>

#define MCA_BTL_PVAS_CACHE_LINE 64

/* Records begin at multiples of it */
#define MCA_BTL_PVAS_RECORD_STEP 32

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
 * @room:	single writer only: a record shorter than this fits at @tail, as far as is known
 * @data:	constant, like @size
 * @closing:	fast box: set by the reader to reclaim it
 * @released:	fast box: set by the writer when it no longer uses it
 * @needs_barrier:	fast box, writer only: its previous record went into the queue
 */
struct mca_btl_pvas_ring {
	_Alignas(MCA_BTL_PVAS_CACHE_LINE) uint64_t head;
	_Alignas(MCA_BTL_PVAS_CACHE_LINE) uint64_t tail;
	uint64_t seen;
	uint64_t cleared;
	uint32_t room;
	_Alignas(MCA_BTL_PVAS_CACHE_LINE) char *data;
	uint32_t size;
	uint32_t closing;
	uint32_t released;
	uint32_t needs_barrier;
};

static inline uint32_t mca_btl_pvas_record_size(size_t len)
{
	return (len + sizeof(union mca_btl_pvas_record_hdr) + MCA_BTL_PVAS_RECORD_STEP - 1) &
	       ~(MCA_BTL_PVAS_RECORD_STEP - 1);
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
union mca_btl_pvas_record_hdr *mca_btl_pvas_ring_reserve_slowly(struct mca_btl_pvas_ring *ring,
								uint32_t need);

static inline void mca_btl_pvas_ring_clear(struct mca_btl_pvas_ring *ring, uint64_t pos)
{
	__atomic_store_n(&mca_btl_pvas_ring_hdr(ring, pos)->word, 0, __ATOMIC_RELAXED);
}

static inline union mca_btl_pvas_record_hdr *
mca_btl_pvas_ring_reserve_single(struct mca_btl_pvas_ring *ring, size_t len)
{
	const uint32_t need = mca_btl_pvas_record_size(len);
	union mca_btl_pvas_record_hdr *head;

	if (__builtin_expect(need >= ring->room, 0))
		return mca_btl_pvas_ring_reserve_slowly(ring, need);
	head = mca_btl_pvas_ring_hdr(ring, ring->tail);
	ring->room -= need;
	ring->tail += need;
	if (ring->tail != ring->cleared)
		mca_btl_pvas_ring_clear(ring, ring->tail);
	return head;
}

static inline bool mca_btl_pvas_same_line(uint64_t a, uint64_t b)
{
	return !((a ^ b) & ~(uint64_t)(MCA_BTL_PVAS_CACHE_LINE - 1));
}

/*
 * A store to a line that the reader's core has cached is a cache miss, and later stores
 * wait for it. So fetch the lines that the next record will need, if it is as long as
 * this one: all but the first, which the reader polls, and the word to clear after it.
 * If that word is in the first line, it is cleared together with the record.
 */
static inline void mca_btl_pvas_ring_prepare(struct mca_btl_pvas_ring *ring, uint32_t need)
{
	const uint64_t next = ring->tail, end = next + need;
	uint64_t line = (next | (MCA_BTL_PVAS_CACHE_LINE - 1)) + 1;

	if (need >= ring->room)
		return;
	if (!mca_btl_pvas_same_line(next, end)) {
		ring->cleared = end;
		mca_btl_pvas_ring_clear(ring, end);
	}
	for (; line < end; line += MCA_BTL_PVAS_CACHE_LINE)
		_m_prefetchw(mca_btl_pvas_ring_hdr(ring, line));
}

static inline void mca_btl_pvas_ring_commit_single(struct mca_btl_pvas_ring *ring,
						   union mca_btl_pvas_record_hdr *head,
						   union mca_btl_pvas_record_hdr value)
{
	mca_btl_pvas_ring_commit(head, value);
	mca_btl_pvas_ring_prepare(ring, mca_btl_pvas_record_size(value.len));
}

/* Single writer: would half of the ring be free after a record of @len bytes? */
bool mca_btl_pvas_ring_stays_half_free(struct mca_btl_pvas_ring *ring, size_t len);

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

/*
 * The reader: the record at *@pos, or NULL. Begin at @head; padding is skipped. Records
 * stay valid until mca_btl_pvas_ring_release().
 */
union mca_btl_pvas_record_hdr *mca_btl_pvas_ring_peek(struct mca_btl_pvas_ring *ring,
						      uint64_t *pos);

/* The position after the record at @pos */
uint64_t mca_btl_pvas_ring_next(const struct mca_btl_pvas_ring *ring, uint64_t pos,
				const union mca_btl_pvas_record_hdr *head);

/* The reader needs nothing before @pos any more. */
static inline void mca_btl_pvas_ring_release(struct mca_btl_pvas_ring *ring, uint64_t pos)
{
	__atomic_store_n(&ring->head, pos, __ATOMIC_RELEASE);
}

#endif /* BTL_PVAS_RING_H */
