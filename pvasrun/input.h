/* SPDX-License-Identifier: GPL-2.0-only */
/* --stdin all: copy pvasrun's standard input to every task. */
#ifndef PVASRUN_INPUT_H
#define PVASRUN_INPUT_H

#include <stdbool.h>

#include "event.h"
#include "feeder.h"
#include "inlet.h"

struct input {
	struct event event;	/* standard input */
	struct inlet inlet;
	struct feeding {
		struct event event;	/* the feeder has written all, or can write to nobody */
		struct input *input;
	} feeding;
	struct feeder feeder;
	struct loop *loop;
	bool pollable;		/* false: a regular file, which epoll refuses */
	bool begun;
	bool ended;		/* there is no more to read, or nobody to write to */
	bool pending;		/* not every open pipe has got the last bytes */
	bool failed;		/* input was lost */
};

int input_open(struct input *input, struct loop *loop, unsigned int tasks);
void input_close(struct input *input);

/* Create the pipe of the next rank; @fd receives the end for its standard input. */
int input_attach(struct input *input, int *fd);

/* The others don't wait for it, nor for what it has left running. */
void input_rank_ended(const struct input *input, unsigned int rank);

/* After all ranks are attached: start copying. */
void input_begin(struct input *input);

#endif
