/* SPDX-License-Identifier: GPL-2.0-only */
/* An event loop: a thin layer over epoll(7). */
#ifndef PVASRUN_EVENT_H
#define PVASRUN_EVENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/*
 * A watched descriptor, as the first member of a struct. It must stay in memory as long
 * as the loop: loop_turn() may have fetched its address when another handler calls
 * loop_forget().
 */
struct event {
	int fd;
	bool watched;
	void (*ready)(struct event *event, uint32_t what);
};

/* A loop can itself be watched by a loop; to forget it pauses all of its events. */
struct loop {
	struct event self;
};

int loop_open(struct loop *loop);
void loop_close(struct loop *loop);

/* -EPERM: not supported by the file, as with regular files, which are always ready */
int loop_watch(struct loop *loop, struct event *event, uint32_t what);
int loop_change(struct loop *loop, struct event *event, uint32_t what);
void loop_forget(struct loop *loop, struct event *event);

/* Wait up to @timeout_ms (-1: no limit), then call the handlers of ready events. */
int loop_turn(struct loop *loop, int timeout_ms);

#endif
