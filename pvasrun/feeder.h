/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A child that writes to the tasks' pipes in pvasrun's place: a program of another user, which a
 * task has started, can hold up whoever writes to them, as relay.h says of reading.
 *
 * The next bytes are sent when every task has got the present ones, so memory is bounded
 * and the slowest reader sets the pace. A task that has ended or closed its input is left out,
 * also if the child hangs in a call for its pipe: a spare, which has the same descriptors, then
 * goes on in its place.
 */
#ifndef PVASRUN_FEEDER_H
#define PVASRUN_FEEDER_H

#include <stdbool.h>
#include <stddef.h>

#include "file_child.h"

#define FEEDER_MAX	(16 << 10)

struct feeder_shared;

struct feeder {
	struct file_child child;
	unsigned int added;	/* pipes */
	unsigned int closed;	/* of the first so many all are */
	bool dead;		/* somebody has killed the child */
	struct feeder_shared *shared;	/* with the child */
	size_t size;		/* of that */
	int notice;		/* an eventfd: look there. Unlike a packet it finds room. */
};

/* To be called before there is much memory, of which the child has a copy. 0 or -errno. */
int feeder_begin(struct feeder *feeder, unsigned int pipes);

/*
 * From now on the child has @fd, the end to write to. The caller closes its own before the task
 * starts. Returns 0 or -errno.
 */
int feeder_add(struct feeder *feeder, int fd);

/* Not before feeder_hear() told that the last ones are written. Returns 0 or -errno. */
int feeder_send(const struct feeder *feeder, const char *bytes, size_t len);

/* Reads its message: all is written, or tasks have closed all pipes. False: there is none. */
bool feeder_hear(struct feeder *feeder);

/* Have all tasks closed their pipes? */
bool feeder_has_ended(const struct feeder *feeder);

/* The task has ended: of the pipe that was added as number @pipe nothing is waited for any more. */
void feeder_end(const struct feeder *feeder, unsigned int pipe);

/* The last bytes have been written: the tasks get the end of their input. */
void feeder_finish(const struct feeder *feeder);

/* Closes the pipes. A child that can't end is left to init. */
void feeder_close(struct feeder *feeder);

#endif
