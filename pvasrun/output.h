/* SPDX-License-Identifier: GPL-2.0-only */
/* --tag-output, --pty: copy the tasks' output, with a tag before each line or unchanged. */
#ifndef PVASRUN_OUTPUT_H
#define PVASRUN_OUTPUT_H

#include <stdbool.h>

#include "event.h"
#include "job.h"
#include "outlet.h"
#include "relay.h"
#include "tagger.h"

/* Standard output or standard error of pvasrun */
struct sink {
	struct event event;
	struct outlet outlet;
	struct output *output;
	struct buffer queue;	/* not yet written */
	uint64_t written;	/* bytes, of all that were in the queue */
	bool pollable;		/* false: a regular file, which epoll refuses */
	bool broken;		/* its reader has closed it */
	bool finished;		/* nothing is written to it any more */
};

/* One output of one task */
struct stream {
	struct sink *sink;
	struct tagger tagger;
	unsigned int rank;
	uint64_t queued;	/* its last byte is before this one of all that are in the queue */
	bool open;
	bool pty;
	bool hung_up;		/* it has written to a reader that is gone, and been told */
};

struct output {
	struct event event;	/* of the relay; while it is not watched, all streams pause */
	struct relay relay;
	struct loop *loop;
	struct job *job;
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
	int64_t stuck_at;	/* then: so long may the next bytes take, CLOCK_MONOTONIC in ms */
};

int output_open(struct output *output, struct loop *loop, struct job *job);
void output_close(struct output *output);

/*
 * Create the pipes or pseudo-terminals of a rank. @fds receives the ends for its
 * standard output and error, to be closed after the start; -1: inherit pvasrun's own.
 */
int output_attach(struct output *output, unsigned int rank, int fds[static 2]);

/* Does any output go through pvasrun? */
static inline bool output_forwards(const struct output *output)
{
	return output->tag || output->pty;
}

/* Text that is not a task's, for standard output; not if output_is_full() */
void output_text(struct output *output, const char *text, size_t len);
bool output_is_full(const struct output *output);

/* After all ranks are attached: start reading. */
void output_begin(struct output *output);

/* All tasks have ended: what they left running may stop its output, or close it. */
void output_tasks_ended(struct output *output);

/*
 * After that: read what they wrote, and close the streams. Programs that they
 * left running may write without end.
 */
void output_finish_reading(struct output *output);

/* By when that has gone on, unless such a program holds it up; -1: no limit */
int64_t output_stuck_at(const struct output *output);

/* It has not: what is unread is lost. */
void output_give_up(struct output *output);

/* Are there open streams, or lines not yet written? Without open streams these are the last. */
bool output_reading(const struct output *output);
bool output_writing(struct output *output);

#endif
