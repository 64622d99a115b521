// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: programs that have left the space by execve().
 *
 * The kernel kills them when the thread that cloned them ends, as it does tasks: that is
 * how they die with the launcher. The end of the space is no reason to die, so that
 * thread remains as their parent until they have ended.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "left.h"
#include "rawsys.h"

#define LEFT_STEP	16

/* Without reaping it: the application does that. */
static long wait_for(pid_t pid, int flags, siginfo_t *info)
{
	info->si_pid = 0;
	return pvas_raw6(__NR_waitid, P_PID, pid, (long)info,
			 WEXITED | WNOWAIT | __WNOTHREAD | flags, 0, 0);
}

static int is_alive(pid_t pid)
{
	siginfo_t info;

	return !wait_for(pid, WNOHANG, &info) && !info.si_pid;
}

static void drop_ended(struct user_left *left)
{
	unsigned int i, n = 0;

	for (i = 0; i < left->count; i++)
		if (is_alive(left->pids[i]))
			left->pids[n++] = left->pids[i];
	left->count = n;
}

void user_left_add(struct user_left *left, pid_t pid)
{
	pid_t *more;

	if (left->count == left->room)
		drop_ended(left);
	if (left->count == left->room) {
		more = realloc(left->pids, (left->room + LEFT_STEP) * sizeof(*more));
		if (!more)
			return;
		left->pids = more;
		left->room += LEFT_STEP;
	}
	left->pids[left->count++] = pid;
}

int user_left_any(struct user_left *left)
{
	drop_ended(left);
	return left->count > 0;
}

void user_left_wait(const struct user_left *left)
{
	siginfo_t info;
	unsigned int i;

	for (i = 0; i < left->count; i++)
		while (wait_for(left->pids[i], 0, &info) == -EINTR)
			;
}
