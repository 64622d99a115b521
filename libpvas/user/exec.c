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
		(user_pidfd_dead(p->pidfd) || (user_exec_any(p) && user_exec_left(p))));
}

void user_wait_for_change(struct user_space *u)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec++;
	pthread_cond_timedwait(&u->changed, &u->lock, &until);
}

/* ---- threads in execve() ---- */

int user_exec_any(const struct user_part *p)
{
	return __atomic_load_n(&p->nr_execs, __ATOMIC_ACQUIRE) != 0;
}

/* Under exec_lock, as the next ones. With all it is 0 again. */
static void set_number(struct user_space *u, struct user_part *p, unsigned int n)
{
	int more = !!n - !!p->nr_execs;

	__atomic_store_n(&p->nr_execs, n, __ATOMIC_RELEASE);
	if (more)
		__atomic_add_fetch(&u->nr_execs, more, __ATOMIC_ACQ_REL);
}

/* Where @tid is among them, or their number */
static unsigned int place_of(const struct user_part *p, pid_t tid)
{
	unsigned int i;

	for (i = 0; i < p->nr_execs && i < EXECS_MAX; i++)
		if (p->execs[i] == tid)
			break;
	return i;
}

/*
 * One that is no thread any more has ended, or its execve() was successful: its place can be
 * another's, but their number remains, by which the supervisor looks.
 */
static unsigned int place_for(const struct user_part *p, pid_t tid)
{
	unsigned int i = place_of(p, tid);

	if (i < p->nr_execs)
		return i;
	for (i = 0; i < p->nr_execs && i < EXECS_MAX; i++)
		if (!user_is_thread_of(p->pid, p->execs[i]))
			break;
	return i;
}

static void expect(struct user_space *u, struct user_part *p, pid_t tid)
{
	unsigned int i;

	pthread_mutex_lock(&u->exec_lock);
	p->exec_polls = EXEC_POLLS;
	i = place_for(p, tid);
	if (i < EXECS_MAX)
		p->execs[i] = tid;
	if (i >= p->nr_execs)
		set_number(u, p, i + 1);
	pthread_mutex_unlock(&u->exec_lock);
}

/*
 * The code that makes the call can be a peer's, so the partition in question is that of the
 * caller's process.
 */
void user_exec_begin(struct user_space *u, pid_t tid)
{
	uint32_t i;

	for (i = u->space->first; i <= u->space->last; i++) {
		struct user_part *p = &u->parts[i];
		pid_t pid = __atomic_load_n(&p->pid, __ATOMIC_ACQUIRE);

		if (user_is_thread_of(pid, tid))
			expect(u, p, tid);
	}
	user_wake(u);
}

/*
 * Still under the lock the thread waits for the answer to this request, so the execve() that is
 * forgotten is an earlier one: a signal could have ended the wait, and its handler made the next.
 */
void user_exec_returned(const struct user_request *r)
{
	struct user_part *p = r->part;
	unsigned int i;

	pthread_mutex_lock(&r->u->exec_lock);
	i = place_of(p, r->tid);
	if (i < p->nr_execs && p->nr_execs <= EXECS_MAX && user_request_valid()) {
		p->execs[i] = p->execs[p->nr_execs - 1];
		set_number(r->u, p, p->nr_execs - 1);
	}
	pthread_mutex_unlock(&r->u->exec_lock);
}

int user_exec_of_other(struct user_space *u, const struct user_part *p, pid_t tid)
{
	unsigned int i;
	int other;

	pthread_mutex_lock(&u->exec_lock);
	other = p->nr_execs > EXECS_MAX;
	for (i = 0; i < p->nr_execs && !other; i++)
		other = p->execs[i] != tid && user_is_thread_of(p->pid, p->execs[i]);
	pthread_mutex_unlock(&u->exec_lock);
	return other;
}

void user_exec_forget(struct user_space *u, struct user_part *p)
{
	pthread_mutex_lock(&u->exec_lock);
	set_number(u, p, 0);
	pthread_mutex_unlock(&u->exec_lock);
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
