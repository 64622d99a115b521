// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: a task that calls execve() leaves the space.
 *
 * Nothing reports that an execve() has succeeded, so the supervisor compares
 * the address spaces: often at first, then less often. After that it is a large
 * program, or the execve() has failed.
 */
#include "user.h"
#include "worker.h"

#define EXEC_POLLS	60
#define EXEC_RARE	20
#define EXEC_POLL_MS	5
#define EXEC_RARE_MS	500
#define EXEC_LAST_MS	5000	/* for as long as the task lives */

/*
 * After an exec, whichever thread has called it, the first thread has another mm. It has
 * none when it has ended before the others. All tasks' starts and ends wait for the
 * answer, and to compare the address spaces would wait for an execve() that has passed the
 * point of no return. So that is not done in its first milliseconds, and after that only
 * if user_caller_elsewhere() shows that the process is not in that state.
 */
int user_exec_left(const struct user_part *p)
{
	/* The number can be another process' before the supervisor learns of the end. */
	if (user_pidfd_dead(p->pidfd))
		return 0;
	if (user_caller_elsewhere(p->pid))
		return 1;
	return p->exec_polls < EXEC_POLLS - 1 && user_caller_left(p->pid);
}

int user_part_ending(const struct user_part *p)
{
	return (p->state == PVAS_PART_ENDING && p->stuck < USER_STUCK_MAX) ||
	       (p->state == PVAS_PART_RUNNING &&
		(user_pidfd_dead(p->pidfd) ||
		 (__atomic_load_n(&p->exec_tid, __ATOMIC_ACQUIRE) && user_exec_left(p))));
}

void user_wait_for_change(struct user_space *u)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	pthread_cond_timedwait(&u->changed, &u->lock, &until);
}

static void expect(struct user_space *u, struct user_part *p, pid_t tid)
{
	p->exec_polls = EXEC_POLLS;
	if (!__atomic_exchange_n(&p->exec_tid, tid, __ATOMIC_ACQ_REL))
		__atomic_add_fetch(&u->nr_execs, 1, __ATOMIC_ACQ_REL);
}

/*
 * The code that makes the call can be a peer's, so the partition in question is
 * that of the caller's process. If that process can't be determined for lack of
 * a descriptor, it may be any.
 */
void user_exec_begin(struct user_space *u, pid_t tid)
{
	pid_t pid = user_caller_process(tid);
	uint32_t i;

	for (i = u->space->first; i <= u->space->last; i++) {
		struct user_part *p = &u->parts[i];

		if (__atomic_load_n(&p->pid, __ATOMIC_ACQUIRE) && (!pid || p->pid == pid))
			expect(u, p, tid);
	}
	user_wake(u);
}

void user_exec_forget(struct user_space *u, struct user_part *p)
{
	if (__atomic_exchange_n(&p->exec_tid, 0, __ATOMIC_ACQ_REL))
		__atomic_sub_fetch(&u->nr_execs, 1, __ATOMIC_ACQ_REL);
}

int user_exec_poll_ms(struct user_part *p)
{
	/* The execve() came before pvas_task_spawn() returned, which doesn't wake us. */
	if (p->state == PVAS_PART_ARMED)
		return EXEC_POLL_MS;
	if (p->state != PVAS_PART_RUNNING)
		return -1;
	if (p->exec_polls <= 0)
		return EXEC_LAST_MS;
	return --p->exec_polls > EXEC_RARE ? EXEC_POLL_MS : EXEC_RARE_MS;
}
