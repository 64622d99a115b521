/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Text that ranks have pvasrun print (PMIx_Log), and libpmix's own messages. The plugin's threads
 * write it to pipes, and this side passes it on as it does its own messages and the tasks' output:
 * a reader or a file server that does not go on holds up neither a thread, which could not be
 * ended, nor the loop.
 */
#ifndef PVASRUN_TEXTS_H
#define PVASRUN_TEXTS_H

#include <stdbool.h>

#include "event.h"
#include "outlet.h"
#include "output.h"
#include "tagger.h"

enum { TEXT_OUT, TEXT_ERR, TEXT_LIBRARY, NR_TEXTS };

struct text_pipe {
	struct event event;
	struct texts *texts;
};

struct texts {
	struct loop *loop;
	struct output *output;	/* takes what is for standard output, if it forwards any */
	struct outlet own;	/* if not: */
	struct buffer rest;	/* not yet written to that */
	struct text_pipe pipes[NR_TEXTS];
	bool open, used;	/* @used: @own is */
};

/* Before the tasks are started: there may be a child that writes. */
void texts_open(struct texts *texts, struct loop *loop, struct output *output);

/*
 * @ends: to write to, which may block, except for libpmix's own messages: its one thread serves
 * all ranks. 0 or -errno
 */
int texts_begin(struct texts *texts, int ends[static NR_TEXTS]);

/* To be called again each tenth of a second while it returns true: some wait. */
bool texts_wait(struct texts *texts);

/* Read what is in the pipes. True: they are empty */
bool texts_read(struct texts *texts);

/* At the end: wait for the last ones, at most @ms. */
void texts_finish(struct texts *texts, int ms);
void texts_close(struct texts *texts);

#endif
