/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The collective component "pvas" for Open MPI 4.1: ranks of a communicator that are tasks
 * of one PVAS space operate straight on each other's buffers. Datatypes and arrays of counts
 * are read where the peer has them, too.
 *
 *  component.c   parameters, counters, open and close
 *  peers.c       which processes are in our space, and do they still run
 *  module.c      selection, and what is passed on to other components
 *  block.c       the memory that the ranks of a communicator share
 *  wait.c        waiting for peers, and for those that have ended
 *  post.c        saying where data are, and fetching them
 *  share.c       long copies, made by two ranks together
 *  copy.c        copies between any two datatypes
 *  rooted.c      bcast, scatter(v), gather(v)
 *  exchange.c    barrier, allgather(v), alltoall(v, w)
 *  fold.c        the order in which contributions are combined
 *  reduce.c      reduce, allreduce, reduce_scatter(_block)
 *  scan.c        scan, exscan
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
 *
 * Lines, slots, ring and annexes are a *block* in the memory of the communicator's rank 0. It
 * is made by the first operation, and unmapped when all ranks have freed the communicator.
 */
#ifndef COLL_PVAS_H
#define COLL_PVAS_H

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/op/op.h"

#include <linux/pvas.h>
#include <stdatomic.h>

#include "../btl_glue/common.h"

#define MCA_COLL_PVAS_NAME "coll pvas"
#define MCA_COLL_PVAS_MODEX_VERSION 1

/**
 * struct mca_coll_pvas_modex - what a rank publishes to its peers
 * @settings:	parameters that all ranks of a communicator must have in common
 */
struct mca_coll_pvas_modex {
	uint32_t version;
	uint32_t space;
	uint32_t index;
	uint32_t gen;
	int32_t pid;
	uint32_t settings[5];
};

/* ---- the block ---- */

#define MCA_COLL_PVAS_CACHE_LINE 64
#define MCA_COLL_PVAS_INLINE 48
#define MCA_COLL_PVAS_SLOTS 64
#define MCA_COLL_PVAS_SEGMENTS 4

/* Most bytes of a segment; the longest record must fit even if there are very many ranks. */
#define MCA_COLL_PVAS_SEGMENT (6 << 10)

/* Lines of a rank: in a small communicator there is room for more. */
#define MCA_COLL_PVAS_LINES 32
#define MCA_COLL_PVAS_SOME_LINES 8
#define MCA_COLL_PVAS_LEAST_LINES 2
#define MCA_COLL_PVAS_FEW_RANKS 8
#define MCA_COLL_PVAS_SOME_RANKS 64

/* Annexes of a rank, at most, and their size */
#define MCA_COLL_PVAS_ANNEXES 4
#define MCA_COLL_PVAS_ANNEX (2 << 10)

/* Bytes of a block beside two lines for each rank */
#define MCA_COLL_PVAS_BLOCK_EXTRA (64 << 10)

/* How data are posted, in the low byte of @word: up to MCA_COLL_PVAS_INLINE it is their length */
enum mca_coll_pvas_kind {
	MCA_COLL_PVAS_COPY_V = 0xfa,	/* copied, with a table of where each block ends */
	MCA_COLL_PVAS_SHARE = 0xfb,
	MCA_COLL_PVAS_BUFFERS_SAME = 0xfc,	/* the same block for all */
	MCA_COLL_PVAS_COPY = 0xfd,
	MCA_COLL_PVAS_BUFFERS = 0xfe,
	MCA_COLL_PVAS_BUFFERS_W = 0xff,	/* a datatype for each block */
};

/**
 * struct mca_coll_pvas_buffers - a description of a rank's buffers
 * @buf:	what peers read
 * @result:	where peers put results, in reductions
 * @type:	the datatype, or an array of them
 * @counts:	for each block, or NULL: all have @count
 * @displs:	likewise, in extents of @type; for an array of types, in bytes
 */
struct mca_coll_pvas_buffers {
	char *buf;
	char *result;
	const void *type;
	const int *counts;
	const int *displs;
	size_t count;
};

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

/* Data in the ring or an annex, and where, from the ring's beginning on */
struct mca_coll_pvas_record {
	size_t offset;
	size_t length;
};

/**
 * struct mca_coll_pvas_line - a cache line with one writer
 * @word:	number of the operation, and enum mca_coll_pvas_kind
 * @finished:	the last operation that the writer of this line has finished
 */
struct mca_coll_pvas_line {
	_Alignas(MCA_COLL_PVAS_CACHE_LINE) _Atomic uint64_t word;
	_Atomic uint64_t finished;
	_Alignas(16) union {
		char data[MCA_COLL_PVAS_INLINE];
		struct mca_coll_pvas_buffers buffers;
		struct mca_coll_pvas_record record;
		struct mca_coll_pvas_share share;
	};
};
_Static_assert(sizeof(struct mca_coll_pvas_line) == MCA_COLL_PVAS_CACHE_LINE, "one cache line");

/* A rank of the communicator, as a task */
struct mca_coll_pvas_member {
	uint32_t index;
	uint32_t gen;
};

/**
 * struct mca_coll_pvas_block - memory that the ranks of a communicator share
 * @left:	ranks that have freed the communicator
 * @next:	in the owner's list of blocks that not all ranks have left
 * @members:	followed by the lines of each rank, the slots, the ring and the annexes
 */
struct mca_coll_pvas_block {
	_Alignas(MCA_COLL_PVAS_CACHE_LINE) _Atomic unsigned int left;
	unsigned int size;
	size_t bytes;
	struct mca_coll_pvas_block *next;
	struct mca_coll_pvas_member members[];
};

/* ---- the module ---- */

/* The functions that were selected before ours */
struct mca_coll_pvas_previous {
#define MCA_COLL_PVAS_PREVIOUS(name)				\
	mca_coll_base_module_##name##_fn_t name;		\
	mca_coll_base_module_t *name##_module
	MCA_COLL_PVAS_PREVIOUS(allgather);
	MCA_COLL_PVAS_PREVIOUS(allgatherv);
	MCA_COLL_PVAS_PREVIOUS(allreduce);
	MCA_COLL_PVAS_PREVIOUS(alltoall);
	MCA_COLL_PVAS_PREVIOUS(alltoallv);
	MCA_COLL_PVAS_PREVIOUS(alltoallw);
	MCA_COLL_PVAS_PREVIOUS(barrier);
	MCA_COLL_PVAS_PREVIOUS(bcast);
	MCA_COLL_PVAS_PREVIOUS(exscan);
	MCA_COLL_PVAS_PREVIOUS(gather);
	MCA_COLL_PVAS_PREVIOUS(gatherv);
	MCA_COLL_PVAS_PREVIOUS(reduce);
	MCA_COLL_PVAS_PREVIOUS(reduce_scatter);
	MCA_COLL_PVAS_PREVIOUS(reduce_scatter_block);
	MCA_COLL_PVAS_PREVIOUS(scan);
	MCA_COLL_PVAS_PREVIOUS(scatter);
	MCA_COLL_PVAS_PREVIOUS(scatterv);
#undef MCA_COLL_PVAS_PREVIOUS
};

/* Call the function that was selected before ours. */
#define mca_coll_pvas_pass_on(m, name, ...) \
	((m)->previous.name(__VA_ARGS__, (m)->comm, (m)->previous.name##_module))

enum mca_coll_pvas_state {
	MCA_COLL_PVAS_NEW,
	MCA_COLL_PVAS_READY,
	MCA_COLL_PVAS_PASSING,	/* there was no memory: all is passed on */
};

#define MCA_COLL_PVAS_ALL (-1)

/* The last use of a line or annex: in which operation, and who reads it */
struct mca_coll_pvas_use {
	uint64_t op;
	int reader;
};

/**
 * struct mca_coll_pvas_module - a communicator
 * @op:		number of the operation in progress, or of the last one
 * @all_finished:	all ranks are known to have finished the operations up to this
 * @nr_lines:	of each rank, a power of two; likewise @nr_annexes
 * @posted:	the last uses of our lines
 * @annexed:	the last uses of our annexes
 * @annex_bytes:	size of an annex
 * @ring_at:	offset behind the last record
 * @segment_op:	by segment of the ring: the last operation that used it
 * @checked:	the rank whose task was checked last
 */
struct mca_coll_pvas_module {
	mca_coll_base_module_t super;
	struct mca_coll_pvas_previous previous;
	struct ompi_communicator_t *comm;
	enum mca_coll_pvas_state state;
	int rank;
	int size;
	struct mca_coll_pvas_block *block;
	unsigned int nr_lines;
	unsigned int nr_annexes;
	struct mca_coll_pvas_line *lines;
	struct mca_coll_pvas_line *slots;
	char *ring;
	size_t segment_bytes;
	size_t annex_bytes;
	uint64_t op;
	uint64_t all_finished;
	struct mca_coll_pvas_use posted[MCA_COLL_PVAS_LINES];
	struct mca_coll_pvas_use annexed[MCA_COLL_PVAS_ANNEXES];
	size_t ring_at;
	uint64_t segment_op[MCA_COLL_PVAS_SEGMENTS];
	int checked;
};
typedef struct mca_coll_pvas_module mca_coll_pvas_module_t;
OBJ_CLASS_DECLARATION(mca_coll_pvas_module_t);

/* ---- the component ---- */

/* MPI_T performance variables; approximate if several threads update them */
struct mca_coll_pvas_counters {
	unsigned long long operations;
	unsigned long long passed_on;
	unsigned long long bytes_copied;
	unsigned long long waits;
	unsigned long long communicators;
	unsigned long long bytes_held;
};

/* A process that was looked up; @index is 0 if it is not in our space. */
struct mca_coll_pvas_peer {
	opal_process_name_t name;
	struct mca_coll_pvas_member member;
};

/**
 * struct mca_coll_pvas_component - the component and its state
 * @ring_limit:	longest message that a root copies into the ring
 * @share:	fewest bytes of a reduction that a rank combines
 * @share_copy:	fewest bytes that two ranks copy together
 * @spin:	iterations of a waiting loop between two calls of opal_progress()
 * @oversubscribed:	whether ranks outnumber processors, as set; -1: unknown
 * @when_oversubscribed: also used then
 * @yield:	they do: a waiting rank yields
 * @ready:	this process is a task, and has published its modex
 * @lock:	protects @peers and @left_blocks
 * @left_blocks:	blocks of ours that not all of their ranks have left
 */
struct mca_coll_pvas_component {
	mca_coll_base_component_t super;

	int priority;
	unsigned int ring_limit;
	unsigned int share;
	unsigned int share_copy;
	unsigned int spin;
	int oversubscribed;
	int when_oversubscribed;
	bool yield;

	bool ready;
	struct mca_coll_pvas_modex modex;
	struct mca_btl_pvas_faults faults;

	opal_mutex_t lock;
	struct mca_coll_pvas_peer *peers;
	unsigned int nr_peers;
	unsigned int last_peer;
	struct mca_coll_pvas_block *left_blocks;

	struct mca_coll_pvas_counters counters;
};

/* The symbol that Open MPI looks up */
extern struct mca_coll_pvas_component mca_coll_pvas_component
	__attribute__((visibility("default")));

#define mca_coll_pvas_count(counter, n) (mca_coll_pvas_component.counters.counter += (n))

/* This thread is in an operation, and not in code that an operation has called */
extern __thread int mca_coll_pvas_inside;

/* peers.c */
bool mca_coll_pvas_find_self(void);
bool mca_coll_pvas_publish(void);
bool mca_coll_pvas_same_space(struct ompi_communicator_t *comm);
struct mca_coll_pvas_member mca_coll_pvas_member(struct ompi_communicator_t *comm, int rank);
bool mca_coll_pvas_member_alive(const struct mca_coll_pvas_member *member);
void mca_coll_pvas_lost(uint32_t index);

/* module.c */
mca_coll_base_module_t *mca_coll_pvas_comm_query(struct ompi_communicator_t *comm, int *priority);

/* block.c */
int mca_coll_pvas_attach(struct mca_coll_pvas_module *m);
void mca_coll_pvas_leave(struct mca_coll_pvas_module *m);
void mca_coll_pvas_unmap_blocks(bool all);

/* wait.c */
void mca_coll_pvas_pause(struct mca_coll_pvas_module *m, unsigned int *polls);
void mca_coll_pvas_wait_finished(struct mca_coll_pvas_module *m, int rank, uint64_t op);
void mca_coll_pvas_wait_all_finished(struct mca_coll_pvas_module *m, uint64_t op);

/* Wait until @condition holds. */
#define mca_coll_pvas_wait_until(m, condition)			\
	do {							\
		unsigned int polls_ = 0;			\
								\
		while (!(condition))				\
			mca_coll_pvas_pause((m), &polls_);	\
	} while (0)

/* Begin an operation; false: pass it on. */
static inline bool mca_coll_pvas_begin(struct mca_coll_pvas_module *m)
{
	if (OPAL_UNLIKELY(m->state != MCA_COLL_PVAS_READY) &&
	    (m->state == MCA_COLL_PVAS_PASSING || mca_coll_pvas_attach(m) != OMPI_SUCCESS)) {
		mca_coll_pvas_count(passed_on, 1);
		return false;
	}
	m->op++;
	mca_coll_pvas_inside++;
	mca_coll_pvas_count(operations, 1);
	return true;
}

static inline struct mca_coll_pvas_line *mca_coll_pvas_line(struct mca_coll_pvas_module *m,
							    int rank)
{
	return &m->lines[rank * m->nr_lines + (m->op & (m->nr_lines - 1))];
}

static inline bool mca_coll_pvas_has_posted(const struct mca_coll_pvas_line *line, uint64_t op)
{
	return atomic_load_explicit(&line->word, memory_order_acquire) >> 8 >= op;
}

static inline unsigned int mca_coll_pvas_kind(const struct mca_coll_pvas_line *line)
{
	return atomic_load_explicit(&line->word, memory_order_relaxed) & 0xff;
}

/* Were the data posted as they are, so that the poster waits for nobody? */
static inline bool mca_coll_pvas_was_copied(unsigned int kind)
{
	return kind <= MCA_COLL_PVAS_INLINE || kind == MCA_COLL_PVAS_COPY ||
	       kind == MCA_COLL_PVAS_COPY_V;
}

/* Peers that waited for us to read their buffers can go on. */
static inline void mca_coll_pvas_finish(struct mca_coll_pvas_module *m)
{
	atomic_store_explicit(&mca_coll_pvas_line(m, m->rank)->finished, m->op,
			      memory_order_release);
}

static inline int mca_coll_pvas_end(int rc)
{
	mca_coll_pvas_inside--;
	return rc;
}

/* A part of a rank's buffers */
struct mca_coll_pvas_piece {
	char *at;
	size_t count;
	const struct ompi_datatype_t *type;
};

/* post.c */
struct mca_coll_pvas_line *mca_coll_pvas_wait_post(struct mca_coll_pvas_module *m, int rank);
void mca_coll_pvas_wait_posts(struct mca_coll_pvas_module *m);
void mca_coll_pvas_post_nothing(struct mca_coll_pvas_module *m);
void mca_coll_pvas_post_buffers(struct mca_coll_pvas_module *m,
				const struct mca_coll_pvas_buffers *buffers,
				enum mca_coll_pvas_kind kind, int reader);
size_t mca_coll_pvas_most_copied(const struct mca_coll_pvas_module *m);
bool mca_coll_pvas_post(struct mca_coll_pvas_module *m, const void *buf, size_t count,
			int nr_blocks, const struct ompi_datatype_t *type, int reader);
bool mca_coll_pvas_post_blocks(struct mca_coll_pvas_module *m,
			       const struct mca_coll_pvas_buffers *buffers,
			       enum mca_coll_pvas_kind kind);
struct mca_coll_pvas_share *mca_coll_pvas_post_share(struct mca_coll_pvas_module *m, char *at,
						     size_t bytes, size_t piece, int reader);
void mca_coll_pvas_wait_readers(struct mca_coll_pvas_module *m);
void mca_coll_pvas_publish_buffers(struct mca_coll_pvas_module *m,
				   const struct mca_coll_pvas_buffers *buffers,
				   enum mca_coll_pvas_kind kind);
bool mca_coll_pvas_publish_data(struct mca_coll_pvas_module *m, const void *buf, size_t count,
				const struct ompi_datatype_t *type);
const struct mca_coll_pvas_line *mca_coll_pvas_wait_slot(struct mca_coll_pvas_module *m);
struct mca_coll_pvas_piece mca_coll_pvas_piece(const struct mca_coll_pvas_buffers *b,
					       unsigned int kind, int block);
int mca_coll_pvas_fetch(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_line *line,
			int block, int nr_blocks, void *to, size_t count,
			const struct ompi_datatype_t *type);

/* share.c */
bool mca_coll_pvas_is_long(const struct mca_coll_pvas_piece *ours);
bool mca_coll_pvas_share(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_line *slot,
			 const struct mca_coll_pvas_piece *ours, int root, bool receive);
bool mca_coll_pvas_help(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_buffers *ours,
			enum mca_coll_pvas_kind kind, int r, bool send);
void mca_coll_pvas_help_all(struct mca_coll_pvas_module *m,
			    const struct mca_coll_pvas_buffers *ours,
			    enum mca_coll_pvas_kind kind);

/* copy.c */
int mca_coll_pvas_copy_data(void *to, size_t to_count, const struct ompi_datatype_t *to_type,
			    const void *from, size_t from_count,
			    const struct ompi_datatype_t *from_type);

/* Counted; copy_data() is also part of pml/pvas, which has counters of its own. */
static inline int mca_coll_pvas_copy(void *to, size_t to_count,
				     const struct ompi_datatype_t *to_type, const void *from,
				     size_t from_count, const struct ompi_datatype_t *from_type)
{
	const size_t room = to_count * to_type->super.size;
	const size_t bytes = from_count * from_type->super.size;

	mca_coll_pvas_count(bytes_copied, bytes < room ? bytes : room);
	return mca_coll_pvas_copy_data(to, to_count, to_type, from, from_count, from_type);
}
bool mca_coll_pvas_same_layout(const struct ompi_datatype_t *a, const struct ompi_datatype_t *b);

static inline ptrdiff_t mca_coll_pvas_extent(const struct ompi_datatype_t *type)
{
	return type->super.ub - type->super.lb;
}

/* Its data are @count times the size of the type, without gaps, where the buffer begins. */
static inline bool mca_coll_pvas_is_plain(const struct ompi_datatype_t *type)
{
	return type->super.flags & OPAL_DATATYPE_FLAG_NO_GAPS &&
	       type->super.flags & OPAL_DATATYPE_FLAG_CONTIGUOUS && !type->super.true_lb &&
	       (size_t)mca_coll_pvas_extent(type) == type->super.size;
}

#endif /* COLL_PVAS_H */
