/* SPDX-License-Identifier: GPL-2.0-only */
/* Signals that pvasrun gets, and what of them reaches the tasks. */
#ifndef PVASRUN_SIGNALS_H
#define PVASRUN_SIGNALS_H

#include <signal.h>

#include "event.h"
#include "job.h"

struct signals {
	struct event event;
	struct job *job;
	sigset_t ignored;	/* by whoever started pvasrun: nohup(1), a shell's "&" */
};

/*
 * From here on signals come through the loop. Before any thread is made, for
 * threads inherit it.
 */
int signals_open(struct signals *signals, struct loop *loop, struct job *job);
void signals_close(struct signals *signals);

/* Die as the signal @signo would have made pvasrun die, so that a shell sees it. */
void signals_die_from(int signo);

#endif
