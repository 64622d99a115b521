// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the handlers of tasks and of their fork children.
 *
 * A handler that interrupts a call has to repair it. And there is one signal whose handler in the
 * kernel is the launcher's (stay_signal.c): here the program gets and sets the action that it
 * has in mind, in the page of its partition, of which a fork child has a copy.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>

#include "rawsys.h"
#include "stay.h"
#include "worker.h"

#define SA_RESTORER_FLAG 0x04000000UL	/* libc does not show it */

static int64_t continue_call(struct user_request *r)
{
	r->continued = 1;
	return 0;
}

/* A process or thread with the caller's memory: see calls.c. */
static pid_t memory_of(const struct user_request *r)
{
	return r->inside ? user_caller_self() : r->tid;
}

static int reads(const struct user_request *r, uint64_t from, void *to, size_t len)
{
	return user_caller_read(memory_of(r), from, to, len) == (ssize_t)len;
}

static int writes(const struct user_request *r, uint64_t to, const void *from, size_t len)
{
	return user_caller_write(memory_of(r), to, from, len) == (ssize_t)len;
}

/*
 * Replace libc's restorer, which the handler returns to, by the loader's, which
 * restarts interrupted calls (the structure is libc's copy, on its stack during this
 * call). With SA_RESTART there is nothing to repair. In a fork child its copy of the
 * page has the restorer's address.
 */
static int64_t replace_restorer(struct user_request *r)
{
	uint64_t restorer, act = r->args[1];
	struct user_action sa;

	if (reads(r, act, &sa, offsetof(struct user_action, mask)) &&
	    sa.handler != (uint64_t)SIG_DFL && sa.handler != (uint64_t)SIG_IGN &&
	    (sa.flags & SA_RESTORER_FLAG) && !(sa.flags & SA_RESTART) &&
	    reads(r, (uint64_t)&r->part->page->loader, &restorer, sizeof(restorer))) {
		restorer += PVAS_BLOB_RESTORE;
		writes(r, act + offsetof(struct user_action, restorer), &restorer,
		       sizeof(restorer));
	}
	return continue_call(r);
}

/* The kernel ignores it from now on, which programs that are started then inherit. */
static int64_t ignore(struct user_request *r)
{
	const uint64_t yes = 1;

	if (!writes(r, (uint64_t)&r->part->page->ignores, &yes, sizeof(yes)))
		return -EFAULT;
	return continue_call(r);
}

static int64_t exchange(struct user_request *r)
{
	const uint64_t at = (uint64_t)&r->part->page->action;
	struct user_action act, old;
	uint64_t ignores = 0;

	if (!reads(r, (uint64_t)&r->part->page->ignores, &ignores, sizeof(ignores)) || ignores)
		return replace_restorer(r);
	if (!reads(r, at, &old, sizeof(old)) ||
	    (r->args[1] && !reads(r, r->args[1], &act, sizeof(act))))
		return -EFAULT;
	if (r->args[1] && act.handler == (uint64_t)SIG_IGN)
		return ignore(r);
	if (r->args[1] && !writes(r, at, &act, sizeof(act)))
		return -EFAULT;
	return !r->args[2] || writes(r, r->args[2], &old, sizeof(old)) ? 0 : -EFAULT;
}

/* A child with the task's memory has actions of its own, but no page: the kernel has them. */
static int has_page(const struct user_request *r)
{
	return !r->inside || user_request_of_task(r);
}

int64_t user_on_sigaction(struct user_request *r)
{
	if (r->args[0] == r->u->cookie && r->inside)
		return user_stay_answer(r);
	if ((int)r->args[0] != USER_STAY_SIGNAL)
		return replace_restorer(r);
	/* Of a wrong size: the kernel says so. */
	if (r->args[3] != sizeof(uint64_t) || !has_page(r))
		return continue_call(r);
	return exchange(r);
}

/* The handler of stay_signal.c would run there: without enough room the task would die of it. */
int64_t user_on_sigaltstack(struct user_request *r)
{
	stack_t stack;

	if (r->args[0] && reads(r, r->args[0], &stack, sizeof(stack)) &&
	    !(stack.ss_flags & SS_DISABLE) &&
	    stack.ss_size < USER_STAY_FRAME)
		user_unfit(r);
	return continue_call(r);
}
