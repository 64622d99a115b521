/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Text that ranks have pvasrun print (PMIx_Log). The plugin's thread writes it to pipes, and this
 * side passes it on as it does its own messages and the tasks' output: a reader or a file server
 * that does not go on holds up neither the thread, which could not be ended, nor the loop.
 */
#ifndef PVASRUN_TEXTS_H
#define PVASRUN_TEXTS_H

#include <stdbool.h>

#include "event.h"
#include "outlet.h"
#include "output.h"
#include "tagger.h"

struct text_pipe {
	struct event event;
	struct texts *texts;
	int write_end;
};

struct texts {
	struct loop *loop;
	struct output *output;	/* takes what is for standard output, if it forwards any */
	struct outlet own;	/* if not: */
	struct buffer rest;	/* not yet written to that */
	struct text_pipe pipes[2];	/* for standard output and error */
	bool open, used;	/* @used: @own is */
};

/* Before the tasks are started: there may be a child that writes. */
void texts_open(struct texts *texts, struct loop *loop, struct output *output);

/* @ends: to write to, which may block. 0 or -errno */
int texts_begin(struct texts *texts, int ends[static 2]);

/* To be called again each tenth of a second while it returns true: some wait. */
bool texts_wait(struct texts *texts);

/* Read what is in the pipes. True: they are empty */
bool texts_read(struct texts *texts);

/* At the end: wait for the last ones, at most @ms. */
void texts_finish(struct texts *texts, int ms);
void texts_close(struct texts *texts);

#endif
