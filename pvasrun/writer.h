/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A child that writes to a file whose server may never answer, a network's or one in user space:
 * pvasrun itself must handle signals and --timeout meanwhile. Errors arrive later, as after a
 * write to the page cache; those of close(2), too, where NFS reports a full disk.
 */
#ifndef PVASRUN_WRITER_H
#define PVASRUN_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct writer {
	int to;		/* to be watched; -1: none */
	pid_t child;
	int error;	/* an errno that it has told; 0: none */
};

#define WRITER_NONE	{ .to = -1 }

/* Is @fd a regular file that is on no block device, so perhaps on a server? */
bool writer_wanted(int fd);

/* Returns 0 or -errno. The child ignores all signals but SIGKILL and SIGSTOP. */
int writer_begin(struct writer *writer, int fd);

/* As write(), of at most PIPE_BUF bytes, which stay together. -1 with EAGAIN: no room now */
ssize_t writer_write(struct writer *writer, const char *bytes, size_t len);

/* No more bytes come. @writer->to gets readable when the child has written all, or has failed. */
void writer_finish(struct writer *writer);

/* After writer_finish(), at any time: has the child ended? */
bool writer_ended(struct writer *writer);

/* Ends the child if it has not ended, and does not wait for it if it can't end. */
void writer_close(struct writer *writer);

#endif
