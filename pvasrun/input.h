/* SPDX-License-Identifier: GPL-2.0-only */
/* --stdin all: copy pvasrun's standard input to every task. */
#ifndef PVASRUN_INPUT_H
#define PVASRUN_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "event.h"
#include "inlet.h"

#define INPUT_CHUNK	(64 << 10)

/* The pipe to one task */
struct feed {
	struct event event;
	struct input *input;
	size_t done;		/* of the chunk */
};

struct input {
	struct event event;	/* standard input */
	struct inlet inlet;
	struct loop *loop;
	bool pollable;		/* false: a regular file, which epoll refuses */
	bool begun;
	bool eof;
	struct feed *feeds;	/* by rank */
	unsigned int nr_feeds;
	unsigned int open;	/* feeds whose task may still read */
	unsigned int pending;	/* open feeds that have not got the whole chunk */
	size_t len;		/* of the chunk */
	char chunk[INPUT_CHUNK];
};

int input_open(struct input *input, struct loop *loop, unsigned int tasks);
void input_close(struct input *input);

/* Create the pipe of a rank; @fd receives the end for its standard input. */
int input_attach(struct input *input, unsigned int rank, int *fd);

/* After all ranks are attached: start copying. */
void input_begin(struct input *input);

#endif
