/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The start of a task waits for the program's file server, in a call that no signal interrupts:
 * with the kernel backend as after vfork(2), with the user backend for the new process, which
 * uses the caller's thread pointer. So a thread watches for the end that somebody asks for.
 */
#ifndef PVASRUN_GUARD_H
#define PVASRUN_GUARD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct guard {
	pthread_t thread;
	bool running;
	int signals;		/* to be polled, never read */
	int stop;
	int64_t timeout_at;	/* 0: never */
	uint64_t call;		/* odd: the call is going on; 0: the guard has taken over */
	void (*take_over)(void *arg);
	void *arg;
};

/*
 * If --timeout (@timeout_at) or a signal asks for the end, and the call that goes on takes a
 * second more, the guard calls @take_over in its thread, which must not return; the thread that
 * is in the call never returns from guard_leave() then. @end: signals that ask, and are blocked.
 * Before the space is made. Without a thread (too many processes) nobody watches.
 */
void guard_open(struct guard *guard, const sigset_t *end, int64_t timeout_at,
		void (*take_over)(void *arg), void *arg);
void guard_close(struct guard *guard);

/* Around a call that can hang. It must leave what @take_over uses in order, whenever it hangs. */
void guard_enter(struct guard *guard);
void guard_leave(struct guard *guard);

#endif
