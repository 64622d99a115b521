/* SPDX-License-Identifier: GPL-2.0-only */
/* Making whole, tagged lines of whatever pieces a task writes. */
#ifndef PVASRUN_TAGGER_H
#define PVASRUN_TAGGER_H

#include <stddef.h>

/* Bytes that grow at the end and are taken away at the front */
struct buffer {
	char *bytes;
	size_t start;	/* first byte not yet taken */
	size_t end;
	size_t room;
};

int buffer_add(struct buffer *buffer, const char *bytes, size_t len);
void buffer_take(struct buffer *buffer, size_t len);
void buffer_free(struct buffer *buffer);

static inline size_t buffer_len(const struct buffer *buffer)
{
	return buffer->end - buffer->start;
}

static inline const char *buffer_head(const struct buffer *buffer)
{
	return buffer->bytes + buffer->start;
}

/* A line longer than this is cut in two, each with its tag: memory is finite. */
#define TAGGER_LINE_MAX (1U << 20)

struct tagger {
	char tag[16];
	struct buffer line;	/* a line whose end hasn't come yet */
};

void tagger_init(struct tagger *tagger, unsigned int rank);

/* Put the lines that @bytes complete into @out, tagged. 0 or -ENOMEM. */
int tagger_feed(struct tagger *tagger, const char *bytes, size_t len, struct buffer *out);

/* No more will come: a last line without an end gets one. */
int tagger_finish(struct tagger *tagger, struct buffer *out);

#endif
