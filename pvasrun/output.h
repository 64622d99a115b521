/* SPDX-License-Identifier: GPL-2.0-only */
/* --tag-output, --pty: copy the tasks' output, with a tag before each line or unchanged. */
#ifndef PVASRUN_OUTPUT_H
#define PVASRUN_OUTPUT_H

#include <stdbool.h>

#include "event.h"
#include "options.h"
#include "outlet.h"
#include "tagger.h"

/* Standard output or standard error of pvasrun */
struct sink {
	struct event event;
	struct outlet outlet;
	struct output *output;
	struct buffer queue;	/* not yet written */
	bool pollable;		/* false: a regular file, which epoll refuses */
	bool broken;		/* its reader has closed it */
	unsigned int emptied;	/* how often @queue has become empty */
};

/* One output of one task */
struct stream {
	struct event event;
	struct output *output;
	struct sink *sink;
	struct tagger tagger;
	bool pty;		/* it is a pseudo-terminal, */
	int pty_end;		/* and this the task's end of it, until all tasks have ended; -1 */
	unsigned int queued;	/* sink.emptied when bytes of it were queued last */
	bool hung_up;		/* bytes came that nobody reads */
	ssize_t left;		/* output_finish_reading(): so many bytes, at most */
};

struct output {
	struct loop *loop;
	struct loop streams_loop;	/* of all streams, to pause them together */
	struct sink sinks[2];
	struct sink *midline;	/* has written part of a line, which it must end first */
	struct stream *streams;	/* two per rank */
	unsigned int nr_streams;
	unsigned int open_streams;
	bool tag;		/* prefix lines with the rank; standard error, too */
	bool pty;		/* standard output through pseudo-terminals */
	bool pty_optional;	/* or, where none is free, through pipes */
	bool pty_failed;
	bool failed;		/* output was lost, and not because its reader ended */
	bool finishing;		/* see output_finish_reading() */
	bool hung_up;		/* of any stream: see output_hung_up() */
};

int output_open(struct output *output, struct loop *loop, const struct options *opt);
void output_close(struct output *output);

/*
 * Create the pipes or pseudo-terminals of a rank. @fds receives the ends for its
 * standard output and error, to be closed after the start; -1: inherit pvasrun's own.
 */
int output_attach(struct output *output, unsigned int rank, int fds[static 2]);

/*
 * Has a rank written to its pseudo-terminal what nobody reads any more? It gets SIGPIPE, as if it
 * wrote to the reader itself, and then its terminal is closed.
 */
bool output_hung_up(struct output *output, unsigned int *rank);
void output_hang_up(struct output *output, unsigned int rank);

/* Does any output go through pvasrun? */
static inline bool output_forwards(const struct output *output)
{
	return output->tag || output->pty;
}

/* All tasks have ended: what they left running may stop its output, or close it. */
void output_tasks_ended(struct output *output);

/*
 * After that: read what they wrote, and close the streams. Programs that they
 * left running may write without end.
 */
void output_finish_reading(struct output *output);

/* Are there open streams, or lines not yet written? */
bool output_reading(const struct output *output);
bool output_writing(const struct output *output);

#endif
