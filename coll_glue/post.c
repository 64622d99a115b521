// SPDX-License-Identifier: LGPL-2.1-or-later
/* Saying where data are, and fetching them. */
#include "neighbor.h"
#include "post.h"

#define component mca_coll_pvas_component

/* ---- posting in our line ---- */

static void wait_for_reader(struct mca_coll_pvas_module *m, int reader, uint64_t op)
{
	if (reader == m->reader && op <= m->reader_finished)
		return;
	m->reader_finished = mca_coll_pvas_wait_finished(m, reader, op);
	m->reader = reader;
}

static void wait_for(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_use *use)
{
	if (use->reader == MCA_COLL_PVAS_ALL)
		mca_coll_pvas_wait_all_finished(m, use->op);
	else if (use->reader == MCA_COLL_PVAS_NEIGHBORS)
		mca_coll_pvas_wait_neighbors_finished(m, use->op);
	else
		wait_for_reader(m, use->reader, use->op);
}

/* Use a line or annex again, once the readers of what was there before have finished with it. */
static void use_again(struct mca_coll_pvas_module *m, struct mca_coll_pvas_use *use, int reader)
{
	if (use->op && use->op > m->all_finished)
		wait_for(m, use);
	use->op = m->op;
	use->reader = reader;
}

static struct mca_coll_pvas_line *free_line(struct mca_coll_pvas_module *m, int reader)
{
	use_again(m, &m->posted[m->op & (m->nr_lines - 1)], reader);
	return mca_coll_pvas_line(m, m->rank);
}

static void set_word(struct mca_coll_pvas_line *line, uint64_t op, unsigned int kind)
{
	atomic_store_explicit(&line->word, op << 8 | kind, memory_order_release);
}

/* Such posts have no readers unless lengths differ, so one can take another's place at any time. */
void mca_coll_pvas_post_passed(struct mca_coll_pvas_module *m, size_t bytes)
{
	struct mca_coll_pvas_line *line = mca_coll_pvas_line(m, m->rank);
	struct mca_coll_pvas_use *use = &m->posted[m->op & (m->nr_lines - 1)];

	mca_coll_pvas_inside++;
	if (mca_coll_pvas_kind(line) != MCA_COLL_PVAS_PASSED)
		use_again(m, use, MCA_COLL_PVAS_ALL);
	use->op = m->op;
	atomic_store_explicit(&line->passed, m->op << 16 | bytes, memory_order_relaxed);
	set_word(line, m->op, MCA_COLL_PVAS_PASSED);
	/* Only then: a rank that waits for us looks next whether we have passed it on. */
	mca_coll_pvas_finish(m);
	mca_coll_pvas_inside--;
}

void mca_coll_pvas_describe(struct mca_coll_pvas_line *line, uint64_t op,
			    const struct mca_coll_pvas_buffers *buffers,
			    enum mca_coll_pvas_kind kind)
{
	mca_coll_pvas_count(posts_in_place, 1);
	line->buffers = *buffers;
	set_word(line, op, kind);
}

void mca_coll_pvas_post_nothing(struct mca_coll_pvas_module *m)
{
	set_word(free_line(m, MCA_COLL_PVAS_ALL), m->op, 0);
}

void mca_coll_pvas_post_buffers(struct mca_coll_pvas_module *m,
				const struct mca_coll_pvas_buffers *buffers,
				enum mca_coll_pvas_kind kind, int reader)
{
	mca_coll_pvas_describe(free_line(m, reader), m->op, buffers, kind);
}

size_t mca_coll_pvas_most_copied(const struct mca_coll_pvas_module *m)
{
	return m->annex_bytes > MCA_COLL_PVAS_INLINE ? m->annex_bytes : MCA_COLL_PVAS_INLINE;
}

/*
 * The place for data of this length, if they do not fit into the line itself. Little data take a
 * piece of an annex, others all pieces of one. Operations in a row have different annexes in any
 * case: that a rank has finished one of them can become known only by its post in the next.
 */
static struct mca_coll_pvas_record free_annex(struct mca_coll_pvas_module *m, size_t length,
					      int reader)
{
	const unsigned int pieces = m->nr_lines / m->nr_annexes;
	const bool little = length <= m->piece_bytes;
	const unsigned int first = (m->op & (m->nr_annexes - 1)) * pieces +
				   (little ? m->op / m->nr_annexes % pieces : 0);
	struct mca_coll_pvas_record record = { .length = length };
	unsigned int i;

	if (length <= MCA_COLL_PVAS_INLINE)
		return record;
	for (i = first; i < first + (little ? 1 : pieces); i++)
		use_again(m, &m->annexed[i], reader);
	record.at = m->ring + MCA_COLL_PVAS_SEGMENTS * m->segment_bytes +
		    (m->rank * m->nr_annexes + first / pieces) * m->annex_bytes +
		    first % pieces * m->piece_bytes;
	return record;
}

/* Copy short data into a line, or to the place of @record. */
void mca_coll_pvas_copy_in(struct mca_coll_pvas_line *line, uint64_t op,
			   const struct mca_coll_pvas_record *record, const void *buf,
			   size_t count, const struct ompi_datatype_t *type)
{
	char *to = line->data;
	unsigned int kind = record->length;

	mca_coll_pvas_count(posts_copied, 1);
	if (record->length > MCA_COLL_PVAS_INLINE) {
		to = record->at;
		kind = MCA_COLL_PVAS_COPY;
	}
	mca_coll_pvas_copy(to, record->length, &ompi_mpi_byte.dt, buf, count, type);
	if (kind == MCA_COLL_PVAS_COPY)
		line->record = *record;
	set_word(line, op, kind);
}

/*
 * Post @nr_blocks blocks of @count elements: themselves if they fit into the line or its
 * annex, and then true, otherwise a description.
 */
bool mca_coll_pvas_post(struct mca_coll_pvas_module *m, const void *buf, size_t count,
			int nr_blocks, const struct ompi_datatype_t *type, int reader)
{
	const size_t bytes = nr_blocks * count * type->super.size;
	struct mca_coll_pvas_record record;

	if (bytes > mca_coll_pvas_most_copied(m)) {
		mca_coll_pvas_post_buffers(m, &(struct mca_coll_pvas_buffers) {
			.buf = (char *)buf, .type = type, .count = count,
		}, MCA_COLL_PVAS_BUFFERS, reader);
		return false;
	}
	record = free_annex(m, bytes, reader);
	mca_coll_pvas_copy_in(free_line(m, reader), m->op, &record, buf, nr_blocks * count, type);
	return true;
}

/* Bytes of a table in front of @nr blocks: where each begins, and where the last one ends */
static size_t table_bytes(int nr)
{
	return nr < MCA_COLL_PVAS_TABLE ? 0 : (nr + 1) * sizeof(uint32_t);
}

static size_t block_bytes(const struct mca_coll_pvas_blocks *b, int i)
{
	const struct mca_coll_pvas_piece piece = mca_coll_pvas_piece(b->buffers, b->kind, i);

	if (i == b->own || (b->receivers && b->receivers[i] == MPI_PROC_NULL))
		return 0;
	return piece.count * piece.type->super.size;
}

/*
 * Bytes of the blocks and of a table in front of them, which in a line is a shorter one; not
 * counted to the end if they are more than @room and than fit into a line.
 */
size_t mca_coll_pvas_blocks_bytes(const struct mca_coll_pvas_blocks *b, size_t room)
{
	const size_t most = room > MCA_COLL_PVAS_INLINE ? room : MCA_COLL_PVAS_INLINE;
	size_t bytes = 0;
	int i;

	for (i = 0; i < b->nr && bytes <= most; i++)
		bytes += block_bytes(b, i);
	if (bytes + b->nr + 1 <= MCA_COLL_PVAS_INLINE)
		return bytes + b->nr + 1;
	bytes += table_bytes(b->nr);
	return bytes > MCA_COLL_PVAS_INLINE ? bytes : MCA_COLL_PVAS_INLINE + 1;
}

/* Copy the @i-th block; returns its length. */
static size_t copy_block_in(char *to, const struct mca_coll_pvas_blocks *b, int i)
{
	const size_t bytes = block_bytes(b, i);
	struct mca_coll_pvas_piece piece;

	if (!bytes)
		return 0;
	piece = mca_coll_pvas_piece(b->buffers, b->kind, i);
	mca_coll_pvas_copy(to, bytes, &ompi_mpi_byte.dt, piece.at, piece.count, piece.type);
	return bytes;
}

static void copy_blocks_into_line(struct mca_coll_pvas_line *line, uint64_t op,
				  const struct mca_coll_pvas_blocks *b)
{
	uint8_t *begins = (uint8_t *)line->data;
	size_t at = b->nr + 1;
	int i;

	for (i = 0; i < b->nr; i++) {
		begins[i] = at;
		at += copy_block_in(line->data + at, b, i);
	}
	begins[b->nr] = at;
	set_word(line, op, MCA_COLL_PVAS_INLINE_V + at);
}

static void copy_blocks_with_table(struct mca_coll_pvas_line *line, uint64_t op,
				   const struct mca_coll_pvas_record *record,
				   const struct mca_coll_pvas_blocks *b)
{
	size_t at = 0;
	int i;

	for (i = 0; i < b->nr; i++) {
		line->table.begins[i] = at;
		at += copy_block_in(record->at + at, b, i);
	}
	line->table.begins[b->nr] = at;
	line->table.record = *record;
	set_word(line, op, MCA_COLL_PVAS_COPY_T);
}

/* Copy blocks that fit into a line, or to the place of @record. */
void mca_coll_pvas_copy_blocks_in(struct mca_coll_pvas_line *line, uint64_t op,
				  const struct mca_coll_pvas_record *record,
				  const struct mca_coll_pvas_blocks *b)
{
	uint32_t *begins = (uint32_t *)record->at;
	size_t at = table_bytes(b->nr);
	int i;

	mca_coll_pvas_count(posts_copied, 1);
	if (record->length <= MCA_COLL_PVAS_INLINE) {
		copy_blocks_into_line(line, op, b);
		return;
	}
	if (b->nr < MCA_COLL_PVAS_TABLE) {
		copy_blocks_with_table(line, op, record, b);
		return;
	}
	for (i = 0; i < b->nr; i++) {
		begins[i] = at;
		at += copy_block_in(record->at + at, b, i);
	}
	begins[b->nr] = at;
	line->record = *record;
	set_word(line, op, MCA_COLL_PVAS_COPY_V);
}

/* Post blocks of different lengths: themselves if they fit, and then true, or a description. */
bool mca_coll_pvas_post_blocks(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_blocks *b,
			       int reader)
{
	const size_t bytes = mca_coll_pvas_blocks_bytes(b, m->annex_bytes);
	struct mca_coll_pvas_record record;

	if (bytes > mca_coll_pvas_most_copied(m)) {
		mca_coll_pvas_post_buffers(m, b->buffers, b->kind, reader);
		return false;
	}
	record = free_annex(m, bytes, reader);
	mca_coll_pvas_copy_blocks_in(free_line(m, reader), m->op, &record, b);
	return true;
}

/* Post data that @reader may copy together with us. */
struct mca_coll_pvas_share *mca_coll_pvas_post_share(struct mca_coll_pvas_module *m, char *at,
						     size_t bytes, size_t piece, int reader)
{
	struct mca_coll_pvas_line *line = free_line(m, reader);

	mca_coll_pvas_count(posts_shared, 1);
	line->share.at = at;
	line->share.bytes = bytes;
	line->share.piece = piece;
	atomic_init(&line->share.claimed, 0);
	atomic_init(&line->share.copied, 0);
	set_word(line, m->op, MCA_COLL_PVAS_SHARE);
	return &line->share;
}

/* Wait until those who read our buffers have finished. */
void mca_coll_pvas_wait_readers(struct mca_coll_pvas_module *m)
{
	wait_for(m, &m->posted[m->op & (m->nr_lines - 1)]);
}

struct mca_coll_pvas_line *mca_coll_pvas_wait_post(struct mca_coll_pvas_module *m, int rank)
{
	struct mca_coll_pvas_line *line = mca_coll_pvas_line(m, rank);

	mca_coll_pvas_wait_until(m, mca_coll_pvas_has_posted(line, m->op));
	if (OPAL_UNLIKELY(mca_coll_pvas_kind(line) == MCA_COLL_PVAS_PASSED))
		mca_coll_pvas_differs(m, rank);
	return line;
}

/* A rank that has posted in this operation has finished the one before. */
void mca_coll_pvas_wait_posts(struct mca_coll_pvas_module *m)
{
	int i;

	for (i = 0; i < m->size; i++)
		mca_coll_pvas_wait_post(m, i);
	if (m->all_finished < m->op - 1)
		m->all_finished = m->op - 1;
}

/* ---- from a root to all: slots and ring ---- */

/* Only here is a root that sends little to wait for its peers. */
static struct mca_coll_pvas_line *free_slot(struct mca_coll_pvas_module *m)
{
	if (m->op > MCA_COLL_PVAS_SLOTS)
		mca_coll_pvas_wait_all_finished(m, m->op - MCA_COLL_PVAS_SLOTS);
	return mca_coll_pvas_slot(m);
}

void mca_coll_pvas_publish_buffers(struct mca_coll_pvas_module *m,
				   const struct mca_coll_pvas_buffers *buffers,
				   enum mca_coll_pvas_kind kind)
{
	mca_coll_pvas_describe(free_slot(m), m->op, buffers, kind);
}

/* All ranks note each record, for any of them can be the next root. */
static void note_record(struct mca_coll_pvas_module *m, const struct mca_coll_pvas_record *record)
{
	const size_t offset = record->at - m->ring;

	m->segment_op[offset / m->segment_bytes] = m->op;
	m->ring_at = offset + (record->length + MCA_COLL_PVAS_CACHE_LINE - 1) /
			      MCA_COLL_PVAS_CACHE_LINE * MCA_COLL_PVAS_CACHE_LINE;
}

/* A record lies in one segment. Before a segment is used again, all must have read its records. */
static struct mca_coll_pvas_record new_record(struct mca_coll_pvas_module *m, size_t length)
{
	struct mca_coll_pvas_record record = { .length = length };
	const size_t in_segment = m->ring_at % m->segment_bytes;
	size_t offset = m->ring_at;

	if (in_segment + length > m->segment_bytes)
		offset += m->segment_bytes - in_segment;
	if (offset >= MCA_COLL_PVAS_SEGMENTS * m->segment_bytes)
		offset = 0;
	if (offset % m->segment_bytes == 0)
		mca_coll_pvas_wait_all_finished(m, m->segment_op[offset / m->segment_bytes]);
	record.at = m->ring + offset;
	note_record(m, &record);
	return record;
}

/* Most bytes that a root copies if a rank takes only a part of them */
static size_t most_parts(void)
{
	return component.ring_limit < MCA_COLL_PVAS_PARTS ? component.ring_limit :
							    MCA_COLL_PVAS_PARTS;
}

/* A root's data, if they are short enough to be copied; @parts: of which a rank takes a part */
bool mca_coll_pvas_publish_data(struct mca_coll_pvas_module *m, const void *buf, size_t count,
				const struct ompi_datatype_t *type, bool parts)
{
	const size_t bytes = count * type->super.size;
	struct mca_coll_pvas_record record = { .length = bytes };
	struct mca_coll_pvas_line *line;

	if (bytes > MCA_COLL_PVAS_INLINE && bytes > (parts ? most_parts() : component.ring_limit))
		return false;
	line = free_slot(m);
	if (bytes > MCA_COLL_PVAS_INLINE)
		record = new_record(m, bytes);
	mca_coll_pvas_copy_in(line, m->op, &record, buf, count, type);
	return true;
}

/* The same with blocks of different lengths */
bool mca_coll_pvas_publish_blocks(struct mca_coll_pvas_module *m,
				  const struct mca_coll_pvas_blocks *b)
{
	const size_t bytes = mca_coll_pvas_blocks_bytes(b, most_parts());
	struct mca_coll_pvas_record record = { .length = bytes };
	struct mca_coll_pvas_line *line;

	if (bytes > MCA_COLL_PVAS_INLINE && bytes > most_parts())
		return false;
	line = free_slot(m);
	if (bytes > MCA_COLL_PVAS_INLINE)
		record = new_record(m, bytes);
	mca_coll_pvas_copy_blocks_in(line, m->op, &record, b);
	return true;
}

const struct mca_coll_pvas_line *mca_coll_pvas_wait_slot(struct mca_coll_pvas_module *m)
{
	const struct mca_coll_pvas_line *line = mca_coll_pvas_slot(m);

	mca_coll_pvas_wait_until(m, mca_coll_pvas_has_posted(line, m->op));
	if (mca_coll_pvas_has_record(mca_coll_pvas_kind(line)))
		note_record(m, &line->record);
	return line;
}

/* ---- fetching ---- */

/* Where a block lies in the buffers that @b describes */
struct mca_coll_pvas_piece mca_coll_pvas_piece(const struct mca_coll_pvas_buffers *b,
					       unsigned int kind, int block)
{
	struct mca_coll_pvas_piece piece = { .at = b->buf, .type = b->type };

	piece.count = b->counts ? (size_t)b->counts[block] : b->count;
	if (kind == MCA_COLL_PVAS_BUFFERS_W || kind == MCA_COLL_PVAS_BUFFERS_WA)
		piece.type = ((const struct ompi_datatype_t *const *)b->type)[block];
	if (kind == MCA_COLL_PVAS_BUFFERS_WA) {
		piece.at += ((const MPI_Aint *)b->displs)[block];
	} else if (kind == MCA_COLL_PVAS_BUFFERS_W) {
		piece.at += ((const int *)b->displs)[block];
	} else if (b->displs) {
		piece.at += ((const int *)b->displs)[block] * mca_coll_pvas_extent(piece.type);
	} else if (kind != MCA_COLL_PVAS_BUFFERS_SAME) {
		piece.at += block * (ptrdiff_t)b->count * mca_coll_pvas_extent(piece.type);
	}
	return piece;
}

/* Where a block of copied @data begins; @bytes, of all blocks, become those of one. */
static size_t begin_of_block(const struct mca_coll_pvas_line *line, unsigned int kind,
			     const char *data, int block, int nr_blocks, size_t *bytes)
{
	const uint32_t *begins = (const uint32_t *)data;
	const uint8_t *in_line = (const uint8_t *)data;

	switch (kind) {
	case 0 ... MCA_COLL_PVAS_INLINE:
	case MCA_COLL_PVAS_COPY:
		*bytes /= nr_blocks;
		return block * *bytes;
	case MCA_COLL_PVAS_COPY_V:
		*bytes = begins[block + 1] - begins[block];
		return begins[block];
	case MCA_COLL_PVAS_COPY_T:
		*bytes = line->table.begins[block + 1] - line->table.begins[block];
		return line->table.begins[block];
	default:
		*bytes = in_line[block + 1] - in_line[block];
		return in_line[block];
	}
}

/* Fetch a block of what was posted, which has @nr_blocks of them if they are of equal length. */
int mca_coll_pvas_fetch(const struct mca_coll_pvas_line *line, int block, int nr_blocks, void *to,
			size_t count, const struct ompi_datatype_t *type)
{
	const unsigned int kind = mca_coll_pvas_kind(line);
	const char *data = line->data;
	size_t bytes = kind, offset;
	struct mca_coll_pvas_piece piece;

	if (!mca_coll_pvas_was_copied(kind)) {
		piece = mca_coll_pvas_piece(&line->buffers, kind, block);
		return mca_coll_pvas_copy(to, count, type, piece.at, piece.count, piece.type);
	}
	if (mca_coll_pvas_has_record(kind)) {
		data = line->record.at;
		bytes = line->record.length;
	}
	offset = begin_of_block(line, kind, data, block, nr_blocks, &bytes);
	return mca_coll_pvas_copy(to, count, type, data + offset, bytes, &ompi_mpi_byte.dt);
}
