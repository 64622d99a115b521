// SPDX-License-Identifier: LGPL-2.1-or-later
/* Access to the memory of a task that may end at any moment. */
#include "guard.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <pvas.h>

#include "task.h"

__thread sigjmp_buf *guard_jump;
static struct sigaction previous;

/* Async-signal-safe: snprintf() of integers and strings is, in the C library of GNU. */
static void report(const void *addr)
{
	char line[160];
	int n;

	if (!task_attached())
		n = snprintf(line, sizeof(line),
			     "pvas: a view of another task's memory was used by a process that is no task (a child made by fork has no views)\n");
	else
		n = snprintf(line, sizeof(line),
			     "pvas: a view of the memory of rank %d was used, but that task has ended\n",
			     task_rank_of(task_index_at(addr)));
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}

static void on_fault(int signo, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)context;
	if (info->si_code > 0 && task_is_foreign(info->si_addr)) {
		if (guard_jump)
			siglongjmp(*guard_jump, 1);
		report(info->si_addr);
	}
	/* The instruction is executed again, and its fault goes to the handler of before. */
	sigaction(signo, &previous, NULL);
	if (info->si_code <= 0)
		raise(signo);
	errno = saved;
}

int guard_install(void)
{
	/* SA_NODEFER: siglongjmp() need not restore the mask */
	struct sigaction action = {
		.sa_sigaction = on_fault,
		.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK,
	};

	sigemptyset(&action.sa_mask);
	return sigaction(SIGSEGV, &action, &previous) ? -errno : 0;
}

int guard_copy(void *to, const void *from, size_t len)
{
	int failed;

	GUARDED(failed, memcpy(to, from, len));
	return failed ? -1 : 0;
}
