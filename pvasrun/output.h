/* SPDX-License-Identifier: GPL-2.0-only */
/* --tag-output, --pty: the tasks' output goes through pvasrun, tagged line by line or as it is. */
#ifndef PVASRUN_OUTPUT_H
#define PVASRUN_OUTPUT_H

#include <stdbool.h>

#include "event.h"
#include "options.h"
#include "outlet.h"
#include "tagger.h"

/* One of pvasrun's own outputs: 0 standard output, 1 standard error */
struct sink {
	struct event event;
	struct outlet outlet;
	struct output *output;
	struct buffer queue;	/* tagged lines that wait to be written */
	bool pollable;		/* not so: a regular file, which is always ready */
	bool broken;		/* its reader is gone */
};

/* One output of one task */
struct stream {
	struct event event;
	struct output *output;
	struct sink *sink;
	struct tagger tagger;
	ssize_t left;		/* output_finish_reading(): so many bytes, at most */
};

struct output {
	struct loop *loop;
	struct loop streams_loop;	/* all streams: paused as one */
	struct sink sinks[2];
	struct sink *midline;	/* has written a part of a line: nobody else may write */
	struct stream *streams;	/* two a rank */
	unsigned int nr_streams;
	unsigned int open_streams;
	bool tag;		/* standard error too, and each line with its rank */
	bool pty;		/* standard output by pseudo-terminals */
	bool failed;		/* output was lost for another reason than its reader's end */
	bool finishing;		/* see output_finish_reading() */
	bool hung_up;		/* there the reader is gone: see output_hang_up() */
};

int output_open(struct output *output, struct loop *loop, const struct options *opt);
void output_close(struct output *output);

/*
 * Make the pipes or pseudo-terminals of a rank; @fds receives the ends for its
 * standard output and error, to be closed when it was started. -1: pvasrun's own.
 */
int output_attach(struct output *output, unsigned int rank, int fds[static 2]);

/* The reader of standard output is gone, and tasks that write got SIGPIPE: no more of it. */
void output_hang_up(struct output *output);

/* Does any output go through pvasrun? */
static inline bool output_forwards(const struct output *output)
{
	return output->tag || output->pty;
}

/*
 * All tasks have ended: read what they wrote, and close the streams. Programs that they
 * left running may write without end.
 */
void output_finish_reading(struct output *output);

/* Are there streams that may still bring something, or lines not yet written? */
bool output_reading(const struct output *output);
bool output_writing(const struct output *output);

#endif
