/* SPDX-License-Identifier: GPL-2.0-only */
/* Writing to an inherited descriptor without ever waiting for its reader. */
#ifndef PVASRUN_OUTLET_H
#define PVASRUN_OUTLET_H

#include <stddef.h>
#include <sys/types.h>

#include "reopen.h"
#include "writer.h"

struct outlet {
	int fd;
	struct reopened file;
	struct writer own;	/* without a child, if @writer is another outlet's */
	struct writer *writer;
	int watched;
	enum { OUTLET_FILE, OUTLET_STREAM, OUTLET_SOCKET, OUTLET_WRITER } kind;
};

#define OUTLET_NONE(descriptor) \
	((struct outlet){ .fd = (descriptor), .file = REOPENED_NONE, .own = WRITER_NONE, \
			  .watched = -1 })

/*
 * With @other, which may be NULL, it shares the child that writes, if they are one file: so their
 * bytes stand there in the order of these calls. Neither is moved after that.
 */
void outlet_open(struct outlet *outlet, int fd, struct outlet *other);
void outlet_close(struct outlet *outlet);

/* As write(), of at most PIPE_BUF bytes. -1 with EAGAIN: there is no room now */
ssize_t outlet_write(struct outlet *outlet, const char *bytes, size_t len);

/* To be watched for room, and after outlet_finish() for EPOLLRDHUP */
int outlet_watched(const struct outlet *outlet);

/* There is no more to write. */
void outlet_finish(struct outlet *outlet);

/* After that: 0, the errno of what failed later than its outlet_write(), or -1: not yet known */
int outlet_finished(struct outlet *outlet);

#endif
