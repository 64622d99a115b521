/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For tests of what the user backend finds out about callers */
#ifndef PVAS_TEST_CALLERS_H
#define PVAS_TEST_CALLERS_H

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "helpers.h"
#include "user/worker.h"
#include "kselftest_harness.h"

static inline int begin(void)
{
	return user_proc_begin() ?: user_caller_begin();
}

static inline int wait_for_ever(void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
	return 0;
}

/* A process with our memory, as a vfork child of a task */
static inline pid_t start_sharing(void)
{
	static char stack[1 << 16];

	return clone(wait_for_ever, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
}

static inline void end(pid_t pid)
{
	kill(pid, SIGKILL);
	end_of(pid);
}

#endif /* PVAS_TEST_CALLERS_H */
