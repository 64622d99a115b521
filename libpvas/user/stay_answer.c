// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the execve() of a task that stays in its space, a worker's answers to the thread
 * that is in the handler.
 */
#include <errno.h>

#include "stay.h"
#include "worker.h"

static int64_t confirm(const struct user_request *r)
{
	struct user_part *p = r->part;

	if (r->tid != p->pid || __atomic_load_n(&p->unfit, __ATOMIC_ACQUIRE) ||
	    !user_stay_has_rights(r->u, p->pid, p->stay->tid) || !user_request_valid())
		return -EPERM;
	__atomic_store_n(&p->stay->confirmed, 1, __ATOMIC_RELEASE);
	return 0;
}

/* If the caller has been killed, its process' number can be another's. */
static int64_t call_others(const struct user_request *r)
{
	struct user_part *p = r->part;
	int count;

	if (r->tid != p->stay->tid || !user_request_valid())
		return -EPERM;
	count = user_stay_call_others(p, r->tid);
	__atomic_store_n(&p->stay->others, count, __ATOMIC_RELEASE);
	return 0;
}

static int64_t begin_to_load(struct user_request *r)
{
	int err = user_map_begin(r->u, r->part, r);

	if (err)
		return err;
	err = user_call_lock(r);
	if (!err) {
		user_load_begin(r->u, r->part);
		user_call_unlock(r);
	}
	user_map_end(r->u);
	return err;
}

int64_t user_stay_answer(struct user_request *r)
{
	struct user_part *p = r->part;
	int64_t ret = -EPERM;
	int asks = -1;

	if (user_call_lock(r))
		return -ESRCH;
	if (p->stay)
		asks = p->stay->asks;
	if (asks == STAY_ASKS_RIGHTS)
		ret = confirm(r);
	else if (asks == STAY_ASKS_OTHERS)
		ret = call_others(r);
	user_call_unlock(r);
	return asks == STAY_ASKS_TURN && r->tid == p->pid ? begin_to_load(r) : ret;
}
