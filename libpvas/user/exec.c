// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: a task that calls execve() leaves the space.
 *
 * Nothing reports that an execve() has succeeded, so the supervisor compares
 * the address spaces: often at first, then less often. After that it is a large
 * program, or the execve() has failed.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "user.h"
#include "worker.h"

#define EXEC_POLLS	60
#define EXEC_RARE	20
#define EXEC_POLL_MS	5
#define EXEC_RARE_MS	500
#define EXEC_LAST_MS	5000	/* for as long as the task lives */

/* A thread of it that has an address space, if the first has none. 0: none has. */
static pid_t live_among_others(pid_t pid)
{
	int fd = user_proc_open(pid, "task", O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	pid_t tid = 0;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while (!tid && (entry = readdir(dir))) {
		tid = (pid_t)atoi(entry->d_name);
		if (!tid || !user_caller_pages(pid, tid))
			tid = 0;
	}
	closedir(dir);
	return tid;
}

static pid_t live_thread(pid_t pid)
{
	return user_caller_pages(pid, pid) ? pid : live_among_others(pid);
}

/*
 * After an exec, whichever thread has called it, the first thread has another mm, as have
 * those that it starts. It has none when it has ended before the others. All tasks' starts
 * and ends wait for the answer.
 */
int user_exec_left(const struct user_part *p)
{
	pid_t tid;

	/* The number can be another process' before the supervisor learns of the end. */
	if (user_pidfd_dead(p->pidfd))
		return 0;
	tid = live_thread(p->pid);
	return tid && user_caller_left(p->pid, tid);
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

	clock_gettime(CLOCK_MONOTONIC, &until);
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
