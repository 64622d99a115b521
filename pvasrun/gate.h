/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The gate before the PMIx server. Ranks are told of the gate's port when they
 * are started; the server behind it is started when the first rank calls, so a
 * job without MPI has none. A caller is a rank once it has said the job's name as
 * ranks do, for which it has little time; before that nothing of it gets to the
 * server. What ranks and server say after that is passed on as it is.
 */
#ifndef PVASRUN_GATE_H
#define PVASRUN_GATE_H

#include <stdbool.h>
#include <stddef.h>

#include "caller.h"
#include "event.h"
#include "handshake.h"

struct link;

/* One direction's receiving end */
struct way {
	struct event event;
	struct link *link;
	char *late;		/* what it did not take yet */
	size_t len, done;
};

struct link {
	struct way ways[2];	/* the rank, the server */
	struct link *next;
	struct link *next_free;
	struct gate *gate;
	bool waiting;		/* its caller has not said the job's name yet */
	int64_t since;
	struct link *earlier, *later;	/* others that wait */
};

struct pause {
	struct event event;	/* a timer */
	struct gate *gate;
};

struct gate {
	struct event event;
	struct loop *loop;
	struct callers callers;
	struct pause pause;	/* nobody is let in: there are no descriptors, or no place */
	struct pause patience;	/* with the first of those that wait */
	struct handshake wanted;
	struct link *first, *last;	/* of those that wait */
	unsigned int waiting, most_waiting;
	struct link *links;	/* all there have been at a time */
	struct link *free;	/* those of them that are not in use */
	int port;
	int server;		/* 1: started, 0: not yet, -1: can't be */
	int (*start)(void *arg);	/* start the server: 0, or -1 */
	void *arg;
};

int gate_open(struct gate *gate, struct loop *loop, const struct handshake *wanted,
	      int (*start)(void *arg), void *arg);

/* Let them in. */
int gate_serve(struct gate *gate);
void gate_close(struct gate *gate);

#endif
