// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: far memory, which is in the tasks' partitions and paged by the launcher.
 *
 * The filter sends all calls here whose first argument is in a far part, so the pager knows of
 * each change there before the kernel does.
 */
#include "far.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "../../include/linux_names.h"
#include "../far_calls.h"
#include "rawsys.h"

#define OPT_GET_AUXV	0x41555856	/* 6.4 */

static const struct pvas_far_config *next;

PVAS_PUBLIC void libpvas_set_far(const struct pvas_far_config *config)
{
	next = config;
}

/* ---- the space ---- */

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

int user_far_begin(struct user_space *u)
{
	uint64_t size = 1ULL << u->space->shift, quarter = size / 4;
	uint64_t places = u->space->last - u->space->first + 1;
	struct pvas_far_rows rows;
	struct user_far *f;
	int err;

	if (!next)
		return 0;
	/* The filter compares the upper halves of addresses. */
	if (quarter >> 32 == 0)
		return pvas_fail(-EINVAL, "far memory needs partitions of 16 GiB or more");
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	*f = (struct user_far){ .ops = next->ops, .threshold = next->threshold };
	f->rows = (unsigned int)smaller(next->rows, places);
	f->length = smaller(quarter, (next->size + next->page - 1) & ~(next->page - 1));
	rows = (struct pvas_far_rows){
		.base = ((uint64_t)u->space->first << u->space->shift) + quarter,
		.stride = size, .length = f->length, .count = f->rows,
	};
	pthread_mutex_init(&f->lock, NULL);
	err = f->ops->open(NULL, &rows, &f->kernel);
	if (err) {
		free(f);
		return pvas_fail(err, "%s", next->ops->error());
	}
	u->far = f;
	return 0;
}

/* All tasks have ended. */
void user_far_finish(struct user_space *u)
{
	struct user_far *f = u->far;

	u->far = NULL;
	if (!f)
		return;
	f->ops->close();
	user_far_free_holds(f);
	free(f);
}

void user_far_begin_part(const struct user_space *u, struct user_part *p)
{
	const struct user_far *f = u->far;
	uint64_t row = (p->base >> u->space->shift) - u->space->first;

	p->far_start = p->far_end = 0;
	if (!f || row >= f->rows)
		return;
	p->far_start = p->base + (p->end - p->base) / 4;
	p->far_end = p->far_start + f->length;
}

int user_far_end_part(struct user_space *u, const struct user_part *p)
{
	if (!p->far_end)
		return 1;
	user_far_forget(u->far, p);
	return u->far->ops->end((unsigned int)((p->base >> u->space->shift) - u->space->first));
}

int user_far_has(const struct user_space *u, uint64_t addr)
{
	uint64_t index = addr >> u->space->shift, size = 1ULL << u->space->shift;

	return u->far && index >= u->space->first && index - u->space->first < u->far->rows &&
	       (addr & (size - 1)) - size / 4 < u->far->length;
}

/* ---- the calls ---- */

static unsigned int row_of(const struct user_request *r)
{
	return (unsigned int)(r->part - r->u->parts) - r->u->space->first;
}

/* One line for the user, who would find the program's own message hard to understand */
static void tell_full(void *owner, uint64_t len)
{
	struct user_far *f = ((struct user_request *)owner)->u->far;

	if (!__atomic_exchange_n(&f->told_full, 1, __ATOMIC_RELAXED))
		dprintf(2, "pvasrun: no far memory is left for a mapping of %llu bytes: the task gets ENOMEM (--far-size)\n",
			(unsigned long long)len);
}

static int64_t map_local(void *owner, uint64_t addr, uint64_t len, int prot, int flags)
{
	struct user_mmap m = {
		.addr = addr, .len = len, .prot = prot, .flags = flags, .fd = -1,
	};

	return user_mmap_fixed(((struct user_request *)owner)->part, &m);
}

static int changes_memory(int nr)
{
	switch (nr) {
	case __NR_mmap:
	case __NR_munmap:
	case __NR_madvise:
	case __NR_mremap:
	case __NR_mlock:
	case __NR_mlock2:
	case __NR_shmat:
		return 1;
	default:
		return 0;
	}
}

/* All change the partition's memory, so under its lock. */
static int map_call(struct user_request *r, int64_t *value)
{
	const struct user_part *p = r->part;
	const struct pvas_far_part far = {
		.ops = r->u->far->ops, .threshold = r->u->far->threshold, .row = row_of(r),
		.base = p->base, .end = p->end, .far_start = p->far_start, .far_end = p->far_end,
		.map_local = map_local, .full = tell_full, .owner = r,
	};
	int done;

	if (!changes_memory(r->nr) || !p->far_end)
		return 0;
	*value = -ESRCH;
	if (user_call_lock(r))
		return 1;
	done = pvas_far_call(&far, r->nr, r->args, value);
	user_call_unlock(r);
	return done;
}

/* It comes here because it has an address: the filter lets the kernel make it. */
static int asks_thread(const struct user_request *r)
{
	if (r->nr != __NR_prctl)
		return 0;
	switch ((uint32_t)r->args[0]) {
	case PR_GET_NAME:
	case PR_SET_NAME:
	case PR_GET_PDEATHSIG:
	case PR_GET_TSC:
	case PR_GET_CHILD_SUBREAPER:
	case PR_GET_TID_ADDRESS:
	case OPT_GET_AUXV:
	case PR_SCHED_CORE:
		return 1;
	default:
		return 0;
	}
}

int user_far_call(struct user_request *r, int64_t *value)
{
	struct user_far *f = r->u->far;

	if (!f)
		return 0;
	user_far_returned(f, r->tid);
	if (r->nr == __NR_exit || r->nr == __NR_exit_group)
		user_far_hold_locks(r);
	if (map_call(r, value))
		return 1;
	if (!f->kernel) {
		if (user_far_transfer(r, value))
			return 1;
		*value = user_far_hold(r);
		if (*value)
			return 1;
	}
	if (user_call_known(r->nr) && !pvas_sets_base(r->nr, r->args[0]) && !asks_thread(r))
		return 0;
	r->continued = 1;
	*value = 0;
	return 1;
}
