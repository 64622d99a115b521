// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the threads that answer the requests of the filter.
 *
 * A caller is a task (or a thread or vfork child of one) if it shares our mm.
 * Otherwise it is outside: a fork child that has not called execve() yet, an ordinary
 * process with a copy of the mm, whose calls the kernel performs unchanged, with few
 * exceptions.
 *
 * Workers receive all requests, and handle those of tasks' threads. The others are
 * queued for helpers, so that they can't keep workers from their tasks.
 */
#include <errno.h>
#include <stdlib.h>

#include "rawsys.h"
#include "worker.h"

enum { OUTSIDE, INSIDE, UNKNOWN };

/*
 * Does the caller share our mm? Its thread id alone says nothing: it can be another
 * process' before we learn of the task's end, and the task's own after an execve().
 * If the request is still valid after the comparison, the caller was compared.
 */
static int check_inside(int inside)
{
	if (inside <= 0)
		return inside;
	return user_request_valid() ? 1 : -ESRCH;
}

/* Of a thread that is one of a task's by its number */
static int check_task(const struct user_request *r)
{
	/* It may be another program by now, which can make whoever asks wait. */
	if (user_exec_any(r->part))
		return user_caller_left(r->tid, r->tid) ?
			       0 : check_inside(user_caller_inside(r->tid));
	return check_inside(user_caller_still_inside(r->tid));
}

/*
 * When the task has been killed, its addresses must not become the next one's while this
 * may still store there. So either the partition is not reclaimed yet, or this is too late.
 */
static int64_t handle_task(struct user_request *r)
{
	int64_t value = -ESRCH;

	__atomic_add_fetch(&r->part->handled, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&r->part->nr_forks, __ATOMIC_RELAXED))
		user_fork_returned(r->u, r->part, r->tid);
	if (user_exec_any(r->part))
		user_exec_returned(r);
	if (user_request_current(r))
		value = user_call_of_task(r);
	__atomic_sub_fetch(&r->part->handled, 1, __ATOMIC_SEQ_CST);
	return value;
}

static void reply(const struct user_request *r, int64_t value)
{
	user_request_reply(r, value);
	if (r->forks)
		user_fork_answered(r);
}

/* ---- workers ---- */

/*
 * A fork child has the argument as well; the call counts if the supervisor makes it. Of anybody
 * else the kernel refuses it.
 */
static int is_stop_request(const struct user_request *r)
{
	return r->nr == __NR_rt_sigaction && r->args[0] == r->u->cookie &&
	       r->tid == r->u->supervisor_tid && __atomic_load_n(&r->u->stop, __ATOMIC_ACQUIRE);
}

/* Returns whether the request has been answered: not that of a caller outside. */
static int serve_task(struct user_request *r)
{
	int64_t value = -ENOSYS;

	if (!user_worker_busy(r->u)) {
		r->inside = check_task(r);
		if (r->inside)
			value = r->inside < 0 ? r->inside : handle_task(r);
		user_worker_idle(r->u);
		if (!r->inside)
			return 0;
	}
	reply(r, value);
	return 1;
}

static void serve(struct user_request *r)
{
	int err;

	if (user_request_of_task(r) && serve_task(r))
		return;
	r->inside = UNKNOWN;
	err = user_queue_add(r->u, r);
	if (err)
		user_request_reply(r, err == -EINTR ? -ENOSYS : err);
}

void *user_worker_main(void *arg)
{
	struct user_space *u = arg;
	struct user_request r;
	int err, running = 1;

	while (running) {
		err = user_request_receive(u, &r);
		if (err == -EAGAIN)
			continue;
		if (!err && !is_stop_request(&r)) {
			serve(&r);
			running = !user_worker_retired();
			continue;
		}
		/* Before the supervisor, which the answer wakes, counts the workers again */
		user_worker_ends(u);
		running = 0;
		if (!err)
			user_request_reply(&r, -ENOSYS);
	}
	user_reader_leave();
	return NULL;
}

/* ---- helpers ---- */

static int64_t handle(struct user_request *r)
{
	if (r->inside == UNKNOWN)
		r->inside = check_inside(user_caller_inside(r->tid));
	if (r->inside == OUTSIDE)
		return user_call_of_child(r);
	return r->inside == INSIDE ? handle_task(r) : r->inside;
}

/* By what the caller does. The kernel performs all other calls of those outside. */
static int can_hang(const struct user_request *r)
{
	return r->inside != OUTSIDE || user_call_reads_child(r);
}

static int is_new_stranger(struct user_request *r)
{
	if (r->stranger || !can_hang(r))
		return 0;
	r->stranger = user_caller_is_own(r->u, r->tid, &r->owner) <= 0 || user_sandbox_call(r);
	return r->stranger;
}

static void serve_deferred(struct user_request *r)
{
	int waits = user_request_valid();

	if (waits && is_new_stranger(r) && !user_queue_admit(r->u, r))
		return;
	if (waits)
		reply(r, handle(r));
	user_queue_done(r->u, r, waits);
	free(r);
}

/*
 * The caller has just been killed, or is identified. If it was killed while the request was
 * in the queue, its number can be that of a process that hangs in execve(): not looked at.
 */
static void identify(struct user_request *r)
{
	if (!user_request_valid()) {
		free(r);
		return;
	}
	if (!r->part)
		r->inside = OUTSIDE;
	else if (!user_caller_doubtful(r->tid))
		r->inside = check_inside(user_caller_inside(r->tid));
	if (r->inside == OUTSIDE || r->inside == UNKNOWN) {
		user_queue_defer(r->u, r);
		return;
	}
	reply(r, handle(r));
	free(r);
}

void *user_helper_main(void *arg)
{
	struct user_space *u = arg;
	struct user_request *r;

	while ((r = user_queue_next(u))) {
		user_request_begin(r);
		if (r->meter)
			serve_deferred(r);
		else
			identify(r);
		user_reader_done();
	}
	user_reader_leave();
	user_helper_ends(u);
	return NULL;
}
