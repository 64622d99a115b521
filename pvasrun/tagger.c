// SPDX-License-Identifier: GPL-2.0-only
/* Split a task's output into lines, and put a tag before each. */
#include "tagger.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int buffer_make_room(struct buffer *buffer, size_t len)
{
	size_t used = buffer_len(buffer), room = buffer->room ? buffer->room : 256;
	char *more;

	if (buffer->start) {
		memmove(buffer->bytes, buffer->bytes + buffer->start, used);
		buffer->start = 0;
		buffer->end = used;
	}
	while (room - used < len)
		room *= 2;
	if (room == buffer->room)
		return 0;
	more = realloc(buffer->bytes, room);
	if (!more)
		return -ENOMEM;
	buffer->bytes = more;
	buffer->room = room;
	return 0;
}

int buffer_add(struct buffer *buffer, const char *bytes, size_t len)
{
	if (!len)
		return 0;
	if (buffer->room - buffer->end < len && buffer_make_room(buffer, len))
		return -ENOMEM;
	memcpy(buffer->bytes + buffer->end, bytes, len);
	buffer->end += len;
	return 0;
}

void buffer_take(struct buffer *buffer, size_t len)
{
	buffer->start += len;
	if (buffer->start == buffer->end)
		buffer->start = buffer->end = 0;
}

void buffer_free(struct buffer *buffer)
{
	free(buffer->bytes);
	*buffer = (struct buffer){ 0 };
}

void tagger_init(struct tagger *tagger, unsigned int rank)
{
	*tagger = (struct tagger){ 0 };
	snprintf(tagger->tag, sizeof(tagger->tag), "[%u] ", rank);
}

/* Append one line: tag, incomplete line so far, @bytes, and a newline if it has none. */
static int put_line(struct tagger *tagger, const char *bytes, size_t len, struct buffer *out)
{
	struct buffer *line = &tagger->line;
	int err;

	err = buffer_add(out, tagger->tag, strlen(tagger->tag));
	if (!err)
		err = buffer_add(out, buffer_head(line), buffer_len(line));
	if (!err)
		err = buffer_add(out, bytes, len);
	if (!err && !(len && bytes[len - 1] == '\n'))
		err = buffer_add(out, "\n", 1);
	buffer_take(line, buffer_len(line));
	return err;
}

int tagger_feed(struct tagger *tagger, const char *bytes, size_t len, struct buffer *out)
{
	int err = 0;

	while (len && !err) {
		size_t held = buffer_len(&tagger->line), piece = len;
		const char *newline;

		if (piece > TAGGER_LINE_MAX - held)
			piece = TAGGER_LINE_MAX - held;
		newline = memchr(bytes, '\n', piece);
		if (newline)
			piece = newline - bytes + 1;
		if (newline || held + piece == TAGGER_LINE_MAX)
			err = put_line(tagger, bytes, piece, out);
		else
			err = buffer_add(&tagger->line, bytes, piece);
		bytes += piece;
		len -= piece;
	}
	return err;
}

int tagger_finish(struct tagger *tagger, struct buffer *out)
{
	int err = 0;

	if (buffer_len(&tagger->line))
		err = put_line(tagger, NULL, 0, out);
	buffer_free(&tagger->line);
	return err;
}
