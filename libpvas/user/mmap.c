// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: mmap() of a task, and the locks of all calls that map.
 */
#include <errno.h>
#include <sys/mman.h>

#include "apart.h"
#include "rawsys.h"
#include "worker.h"

int64_t user_call_continue(struct user_request *r)
{
	r->continued = 1;
	return 0;
}

/* Has it a task, or one that is just starting? */
static int is_live(const struct user_part *p)
{
	uint32_t state = __atomic_load_n(&p->state, __ATOMIC_ACQUIRE);

	return state == PVAS_PART_RUNNING || state == PVAS_PART_ARMED;
}

/*
 * The caller may be gone, and the partition be the next task's; but not if no task
 * has ended since the request was made.
 */
int user_call_lock(struct user_request *r)
{
	struct user_part *p = r->part;

	pthread_mutex_lock(&p->lock);
	if (is_live(p) && user_request_current(r))
		return 0;
	pthread_mutex_unlock(&p->lock);
	return -ESRCH;
}

void user_call_unlock(struct user_request *r)
{
	pthread_mutex_unlock(&r->part->lock);
}

int user_call_lock_to_map(struct user_request *r)
{
	int err = user_map_begin(r->u, r->part, r);

	if (err)
		return err;
	err = user_call_lock(r);
	if (err)
		user_map_end(r->u);
	return err;
}

void user_call_unlock_mapped(struct user_request *r)
{
	user_call_unlock(r);
	user_map_end(r->u);
}

/* The file may be slow: it is not filled under the partition's lock. */
static int64_t map_for(struct user_request *r, struct user_mmap *m)
{
	const int how = user_fill_how(m);
	int64_t ret = -ESRCH;

	if (!user_call_lock_to_map(r)) {
		if (m->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE))
			ret = user_mmap_fixed(r->part, m);
		else
			ret = user_mmap(r->part, m);
		if (how == USER_FILL_LOCKED && ret > 0)
			ret = user_fill_reserve(m, ret);
		user_call_unlock_mapped(r);
	}
	if (how != USER_FILL_NOT && ret > 0)
		user_fill(r, (uint64_t)ret, m->len, how, m->tid != 0);
	return ret;
}

/* Where the heap doesn't come, if there are no forks. Then perf sees that the task maps. */
static int kernel_may_map(const struct user_request *r)
{
	uint64_t addr = r->args[0], len = r->args[1];

	return !__atomic_load_n(&r->u->turns.ever, __ATOMIC_RELAXED) &&
	       (r->args[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE)) && addr + len >= addr &&
	       user_may_map(r->part, addr, len) && addr + len <= r->part->layout.heap;
}

/*
 * The task may have another file there since it was looked at. One that can hang is not closed
 * here: from then on this task's files are mapped apart.
 */
static int64_t map_copy(struct user_request *r, struct user_mmap *m, const struct user_look *look)
{
	int64_t ret;

	m->fd = user_caller_file(r->tid, m->fd, m->prot, m->flags);
	/* It is the workers' table that is full, not the task's: mmap(2) has no EMFILE. */
	if (m->fd < 0)
		return m->fd == -EMFILE ? -ENFILE : m->fd;
	ret = map_for(r, m);
	if (user_caller_close(r->u, m->fd, look)) {
		__atomic_store_n(&r->u->unclosed, 1, __ATOMIC_RELEASE);
		__atomic_store_n(&r->part->apart, 1, __ATOMIC_RELAXED);
	}
	return ret;
}

static int64_t map_file(struct user_request *r, struct user_mmap *m)
{
	struct user_look look;
	int err;

	m->fd = (int)r->args[4];
	err = user_caller_look(r->u, r->tid, m->fd, &look);
	if (err)
		return err;
	user_fork_check_file(r->u, r->part, &look);
	if (kernel_may_map(r))
		return user_call_continue(r);
	if (!user_caller_can_hang(&look) && !__atomic_load_n(&r->part->apart, __ATOMIC_RELAXED))
		return map_copy(r, m, &look);
	m->tid = r->tid;
	m->u = r->u;
	m->server = (uint64_t)look.st.stx_dev_major << 32 | look.st.stx_dev_minor;
	err = user_apart_wait(r, m->server);
	return err ? err : map_for(r, m);
}

int64_t user_on_mmap(struct user_request *r)
{
	struct user_mmap m = {
		.addr = r->args[0], .len = r->args[1], .prot = (int)r->args[2],
		.flags = (int)r->args[3], .fd = -1, .off = r->args[5],
	};

	if (m.flags & MAP_GROWSDOWN)
		return -ENOMEM;
	if (m.flags & MAP_HUGETLB)
		user_fork_exempt(r->u, r->part);
	if (m.flags & MAP_ANONYMOUS)
		return kernel_may_map(r) ? user_call_continue(r) : map_for(r, &m);
	return map_file(r, &m);
}
