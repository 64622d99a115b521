// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the threads that answer the requests of the filter.
 *
 * A caller is a task (or a thread or vfork child of one) if it shares our mm.
 * Otherwise it is a fork child that has not called execve() yet: an ordinary
 * process with a copy of the mm, whose calls the kernel performs unchanged, with
 * few exceptions.
 */
#include <errno.h>

#include "worker.h"

/*
 * Does the caller share our mm? Its thread id alone says nothing: it can be another
 * process' before we learn of the task's end, and the task's own after an execve().
 * If the request is still valid after the comparison, the caller was compared.
 */
static int check_inside(const struct user_request *r)
{
	if (!user_caller_inside(r->tid))
		return 0;
	return user_request_valid() ? 1 : -ESRCH;
}

static int64_t handle(struct user_request *r)
{
	if (__atomic_load_n(&r->part->nr_forks, __ATOMIC_RELAXED))
		user_fork_returned(r->u, r->part, r->tid);
	r->inside = check_inside(r);
	if (r->inside < 0)
		return r->inside;
	return r->inside ? user_call_of_task(r) : user_call_of_child(r);
}

/* Anybody under the filter can make this call; it counts if the supervisor does. */
static int is_stop_request(const struct user_request *r)
{
	return r->nr == USER_NR_STOP && r->tid == r->u->supervisor_tid &&
	       __atomic_load_n(&r->u->stop, __ATOMIC_ACQUIRE);
}

/* Returns whether to continue. */
static int serve(struct user_request *r, uint64_t ip)
{
	struct user_space *u = r->u;
	uint64_t index = ip >> u->space->shift;
	int stop = is_stop_request(r);
	int64_t value = -ENOSYS;

	if (r->nr != USER_NR_STOP && index < u->entries && !user_worker_busy(u)) {
		r->part = &u->parts[index];
		value = handle(r);
		user_worker_idle(u);
	}
	/* Before the supervisor, which the answer wakes, counts the workers again */
	if (stop)
		user_worker_ends(u);
	user_request_reply(r, value);
	return !stop && !user_worker_retired();
}

void *user_worker_main(void *arg)
{
	struct user_space *u = arg;
	struct user_request r;
	struct seccomp_notif n;
	int err, running = 1;

	while (running) {
		err = user_request_receive(u, &r, &n);
		if (!err) {
			running = serve(&r, n.data.instruction_pointer);
		} else if (err != -EAGAIN) {
			user_worker_ends(u);
			running = 0;
		}
	}
	return NULL;
}
