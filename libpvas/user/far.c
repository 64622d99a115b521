// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: far memory, which is in the tasks' partitions and paged by the launcher.
 *
 * The filter sends all calls here whose first argument is in a far part, so the pager knows of
 * each change there before the kernel does. Large private mappings whose place the task doesn't
 * choose become far. Where a call can't be done for far memory it fails; it is never done in
 * part.
 */
#include "far.h"

#include <errno.h>
#include <linux/mman.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>

#include "../../include/linux_names.h"
#include "rawsys.h"

/* A mapping of stacks, of huge pages or without reservation is not for far memory. */
#define NEVER_FAR	(MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_GROWSDOWN | MAP_HUGETLB | \
			 MAP_STACK | MAP_NORESERVE | MAP_LOCKED | PVAS_MAP_LOW | MAP_SHARED)

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

/* ---- ranges ---- */

/**
 * struct parts - a range of the task's, cut
 * @addr:	the part in far memory
 * @end:	its end; @addr if there is none
 * @from:	the beginning of all
 * @to:		the end of all
 */
struct parts {
	uint64_t addr, end, from, to;
};

/* 0 if nothing is far, or if it is for the kernel to refuse. */
static int cut(const struct user_part *p, uint64_t addr, uint64_t len, struct parts *c)
{
	uint64_t to = addr + PAGE_UP(len);

	if (!p->far_end || addr & (PAGE - 1) || to <= addr || PAGE_UP(len) < len ||
	    user_foreign(p, addr, PAGE_UP(len)) || addr >= p->far_end || to <= p->far_start)
		return 0;
	c->from = addr;
	c->to = to;
	c->addr = addr > p->far_start ? addr : p->far_start;
	c->end = smaller(to, p->far_end);
	return 1;
}

static int64_t unmap_parts(const struct user_far *f, const struct parts *c)
{
	int64_t err = f->ops->unmap(c->addr, c->end - c->addr);

	if (!err && c->from < c->addr)
		err = pvas_raw2(__NR_munmap, c->from, c->addr - c->from);
	if (!err && c->end < c->to)
		err = pvas_raw2(__NR_munmap, c->end, c->to - c->end);
	return err;
}

/* ---- the calls; each returns whether it is answered ---- */

static int is_large(const struct user_request *r)
{
	const uint64_t *a = r->args;

	return r->part->far_end && a[1] >= r->u->far->threshold &&
	       a[2] == (PROT_READ | PROT_WRITE) && !(a[3] & NEVER_FAR) &&
	       (a[3] & (MAP_PRIVATE | MAP_ANONYMOUS)) == (MAP_PRIVATE | MAP_ANONYMOUS);
}

static unsigned int row_of(const struct user_request *r)
{
	return (unsigned int)(r->part - r->u->parts) - r->u->space->first;
}

/* One line for the user, who would find the program's own message hard to understand */
static void tell_full(struct user_far *f, uint64_t len)
{
	if (!__atomic_exchange_n(&f->told_full, 1, __ATOMIC_RELAXED))
		dprintf(2, "pvasrun: no far memory is left for a mapping of %llu bytes: the task gets ENOMEM (--far-size)\n",
			(unsigned long long)len);
}

/* The local memory beside it. The address, or -errno */
static int64_t map_local(struct user_request *r, uint64_t from, uint64_t to)
{
	struct user_mmap m = {
		.addr = from, .len = to - from, .prot = (int)r->args[2], .flags = (int)r->args[3],
		.fd = -1,
	};

	return from < to ? user_mmap_fixed(r->part, &m) : (int64_t)from;
}

/*
 * All that is in the far part is the pager's, which moves whole pages of its own: nothing else
 * may lie there. So private anonymous memory is far there, and all other kinds are refused.
 */
static int64_t map_fixed(struct user_request *r, const struct parts *c)
{
	const uint64_t wanted = MAP_PRIVATE | MAP_ANONYMOUS, flags = r->args[3];
	int64_t at;

	if ((flags & (wanted | MAP_SHARED | MAP_GROWSDOWN | MAP_HUGETLB)) != wanted)
		return -ENOMEM;
	at = r->u->far->ops->map_at(c->addr, c->end - c->addr, (int)r->args[2],
				    !(flags & MAP_FIXED_NOREPLACE));
	if (at > 0)
		at = map_local(r, c->from, c->addr);
	if (at > 0)
		at = map_local(r, c->end, c->to);
	return at > 0 ? (int64_t)c->from : at;
}

static int on_mmap(struct user_request *r, int64_t *value)
{
	struct user_far *f = r->u->far;
	struct parts c;

	if (is_large(r)) {
		*value = f->ops->map(row_of(r), r->args[1]);
		if (*value < 0)
			tell_full(f, r->args[1]);
		return 1;
	}
	if (!(r->args[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE)) ||
	    !cut(r->part, r->args[0], r->args[1], &c))
		return 0;
	*value = map_fixed(r, &c);
	return 1;
}

static int on_munmap(struct user_request *r, int64_t *value)
{
	struct parts c;

	if (!cut(r->part, r->args[0], r->args[1], &c))
		return 0;
	*value = unmap_parts(r->u->far, &c);
	return 1;
}

/* Locked memory would not leave. */
static int on_mlock(struct user_request *r, int64_t *value)
{
	struct parts c;

	*value = -ENOMEM;
	return cut(r->part, r->args[0], r->args[1], &c);
}

static int64_t advise(const struct user_far *f, const struct parts *c, int advice)
{
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_FREE:
		return f->ops->discard(c->addr, c->end - c->addr);
	case MADV_NORMAL:
	case MADV_RANDOM:
	case MADV_SEQUENTIAL:
	case MADV_WILLNEED:
	case MADV_COLD:
	case MADV_PAGEOUT:
	case MADV_HUGEPAGE:
	case MADV_NOHUGEPAGE:
	case MADV_DONTDUMP:
	case MADV_DONTFORK:
	case MADV_MERGEABLE:
	case MADV_UNMERGEABLE:
	case MADV_POPULATE_READ:
	case MADV_POPULATE_WRITE:
		return 0;
	default:
		return -EINVAL;
	}
}

static int on_madvise(struct user_request *r, int64_t *value)
{
	int advice = (int)r->args[2];
	struct parts c;

	if (!cut(r->part, r->args[0], r->args[1], &c))
		return 0;
	*value = advise(r->u->far, &c, advice);
	if (!*value && c.from < c.addr)
		*value = pvas_raw3(__NR_madvise, c.from, c.addr - c.from, advice);
	if (!*value && c.end < c.to)
		*value = pvas_raw3(__NR_madvise, c.end, c.to - c.end, advice);
	return 1;
}

static int on_mremap(struct user_request *r, int64_t *value)
{
	const uint64_t *a = r->args;
	struct parts c;

	if ((a[3] & MREMAP_FIXED) && cut(r->part, a[4], a[2], &c)) {
		*value = -EINVAL;
		return 1;
	}
	/* Local memory below must not grow into the far part. */
	if (a[0] < r->part->far_start && cut(r->part, a[0], a[2], &c)) {
		*value = -ENOMEM;
		return 1;
	}
	if (!cut(r->part, a[0], a[1] ? a[1] : 1, &c))
		return 0;
	if (a[3] & ~(uint64_t)MREMAP_MAYMOVE || c.from != c.addr || c.end != c.to)
		*value = -EINVAL;
	else
		*value = r->u->far->ops->move(a[0], a[1], a[2], a[3] & MREMAP_MAYMOVE);
	return 1;
}

static int on_shmat(struct user_request *r, int64_t *value)
{
	struct shmid_ds ds;
	struct parts c;

	*value = -EINVAL;
	return r->args[1] && !pvas_raw3(__NR_shmctl, (int)r->args[0], IPC_STAT, &ds) &&
	       cut(r->part, PAGE_DOWN(r->args[1]), ds.shm_segsz + PAGE, &c);
}

static int (*find_handler(int nr))(struct user_request *r, int64_t *value)
{
	switch (nr) {
	case __NR_mmap:
		return on_mmap;
	case __NR_munmap:
		return on_munmap;
	case __NR_madvise:
		return on_madvise;
	case __NR_mremap:
		return on_mremap;
	case __NR_mlock:
	case __NR_mlock2:
		return on_mlock;
	case __NR_shmat:
		return on_shmat;
	default:
		return NULL;
	}
}

/* All change the partition's memory, so under its lock. */
static int map_call(struct user_request *r, int64_t *value)
{
	int (*handler)(struct user_request *, int64_t *) = find_handler(r->nr);
	int done;

	if (!handler || !r->part->far_end)
		return 0;
	*value = -ESRCH;
	if (user_call_lock(r))
		return 1;
	done = handler(r, value);
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
