/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* User backend: a new task, from the caller of pvas_task_spawn() to the new process. */
#ifndef PVAS_USER_CLONE_H
#define PVAS_USER_CLONE_H

#include <sys/types.h>

struct pvas_spawn_call;
struct user_part;
struct user_space;

/* In user_part.start */
#define START_DEAD	0	/* stored by the kernel (CLONE_CHILD_CLEARTID) */
#define START_WAIT	1
#define START_DONE	2	/* the task runs, and has left the launcher's stack and TLS */
#define START_CHECK	3	/* it waits until its rights have been checked, */
#define START_GO	4	/* and may go on, */
#define START_REFUSED	5	/* or not */

/**
 * struct user_clone_request - a request to the supervisor: clone a process
 * @call:	the spawn to perform, or NULL
 * @part:	its partition
 * @tls:	thread pointer of the requester, which sleeps: the new process borrows it
 * @stack:	top of the new process' first stack
 * @persona:	of the requester, for personality(2)
 * @caller:	thread of the requester, for its processor affinity
 * @securebits:	of the new process, after the setup function
 * @shut_out:	the setup function has entered a Landlock domain
 * @done:	the supervisor has finished: @err is valid
 * @err:	0 or -errno
 */
struct user_clone_request {
	struct pvas_spawn_call *call;
	struct user_part *part;
	void *tls;
	void *stack;
	unsigned long persona;
	pid_t caller;
	long securebits;
	int shut_out;
	int done;
	int err;
};

/* Argument of the new process. */
struct user_start {
	struct user_space *u;
	struct user_part *part;
	struct pvas_spawn_call *call;
	unsigned long persona;
	pid_t caller;
};

#endif /* PVAS_USER_CLONE_H */
