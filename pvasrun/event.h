/* SPDX-License-Identifier: GPL-2.0-only */
/* Waiting for many descriptors at once: a thin layer over epoll(7). */
#ifndef PVASRUN_EVENT_H
#define PVASRUN_EVENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/*
 * One watched descriptor, a member of its owner's struct. An event must stay
 * in memory while its loop lives: a turn may already hold its address when
 * another handler stops watching it.
 */
struct event {
	int fd;
	bool watched;
	void (*ready)(struct event *event, uint32_t what);
};

/* A loop can be watched by another one: stop watching it, and all in it pauses. */
struct loop {
	struct event self;
};

int loop_open(struct loop *loop);
void loop_close(struct loop *loop);

/* -EPERM: a regular file or the like, which is always ready and can't be watched */
int loop_watch(struct loop *loop, struct event *event, uint32_t what);
int loop_change(struct loop *loop, struct event *event, uint32_t what);
void loop_forget(struct loop *loop, struct event *event);

/* Wait up to @timeout_ms (-1: no limit), then call the handlers of what is ready. */
int loop_turn(struct loop *loop, int timeout_ms);

#endif
