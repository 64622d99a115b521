/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A child that writes to a file in pvasrun's place: see file_child.h. Errors arrive later, as
 * after a write to the page cache; those of close(2), too, where NFS reports a full disk.
 */
#ifndef PVASRUN_WRITER_H
#define PVASRUN_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "file_child.h"

struct writer {
	struct file_child child;
	bool told;	/* the child has ended, and told how: */
	int error;	/* 0, or an errno */
};

#define WRITER_NONE	{ .child = FILE_CHILD_NONE }

/* Returns 0 or -errno. */
int writer_begin(struct writer *writer, int fd);

/* As write(), of at most PIPE_BUF bytes, which stay together. -1 with EAGAIN: no room now */
ssize_t writer_write(struct writer *writer, const char *bytes, size_t len);

/* No more bytes come. Its end gets readable when the child has written all, or has failed. */
void writer_finish(struct writer *writer);

/* After writer_finish(), at any time: has the child ended? */
bool writer_ended(struct writer *writer);

void writer_close(struct writer *writer);

#endif
