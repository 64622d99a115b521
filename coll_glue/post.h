/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parts of an operation: posting and fetching data, and waiting for them. */
#ifndef COLL_PVAS_POST_H
#define COLL_PVAS_POST_H

#include "coll_pvas.h"

/*
 * When ranks outnumber processors, each wait is a context switch. Where Open MPI's other
 * components are faster, because their senders run ahead, an operation is passed on: unless
 * its data have at least so many bytes, in one block if there are several. All ranks must
 * agree, so operations whose lengths only some ranks know are passed on as a whole, or never;
 * if the lengths of two ranks differ, the job ends. Measured; see README.md.
 */
#define MCA_COLL_PVAS_LEAST_ALLTOALL (16 << 10)
#define MCA_COLL_PVAS_LEAST_BCAST (64 << 10)	/* or as short as is copied */
#define MCA_COLL_PVAS_LEAST_GATHER (64 << 10)
#define MCA_COLL_PVAS_LEAST_REDUCE (64 << 10)
#define MCA_COLL_PVAS_LEAST_REDUCE_SCATTER (4 << 10)
#define MCA_COLL_PVAS_LEAST_SCAN (64 << 10)

/* Likewise a barrier, of so many ranks: each waits once, and not in each of several rounds. */
#define MCA_COLL_PVAS_LEAST_BARRIER_RANKS 10

static inline size_t mca_coll_pvas_bytes(size_t count, const struct ompi_datatype_t *type)
{
	return count * type->super.size;
}

/* @faster: than other components when ranks outnumber processors */
static inline bool mca_coll_pvas_prefers(bool faster)
{
	if (OPAL_LIKELY(faster || !mca_coll_pvas_component.choose))
		return true;
	mca_coll_pvas_count(passed_on, 1);
	return false;
}

/* The next operation gets a number; false: there is no memory. */
static inline bool mca_coll_pvas_number_next(struct mca_coll_pvas_module *m)
{
	if (OPAL_UNLIKELY(m->state != MCA_COLL_PVAS_READY) &&
	    (m->state == MCA_COLL_PVAS_PASSING || mca_coll_pvas_attach(m) != OMPI_SUCCESS))
		return false;
	m->op++;
	return true;
}

/* Begin an operation; false: pass it on. */
static inline bool mca_coll_pvas_begin_next(struct mca_coll_pvas_module *m)
{
	if (!mca_coll_pvas_number_next(m)) {
		mca_coll_pvas_count(passed_on, 1);
		return false;
	}
	mca_coll_pvas_inside++;
	mca_coll_pvas_count(operations, 1);
	return true;
}

#define mca_coll_pvas_begin(m, name) \
	mca_coll_pvas_count_call(mca_coll_pvas_begin_next(m), mca_coll_pvas_calls(name))

void mca_coll_pvas_post_passed(struct mca_coll_pvas_module *m, size_t bytes);

/*
 * The same where the length decides: a rank that passes the operation on says so in its line,
 * and one that does not, and so has another length, looks there for the post that it needs.
 */
static inline bool mca_coll_pvas_keeps(struct mca_coll_pvas_module *m, bool faster, size_t bytes)
{
	if (OPAL_LIKELY(faster || !mca_coll_pvas_component.choose))
		return true;
	mca_coll_pvas_count(passed_on, 1);
	if (mca_coll_pvas_number_next(m))
		mca_coll_pvas_post_passed(m, bytes);
	return false;
}

#define mca_coll_pvas_begin_if(m, name, faster) \
	(mca_coll_pvas_keeps((m), (faster), 0) && mca_coll_pvas_begin((m), name))

static inline struct mca_coll_pvas_posts mca_coll_pvas_posts(const struct mca_coll_pvas_module *m)
{
	return (struct mca_coll_pvas_posts) {
		&m->lines[m->op & (m->nr_lines - 1)], m->nr_lines,
	};
}

static inline struct mca_coll_pvas_line *mca_coll_pvas_post_of(struct mca_coll_pvas_posts posts,
							       int rank)
{
	return &posts.first[rank * posts.stride];
}

static inline struct mca_coll_pvas_line *mca_coll_pvas_line(const struct mca_coll_pvas_module *m,
							    int rank)
{
	return mca_coll_pvas_post_of(mca_coll_pvas_posts(m), rank);
}

/* Where a root's data are published */
static inline struct mca_coll_pvas_line *mca_coll_pvas_slot(struct mca_coll_pvas_module *m)
{
	return &m->slots[m->op % MCA_COLL_PVAS_SLOTS];
}

/* Its rank has passed operation @op on, so that it never posts in it. */
static inline bool mca_coll_pvas_has_passed(const struct mca_coll_pvas_line *line, uint64_t op)
{
	return atomic_load_explicit(&line->word, memory_order_relaxed) ==
	       (op << 8 | MCA_COLL_PVAS_PASSED);
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
	return kind <= MCA_COLL_PVAS_COPY;
}

/* And to the ring, or to an annex? */
static inline bool mca_coll_pvas_has_record(unsigned int kind)
{
	return kind >= MCA_COLL_PVAS_COPY_V && kind <= MCA_COLL_PVAS_COPY;
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

/**
 * struct mca_coll_pvas_blocks - blocks of different lengths
 * @own:	the one that nobody fetches, or -1
 * @receivers:	NULL, or the ranks that they are for: one for MPI_PROC_NULL is not read
 */
struct mca_coll_pvas_blocks {
	const struct mca_coll_pvas_buffers *buffers;
	enum mca_coll_pvas_kind kind;
	int nr;
	int own;
	const int *receivers;
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
void mca_coll_pvas_describe(struct mca_coll_pvas_line *line, uint64_t op,
			    const struct mca_coll_pvas_buffers *buffers,
			    enum mca_coll_pvas_kind kind);
void mca_coll_pvas_copy_in(struct mca_coll_pvas_line *line, uint64_t op,
			   const struct mca_coll_pvas_record *record, const void *buf,
			   size_t count, const struct ompi_datatype_t *type);
size_t mca_coll_pvas_blocks_bytes(const struct mca_coll_pvas_blocks *b, size_t room);
void mca_coll_pvas_copy_blocks_in(struct mca_coll_pvas_line *line, uint64_t op,
				  const struct mca_coll_pvas_record *record,
				  const struct mca_coll_pvas_blocks *b);
bool mca_coll_pvas_post_blocks(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_blocks *b,
			       int reader);
struct mca_coll_pvas_share *mca_coll_pvas_post_share(struct mca_coll_pvas_module *m, char *at,
						     size_t bytes, size_t piece, int reader);
void mca_coll_pvas_wait_readers(struct mca_coll_pvas_module *m);
void mca_coll_pvas_publish_buffers(struct mca_coll_pvas_module *m,
				   const struct mca_coll_pvas_buffers *buffers,
				   enum mca_coll_pvas_kind kind);
bool mca_coll_pvas_publish_data(struct mca_coll_pvas_module *m, const void *buf, size_t count,
				const struct ompi_datatype_t *type, bool parts);
bool mca_coll_pvas_publish_blocks(struct mca_coll_pvas_module *m,
				  const struct mca_coll_pvas_blocks *b);
const struct mca_coll_pvas_line *mca_coll_pvas_wait_slot(struct mca_coll_pvas_module *m);
struct mca_coll_pvas_piece mca_coll_pvas_piece(const struct mca_coll_pvas_buffers *b,
					       unsigned int kind, int block);
int mca_coll_pvas_fetch(const struct mca_coll_pvas_line *line, int block, int nr_blocks, void *to,
			size_t count, const struct ompi_datatype_t *type);

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

#endif /* COLL_PVAS_POST_H */
