/* SPDX-License-Identifier: GPL-2.0-only */
/* Receive signals, and forward them to the tasks. */
#ifndef PVASRUN_SIGNALS_H
#define PVASRUN_SIGNALS_H

#include <signal.h>

#include "event.h"
#include "job.h"

/* SIGCHLD, which may be pending at all times and then hide the others */
struct child_signal {
	struct event event;
	struct signals *signals;
};

struct signals {
	struct event event;
	struct child_signal child;
	struct job *job;
	sigset_t ignored;	/* inherited: from nohup(1), or a shell's "&" */
	sigset_t end;		/* those that ask for the job's end */
};

/*
 * From here on signals are read from the loop. Call it before any thread is created,
 * for threads inherit the signal mask.
 */
int signals_open(struct signals *signals, struct loop *loop, struct job *job);
void signals_close(struct signals *signals);

/* Die from @signo, so that a shell sees the right status. */
void signals_die_from(int signo);

#endif
