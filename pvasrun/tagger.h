/* SPDX-License-Identifier: GPL-2.0-only */
/* Split a task's output into lines, and put a tag before each. */
#ifndef PVASRUN_TAGGER_H
#define PVASRUN_TAGGER_H

#include <stddef.h>

/* A byte queue: filled at the end, consumed at the front */
struct buffer {
	char *bytes;
	size_t start;	/* first byte not yet consumed */
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

/* A longer line is cut, and each part gets a tag. */
#define TAGGER_LINE_MAX (1U << 20)

struct tagger {
	char tag[16];
	struct buffer line;	/* an incomplete line */
};

void tagger_init(struct tagger *tagger, unsigned int rank);

/* Append all lines that @bytes complete to @out, with tags. 0 or -ENOMEM */
int tagger_feed(struct tagger *tagger, const char *bytes, size_t len, struct buffer *out);

/* At the end of the output: a last line without a newline gets one. */
int tagger_finish(struct tagger *tagger, struct buffer *out);

#endif
