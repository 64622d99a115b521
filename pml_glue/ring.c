// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The port, and the rings in it. There is a ring for each partition of the space, so a sender
 * needs no permission to begin; pages that nobody writes to take no memory.
 */
#include "ring.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "opal/util/proc.h"

#define component mca_pml_pvas_component

#define PAGE 4096UL

/* A longer record would often leave much of the ring's end unused. */
#define LONGEST_RECORD(size) ((size) / 3)

/* ---- the port ---- */

static void *map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* A huge page would hold hundreds of rings, most of them unused. */
	madvise(p, bytes, MADV_NOHUGEPAGE);
	/* A fork child has no use for it, and copy-on-write would cost us page faults. */
	madvise(p, bytes, MADV_DONTFORK);
	return p;
}

bool mca_pml_pvas_make_port(void)
{
	component.port_bytes = sizeof(*component.port) +
			       (size_t)MCA_PML_PVAS_INDEXES * component.ring_size;
	component.port = map(component.port_bytes);
	component.comms = map(MCA_PML_PVAS_CONTEXTS * sizeof(*component.comms));
	if (component.port && component.comms)
		return true;
	if (component.port)
		munmap(component.port, component.port_bytes);
	if (component.comms)
		munmap(component.comms, MCA_PML_PVAS_CONTEXTS * sizeof(*component.comms));
	return false;
}

static struct mca_pml_pvas_ring *ring_of(struct mca_pml_pvas_port *port, uint32_t ring_size,
					 uint32_t writer)
{
	return (struct mca_pml_pvas_ring *)(port->rings + (size_t)writer * ring_size);
}

/* ---- the reader ---- */

static bool have(uint32_t index)
{
	unsigned int i;

	for (i = 0; i < component.nr_ins; i++)
		if (component.ins[i]->index == index)
			return true;
	return false;
}

static void add_writer(uint32_t index)
{
	struct mca_pml_pvas_in **ins, *in;

	if (have(index))
		return;
	in = calloc(1, sizeof(*in));
	ins = realloc(component.ins, (component.nr_ins + 1) * sizeof(*ins));
	if (ins)
		component.ins = ins;
	if (!in || !ins) {
		/* Its messages stay in the ring until there is memory. */
		free(in);
		component.seen--;
		return;
	}
	in->index = index;
	in->ring = ring_of(component.port, component.ring_size, index);
	in->size = component.ring_size - sizeof(*in->ring);
	ins[component.nr_ins++] = in;
}

/* Some peers have announced that they write. */
void mca_pml_pvas_find_writers(void)
{
	unsigned int i;
	uint64_t word;

	component.seen = __atomic_load_n(&component.port->nr_announced, __ATOMIC_ACQUIRE);
	for (i = 0; i < MCA_PML_PVAS_BITMAP_WORDS; i++) {
		word = __atomic_load_n(&component.port->announced[i], __ATOMIC_ACQUIRE);
		for (; word; word &= word - 1)
			add_writer(i * 64 + __builtin_ctzll(word));
	}
}

void mca_pml_pvas_free_readers(void)
{
	unsigned int i;

	for (i = 0; i < component.nr_ins; i++)
		free(component.ins[i]);
	free(component.ins);
	component.ins = NULL;
	component.nr_ins = 0;
}

/* ---- the writer ---- */

static void announce(struct mca_pml_pvas_port *port, struct mca_pml_pvas_ring *ring)
{
	const uint32_t self = component.faults.index;

	if (ring->used)
		return;
	mca_pml_pvas_fault_point("ring found");
	ring->used = 1;
	mca_pml_pvas_fault_point("ring used");
	__atomic_or_fetch(&port->announced[self / 64], 1ULL << (self % 64), __ATOMIC_RELEASE);
	mca_pml_pvas_fault_point("announced");
	__atomic_add_fetch(&port->nr_announced, 1, __ATOMIC_RELEASE);
	mca_pml_pvas_fault_point("announcement counted");
}

/* The caller holds the lock. An earlier task in our partition may have used the ring. */
struct mca_pml_pvas_out *mca_pml_pvas_new_out(struct mca_pml_pvas_peer *peer)
{
	struct mca_pml_pvas_out *out = calloc(1, sizeof(*out));
	uint32_t ring_size;

	if (!out)
		return NULL;
	component.touching = true;
	ring_size = peer->port->modex.ring_size;
	out->ring = ring_of(peer->port, ring_size, component.faults.index);
	out->gen_now = &component.faults.table[peer->index].gen;
	out->gen = peer->gen;
	out->size = ring_size - sizeof(*out->ring);
	out->head = out->ring->head;
	out->pos = out->head % out->size;
	out->limit = out->head;
	announce(peer->port, out->ring);
	component.touching = false;
	out->inline_limit = LONGEST_RECORD(out->size) - sizeof(struct mca_pml_pvas_header);
	if (out->inline_limit > component.copy_limit)
		out->inline_limit = component.copy_limit;
	out->last_pending = &out->pending;
	peer->out = out;
	return out;
}

/* Its next program may have memory where the ring was, and a store there would not fault. */
void mca_pml_pvas_is_another(const struct mca_pml_pvas_out *out)
{
	const struct mca_btl_pvas_faults *faults = &component.faults;
	uint32_t index = (uint32_t)((uintptr_t)out->ring >> faults->shift);

	mca_pml_pvas_lost(index);
}

static void refresh(struct mca_pml_pvas_out *out)
{
	out->limit = __atomic_load_n(&out->ring->tail, __ATOMIC_ACQUIRE) + out->size;
	out->congested = __atomic_load_n(&out->ring->congested, __ATOMIC_RELAXED);
}

/* The end is too short, or the reader seemed not to be far enough. */
struct mca_pml_pvas_header *mca_pml_pvas_reserve_slowly(struct mca_pml_pvas_out *out,
							uint32_t size)
{
	const uint32_t end = out->size - out->pos;
	const uint32_t skip = end < size ? end : 0;

	if (out->limit - out->head < skip + size + MCA_PML_PVAS_STEP)
		refresh(out);
	if (out->limit - out->head < skip + size + MCA_PML_PVAS_STEP)
		return NULL;
	if (skip)
		mca_pml_pvas_store_record(out, mca_pml_pvas_place(out), skip, MCA_PML_PVAS_WRAP);
	return mca_pml_pvas_place(out);
}
