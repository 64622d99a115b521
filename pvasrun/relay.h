/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A child that reads the tasks' pipes and pseudo-terminals in pvasrun's place.
 *
 * A program that a task has started, as another user, too, can hold the lock of a pipe or the
 * line discipline of a terminal for as long as it likes: by a write(2) from memory that its own
 * file server does not deliver. Meanwhile read(2), close(2) and even the exit of whoever has the
 * other end wait, and SIGKILL does not end that.
 */
#ifndef PVASRUN_RELAY_H
#define PVASRUN_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "event.h"
#include "file_child.h"

#define RELAY_MAX	(16 << 10)

struct relay {
	struct event owed_event;	/* a timer, while orders are owed */
	struct loop *loop;
	struct file_child child;
	unsigned int owed;		/* bits: orders for which there was no room yet */
};

#define RELAY_NONE	{ .owed_event.fd = -1, .child = FILE_CHILD_NONE }

/*
 * @relay is RELAY_NONE. To be called before there is much memory, of which the child has a copy.
 * Orders that it can't take at once are given in @loop. 0 or -errno: to be closed all the same.
 */
int relay_begin(struct relay *relay, unsigned int streams, struct loop *loop);

/*
 * It reads from now on. Not before all tasks have been started: it could hang, and the start of the
 * next one wait for it.
 */
void relay_start(struct relay *relay);

/*
 * From now on the child has @fd, and of a pseudo-terminal the task's end, too (-1: a pipe). The
 * caller closes its own before the task starts. Returns 0 or -errno.
 */
int relay_add(const struct relay *relay, unsigned int stream, int fd, int other_end);

/*
 * The next bytes of a stream, *@stream. 0: it has ended. -1: EAGAIN, nothing has come yet; ENODATA,
 * bytes of *@stream were lost in its pseudo-terminal, for the first time; others, the child has
 * ended.
 */
ssize_t relay_read(const struct relay *relay, unsigned int *stream, char bytes[static RELAY_MAX]);

/* Nothing more is read from it. False: no room to tell it now, it goes on. */
bool relay_hang_up(struct relay *relay, unsigned int stream);

/* Nor from pipes among streams @first, @first + 2, ... */
void relay_hang_up_pipes(struct relay *relay, unsigned int first);

/* Processes that tasks have left can end terminals now. */
void relay_tasks_ended(struct relay *relay);

/* Read what is there, at most what pipes and terminals hold, and end all streams. */
void relay_finish(struct relay *relay);

/* A child that can't end is left to init. */
void relay_close(struct relay *relay);

#endif
