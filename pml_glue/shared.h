/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The structures that ranks read and write in each other's memory. A change to them, or to
 * the records of ring.h, takes another MCA_PML_PVAS_MODEX_VERSION.
 */
#ifndef PML_PVAS_SHARED_H
#define PML_PVAS_SHARED_H

#include "ompi_config.h"

#include "ompi/datatype/ompi_datatype.h"

#include <linux/pvas.h>

#include "strided.h"

#ifndef MCA_PML_PVAS_MODEX_VERSION
#define MCA_PML_PVAS_MODEX_VERSION 3
#endif

/* Two cache lines: the processor fetches lines in pairs. */
#define MCA_PML_PVAS_LINES 128

/* Partitions have numbers below this. */
#define MCA_PML_PVAS_INDEXES (PVAS_MAX_TASKS + 2)
#define MCA_PML_PVAS_BITMAP_WORDS (MCA_PML_PVAS_INDEXES / 64 + 1)

/**
 * struct mca_pml_pvas_modex - what a rank publishes to its peers
 * @ring_size:	of each of its rings
 */
struct mca_pml_pvas_modex {
	uint32_t version;
	uint32_t space;
	uint32_t index;
	uint32_t gen;
	int32_t pid;
	uint32_t ring_size;
	uint64_t port;
};

/**
 * struct mca_pml_pvas_offer - a message that is left with its sender, in the sender's memory
 * @next:	in the sender's stack of returned offers; the receiver writes it
 */
struct mca_pml_pvas_offer {
	struct mca_pml_pvas_offer *next;
	const void *buf;
	size_t count;
	const struct ompi_datatype_t *type;
	size_t bytes;
};

/**
 * struct mca_pml_pvas_shared_copy - a peer's copy from our memory that we share; see fetch.c
 * @left:	pieces not claimed yet; can be negative
 * @busy:	in use by a peer
 * @size, @piece:	bytes of the message and of each piece, or blocks if @strided
 * @nr:		of pieces
 * @sender_is_last:	the sender begins at the last piece, and not at the first
 * @copied_by_sender:	copied by this rank for the peer
 */
struct mca_pml_pvas_shared_copy {
	_Alignas(MCA_PML_PVAS_LINES) int64_t left;
	_Alignas(MCA_PML_PVAS_LINES) int64_t busy;
	size_t size;
	size_t piece;
	int64_t nr;
	const char *from;
	char *to;
	bool strided;
	bool sender_is_last;
	struct mca_pml_pvas_strides from_strides;
	struct mca_pml_pvas_strides to_strides;
	int64_t copied_by_sender;
};

/**
 * struct mca_pml_pvas_port - the part of a rank that its peers use
 * @returned:	our offers that receivers have finished with: a stack, which only we empty,
 *		and always completely
 * @nr_announced:	times that a bit of @announced was set
 * @announced:	bitmap by partition: who has written to its ring
 * @finalized:	bitmap by partition: who has begun MPI_Finalize
 * @rings:	by the writer's partition; @modex.ring_size each
 */
struct mca_pml_pvas_port {
	_Alignas(MCA_PML_PVAS_LINES) struct mca_pml_pvas_offer *returned;
	_Alignas(MCA_PML_PVAS_LINES) uint64_t nr_announced;
	struct mca_pml_pvas_modex modex;
	struct mca_pml_pvas_shared_copy shared_copy;
	_Alignas(MCA_PML_PVAS_LINES) uint64_t announced[MCA_PML_PVAS_BITMAP_WORDS];
	_Alignas(MCA_PML_PVAS_LINES) uint64_t finalized[MCA_PML_PVAS_BITMAP_WORDS];
	_Alignas(MCA_PML_PVAS_LINES) char rings[];
};

/**
 * struct mca_pml_pvas_ring - one sender's messages, in the receiver's memory
 * @tail:	bytes that the reader has finished with
 * @congested:	the reader has too much that nobody received: send nothing that it must copy
 * @head:	bytes that the writer has written; read by a later writer in its partition
 * @used:	the writer has announced itself
 */
struct mca_pml_pvas_ring {
	_Alignas(MCA_PML_PVAS_LINES) uint64_t tail;
	uint32_t congested;
	_Alignas(MCA_PML_PVAS_LINES) uint64_t head;
	uint32_t used;
	_Alignas(MCA_PML_PVAS_LINES) char data[];
};

#endif /* PML_PVAS_SHARED_H */
