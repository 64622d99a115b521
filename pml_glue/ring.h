/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Records in a ring: a header of 16 bytes and the data, in steps of 32 bytes. A record is
 * there once its @state is not 0, which is stored last; before, the writer clears the @state
 * of the place behind it, so old data are never taken for a record.
 */
#ifndef PML_PVAS_RING_H
#define PML_PVAS_RING_H

#include "pml_pvas.h"

#include <string.h>

#define MCA_PML_PVAS_STEP 32U

/**
 * enum mca_pml_pvas_kind - the low bits of a record's state
 * @MCA_PML_PVAS_DATA:	the message follows
 * @MCA_PML_PVAS_REFERENCE:	struct mca_pml_pvas_reference follows
 * @MCA_PML_PVAS_SYNCHRONOUS:	likewise, and the sender must wait for a receive
 * @MCA_PML_PVAS_DIRECT:	struct mca_pml_pvas_direct follows: a reference to contiguous data
 * @MCA_PML_PVAS_RETURNED:	a pointer to an offer of the reader follows: it is done with
 * @MCA_PML_PVAS_WRAP:	the next record is at the beginning
 */
enum mca_pml_pvas_kind {
	MCA_PML_PVAS_DATA = 1,
	MCA_PML_PVAS_REFERENCE,
	MCA_PML_PVAS_SYNCHRONOUS,
	MCA_PML_PVAS_DIRECT,
	MCA_PML_PVAS_RETURNED,
	MCA_PML_PVAS_WRAP,
};

#define MCA_PML_PVAS_KIND_BITS 3
#define MCA_PML_PVAS_MAX_LENGTH (UINT32_MAX >> MCA_PML_PVAS_KIND_BITS)

/**
 * struct mca_pml_pvas_header - of a record
 * @state:	kind and length of the data, or of the message if it is _DIRECT; 0: nothing there
 * @context:	of the communicator
 * @src:	rank in the communicator
 */
struct mca_pml_pvas_header {
	uint32_t state;
	uint32_t context;
	int32_t src;
	int32_t tag;
	char data[];
};

struct mca_pml_pvas_reference {
	struct mca_pml_pvas_offer *offer;
	size_t bytes;
};

/* The receiver need not look into the offer to fetch the data. */
struct mca_pml_pvas_direct {
	struct mca_pml_pvas_offer *offer;
	const void *from;
};

struct mca_pml_pvas_returned {
	struct mca_pml_pvas_offer *offer;
};

static inline uint32_t mca_pml_pvas_record_size(size_t bytes)
{
	return (sizeof(struct mca_pml_pvas_header) + bytes + MCA_PML_PVAS_STEP - 1) &
	       ~(MCA_PML_PVAS_STEP - 1);
}

/* That of each record that has none of the message's data */
#define MCA_PML_PVAS_SMALL MCA_PML_PVAS_STEP

static inline enum mca_pml_pvas_kind mca_pml_pvas_kind_of(uint32_t state)
{
	return state & ((1 << MCA_PML_PVAS_KIND_BITS) - 1);
}

/* ring.c */
struct mca_pml_pvas_header *mca_pml_pvas_reserve_slowly(struct mca_pml_pvas_out *out,
							uint32_t size);

/* Where the next record goes */
static inline struct mca_pml_pvas_header *mca_pml_pvas_place(const struct mca_pml_pvas_out *out)
{
	return (struct mca_pml_pvas_header *)(out->ring->data + out->pos);
}

void mca_pml_pvas_is_another(const struct mca_pml_pvas_out *out);

/* Room for a record and the place behind it; NULL: there is none now. Ends us if the peer has. */
static inline struct mca_pml_pvas_header *mca_pml_pvas_reserve(struct mca_pml_pvas_out *out,
							       uint32_t size)
{
	if (__builtin_expect(__atomic_load_n(out->gen_now, __ATOMIC_RELAXED) != out->gen, 0))
		mca_pml_pvas_is_another(out);
	if (out->size - out->pos >= size && out->limit - out->head >= size + MCA_PML_PVAS_STEP)
		return mca_pml_pvas_place(out);
	return mca_pml_pvas_reserve_slowly(out, size);
}

/*
 * The line that the next record's end clears is still in the reader's cache: get it back while
 * nobody waits for it, for a processor makes its stores visible in order.
 */
#define MCA_PML_PVAS_AHEAD 64

static inline void mca_pml_pvas_prefetch_for_store(const void *p)
{
	__builtin_prefetch(p, 1);
}

static inline void mca_pml_pvas_prefetch_next(const struct mca_pml_pvas_out *out, uint32_t size)
{
	uint32_t at = out->pos + MCA_PML_PVAS_AHEAD, end = at + size;

	if (end > out->size || out->limit - out->head < size + 2 * MCA_PML_PVAS_AHEAD)
		return;
	for (; at < end; at += MCA_PML_PVAS_AHEAD)
		mca_pml_pvas_prefetch_for_store(out->ring->data + at);
}

static inline void mca_pml_pvas_store_record(struct mca_pml_pvas_out *out,
					     struct mca_pml_pvas_header *header, uint32_t size,
					     uint32_t state)
{
	uint32_t next = out->pos + size;

	if (next == out->size)
		next = 0;
	mca_pml_pvas_fault_point("record written");
	((struct mca_pml_pvas_header *)(out->ring->data + next))->state = 0;
	mca_pml_pvas_fault_point("next state cleared");
	out->pos = next;
	out->head += size;
	out->ring->head = out->head;
	mca_pml_pvas_fault_point("head stored");
	__atomic_store_n(&header->state, state, __ATOMIC_RELEASE);
	mca_pml_pvas_fault_point("record published");
	mca_pml_pvas_prefetch_next(out, size);
}

static inline struct mca_pml_pvas_header *mca_pml_pvas_next_record(struct mca_pml_pvas_in *in)
{
	return (struct mca_pml_pvas_header *)(in->ring->data + in->pos);
}

/* The record was read. The writer is told now and then. */
static inline void mca_pml_pvas_pass_record(struct mca_pml_pvas_in *in, uint32_t size)
{
	in->pos += size;
	if (in->pos == in->size)
		in->pos = 0;
	in->read += size;
	if (in->read - in->told < in->size / 4)
		return;
	in->told = in->read;
	mca_pml_pvas_fault_point("records read");
	__atomic_store_n(&in->ring->tail, in->read, __ATOMIC_RELEASE);
	mca_pml_pvas_fault_point("tail stored");
}

/* Up to 16 bytes without a call */
static inline void mca_pml_pvas_copy_short(void *to, const void *from, size_t bytes)
{
	char *t = to;
	const char *f = from;

	if (bytes > 16) {
		memcpy(t, f, bytes);
	} else if (bytes >= 8) {
		uint64_t first, last;

		memcpy(&first, f, 8);
		memcpy(&last, f + bytes - 8, 8);
		memcpy(t, &first, 8);
		memcpy(t + bytes - 8, &last, 8);
	} else if (bytes >= 4) {
		uint32_t first, last;

		memcpy(&first, f, 4);
		memcpy(&last, f + bytes - 4, 4);
		memcpy(t, &first, 4);
		memcpy(t + bytes - 4, &last, 4);
	} else {
		for (; bytes; bytes--)
			t[bytes - 1] = f[bytes - 1];
	}
}

/* @bytes is no more than there is room for. */
static inline void mca_pml_pvas_unpack_inline(void *buf, size_t count,
					      const struct ompi_datatype_t *type,
					      const void *data, size_t bytes)
{
	if (mca_pml_pvas_contiguous(type, count))
		mca_pml_pvas_copy_short((char *)buf + type->super.true_lb, data, bytes);
	else if (bytes)
		mca_pml_pvas_unpack(data, bytes, buf, count, type);
}

#endif /* PML_PVAS_RING_H */
