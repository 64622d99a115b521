/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory that the ranks of a communicator share, and how they use it.
 *
 * Protocol. The operations of a communicator are numbered, alike in all of its ranks. In
 * operation n a rank *posts* in one of its lines either its data, if they fit there or into
 * an *annex*, or a description of its buffers; peers that need the data wait for the
 * post, fetch them, and *finish* n in a line of their own. A rank whose buffers were described
 * returns when its readers have finished. Data that were copied may be read later: the rank
 * checks that they were before it uses that line again, some operations later, and the posts
 * of an operation between have most often told it already. A root's data go to a slot that all
 * ranks read, or, up to some KiB, through a ring: it waits for the others only when these are
 * used up. No line or slot has two writers, but for the counters of a shared copy.
 * An operation that its length may have passed on is numbered, too: a rank that does so posts
 * MCA_COLL_PVAS_PASSED, has finished it at once, and may run ahead as far as it likes.
 *
 * Lines, slots, ring and annexes are a *block* in the memory of the communicator's rank 0. It
 * is made by the first operation, and unmapped when all ranks have freed the communicator.
 */
#ifndef COLL_PVAS_BLOCK_H
#define COLL_PVAS_BLOCK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define MCA_COLL_PVAS_CACHE_LINE 64
#define MCA_COLL_PVAS_INLINE 48
#define MCA_COLL_PVAS_SLOTS 64
#define MCA_COLL_PVAS_SEGMENTS 2

/* Most bytes of a segment; the longest record must fit even if there are very many ranks. */
#define MCA_COLL_PVAS_SEGMENT (16 << 10)

/* The longest record of which each rank reads only a part */
#define MCA_COLL_PVAS_PARTS (4 << 10)

/* Lines of a rank: in a small communicator there is room for more. */
#define MCA_COLL_PVAS_LINES 32
#define MCA_COLL_PVAS_SOME_LINES 8
#define MCA_COLL_PVAS_LEAST_LINES 2
#define MCA_COLL_PVAS_FEW_RANKS 8
#define MCA_COLL_PVAS_SOME_RANKS 64

/*
 * Annexes of a rank, at most, and their size. They are used in pieces, too, as many as there are
 * lines, so that a sender of little data can run ahead as far as with what fits into lines.
 */
#define MCA_COLL_PVAS_ANNEXES 4
#define MCA_COLL_PVAS_ANNEX (2 << 10)

/* The same for non-blocking operations */
#define MCA_COLL_PVAS_NBC_LINES 32
#define MCA_COLL_PVAS_NBC_ANNEXES 8

/* Persistent operations that share a block, of which each has a line */
#define MCA_COLL_PVAS_PERSISTENT_LINES 256

/* Bytes of a block beside two lines for each rank */
#define MCA_COLL_PVAS_BLOCK_EXTRA (64 << 10)

/*
 * How data are posted, in the low byte of @word. Up to MCA_COLL_PVAS_INLINE it is their length;
 * from MCA_COLL_PVAS_INLINE_V on, too, with a table in front of them, of bytes.
 */
enum mca_coll_pvas_kind {
	MCA_COLL_PVAS_INLINE_V = 0x80,
	MCA_COLL_PVAS_PASSED = 0xf5,	/* nothing: the operation was passed on, for its length */
	/* Copied, with a table of where each block begins, in front of them or in the line */
	MCA_COLL_PVAS_COPY_V = 0xf6,
	MCA_COLL_PVAS_COPY_T,
	MCA_COLL_PVAS_COPY,		/* without */
	MCA_COLL_PVAS_BUFFERS_WA,	/* as BUFFERS_W, with displacements of MPI_Aint */
	MCA_COLL_PVAS_SHARE = 0xfb,
	MCA_COLL_PVAS_BUFFERS_SAME,	/* the same block for all */
	MCA_COLL_PVAS_BUFFERS = 0xfe,
	MCA_COLL_PVAS_BUFFERS_W,	/* a datatype for each block */
};

/**
 * struct mca_coll_pvas_buffers - a description of a rank's buffers
 * @buf:	what peers read
 * @result:	where peers put results, in reductions
 * @type:	the datatype, or an array of them
 * @counts:	for each block, or NULL: all have @count
 * @displs:	likewise, in extents of @type; for an array of types, in bytes: int or MPI_Aint
 */
struct mca_coll_pvas_buffers {
	char *buf;
	char *result;
	const void *type;
	const int *counts;
	const void *displs;
	size_t count;
};

/* As many elements for each rank */
static inline struct mca_coll_pvas_buffers mca_coll_pvas_equal_blocks(const void *buf, int count,
								      const void *type)
{
	return (struct mca_coll_pvas_buffers) {
		.buf = (char *)buf, .type = type, .count = count,
	};
}

/* As many for each rank as @counts says, where @displs says; @type: one, or one for each */
static inline struct mca_coll_pvas_buffers mca_coll_pvas_runs(const void *buf, const int *counts,
							      const void *displs,
							      const void *type)
{
	return (struct mca_coll_pvas_buffers) {
		.buf = (char *)buf, .type = type, .counts = counts, .displs = displs,
	};
}

/**
 * struct mca_coll_pvas_share - a copy that two ranks make together; see share.c
 * @at:		the poster's data
 * @piece:	bytes in each piece but the last
 * @claimed:	bytes that one of them copies or has copied; can exceed @bytes
 */
struct mca_coll_pvas_share {
	char *at;
	size_t bytes;
	size_t piece;
	_Atomic size_t claimed;
	_Atomic size_t copied;
};

/* Data in the ring or an annex, and where */
struct mca_coll_pvas_record {
	char *at;
	size_t length;
};

/* Blocks fewer than this have their table in the line. */
#define MCA_COLL_PVAS_TABLE 16

/* Where each block begins, and the last one ends */
struct mca_coll_pvas_table {
	struct mca_coll_pvas_record record;
	uint16_t begins[MCA_COLL_PVAS_TABLE];
};

/**
 * struct mca_coll_pvas_line - a cache line with one writer
 * @word:	number of the operation, and enum mca_coll_pvas_kind
 * @finished:	the last operation that the writer of this line has finished
 * @passed:	number of an operation that was passed on; of a bcast, in the low 16 bits its length
 */
struct mca_coll_pvas_line {
	_Alignas(MCA_COLL_PVAS_CACHE_LINE) _Atomic uint64_t word;
	_Atomic uint64_t finished;
	_Alignas(16) union {
		char data[MCA_COLL_PVAS_INLINE];
		_Atomic uint64_t passed;
		struct mca_coll_pvas_buffers buffers;
		struct mca_coll_pvas_record record;
		struct mca_coll_pvas_table table;
		struct mca_coll_pvas_share share;
	};
};
_Static_assert(sizeof(struct mca_coll_pvas_line) == MCA_COLL_PVAS_CACHE_LINE, "one cache line");

/* The lines in which ranks post in an operation: that of rank r is @first[r * @stride]. */
struct mca_coll_pvas_posts {
	struct mca_coll_pvas_line *first;
	size_t stride;
};

/* A rank, as a task */
struct mca_coll_pvas_member {
	uint32_t index;
	uint32_t gen;
};

/**
 * struct mca_coll_pvas_block - memory that the ranks of a communicator share
 * @left:	ranks that have freed the communicator
 * @next:	in the owner's list of blocks that not all ranks have left
 *
 * The lines of each rank follow, the slots, the ring and the annexes.
 */
struct mca_coll_pvas_block {
	_Alignas(MCA_COLL_PVAS_CACHE_LINE) _Atomic unsigned int left;
	unsigned int size;
	size_t bytes;
	struct mca_coll_pvas_block *next;
};

#endif
