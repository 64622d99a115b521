// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: calls that make threads and processes, and others that begin what only the
 * kernel's execve() can end. After some of them the execs of the task leave the space.
 */
#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>

#include "rawsys.h"
#include "worker.h"

/* struct perf_event_attr; older headers lack the last two bits. */
#define EVENT_FLAGS	40
#define ENABLE_ON_EXEC	(1ULL << 12)
#define REMOVE_ON_EXEC	(1ULL << 36)
#define SIGTRAP_BIT	(1ULL << 37)

static int64_t continue_call(struct user_request *r)
{
	r->continued = 1;
	return 0;
}

static void mark(struct user_part *p)
{
	if (p)
		__atomic_store_n(&p->unfit, 1, __ATOMIC_RELEASE);
}

static void mark_all(struct user_space *u)
{
	uint32_t i;

	for (i = u->space->first; i <= u->space->last; i++)
		mark(&u->parts[i]);
}

/* Of the task that has this thread, or NULL. This doesn't block: see user_request_of_task(). */
static struct user_part *part_with(struct user_space *u, pid_t tid)
{
	uint32_t i;

	for (i = u->space->first; i <= u->space->last; i++) {
		pid_t pid = __atomic_load_n(&u->parts[i].pid, __ATOMIC_ACQUIRE);

		if (pid && pvas_raw3(__NR_tgkill, pid, tid, 0) != -ESRCH)
			return &u->parts[i];
	}
	return NULL;
}

void user_unfit(const struct user_request *r)
{
	mark(r->part);
	mark(part_with(r->u, r->tid));
}

/* ---- processes and threads ---- */

/*
 * A vfork child, of which the task waits for one thread only: what that child makes can outlive
 * it, and would run on in the next program's memory. Nothing tells whose child it is.
 */
static int is_child(const struct user_request *r)
{
	return !user_request_of_task(r) && !part_with(r->u, r->tid);
}

static int64_t fork_of(struct user_request *r, int waits)
{
	r->forks = !user_fork_prepare(r, waits);
	return r->forks ? continue_call(r) : -EAGAIN;
}

/*
 * fork() copies the mm, which all tasks share: before it, a worker excludes the peers' memory.
 * Threads, vfork() and posix_spawn() copy nothing, and have to stay in the launcher's namespaces.
 *
 * An execve of the kernel's changes the signal that a child's end sends to SIGCHLD: one that
 * stays can't, and another signal would end the new program.
 */
static int64_t clone_with(struct user_request *r, uint64_t flags, uint64_t exit_signal)
{
	if (((flags & CLONE_VM) && !(flags & (CLONE_THREAD | CLONE_VFORK))) ||
	    (exit_signal && exit_signal != SIGCHLD))
		user_unfit(r);
	if (!(flags & CLONE_VM))
		return fork_of(r, !!(flags & CLONE_VFORK));
	if (!user_rights_kept_by_clone(flags))
		return -EPERM;
	if (is_child(r))
		mark_all(r->u);
	return continue_call(r);
}

int64_t user_on_fork(struct user_request *r)
{
	return fork_of(r, 0);
}

int64_t user_on_vfork(struct user_request *r)
{
	return clone_with(r, CLONE_VM | CLONE_VFORK, SIGCHLD);
}

int64_t user_on_clone(struct user_request *r)
{
	return clone_with(r, r->args[0] & ~(uint64_t)CSIGNAL, r->args[0] & CSIGNAL);
}

/* Its first argument is a pointer to the others. */
int64_t user_on_clone3(struct user_request *r)
{
	struct clone_args a = { 0 };

	user_caller_read(user_caller_self(), r->args[0], &a, offsetof(struct clone_args, stack));
	return clone_with(r, a.flags, a.exit_signal);
}

/* ---- perf events ---- */

/*
 * An execve of the kernel's ends or begins these events of the thread: one that stays can't, and
 * the signal of an event that goes on would end the new program.
 */
int64_t user_on_perf_event_open(struct user_request *r)
{
	const uint64_t by_exec = ENABLE_ON_EXEC | REMOVE_ON_EXEC | SIGTRAP_BIT;
	const pid_t tid = (pid_t)r->args[1];
	uint64_t flags = by_exec;

	user_caller_read(user_caller_self(), r->args[0] + EVENT_FLAGS, &flags, sizeof(flags));
	if (flags & by_exec)
		mark(part_with(r->u, tid ? tid : r->tid));
	return continue_call(r);
}
