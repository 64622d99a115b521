// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the system calls that the filter sends to workers.
 *
 * Most are a task's, and performed here or refused. Two of a fork child's need
 * care: brk(), because the kernel's break is the launcher's, and a readlink() of
 * /proc/self/exe, which names the launcher's program as well.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mman.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <unistd.h>

#include "far.h"
#include "rawsys.h"
#include "stay.h"
#include "worker.h"

/* A process or thread with the caller's memory: for a task this one, whose id can't be reused. */
static pid_t memory_pid(const struct user_request *r)
{
	return r->inside ? user_caller_self() : r->tid;
}

/* A seccomp filter, also in a call that is not of x86-64's table */
static int64_t on_sandbox(struct user_request *r)
{
	int64_t err = user_sandbox_check(r, memory_pid(r));

	return err ? err : user_call_continue(r);
}

/* ---- tasks ---- */

/*
 * -EPERM for a range of another's; a range that wraps around is for the kernel to refuse. It
 * rounds to whole pages first, as this does: mlock() of one that ends below its beginning can
 * be of a page, and others take a length that becomes 0 for none.
 */
static int64_t on_range(struct user_request *r, uint64_t addr, uint64_t len)
{
	uint64_t from = PAGE_DOWN(addr), pages = PAGE_UP(len + (addr - from));

	if (from + pages >= from && (pages || !len) && user_foreign(r->part, from, pages))
		return -EPERM;
	return user_call_continue(r);
}

/* It takes marks of fork.c away. */
static int64_t unmark_for(struct user_request *r)
{
	int64_t ret = on_range(r, r->args[0], r->args[1]);

	r->continued = 0;
	if (!ret)
		ret = user_call_lock_to_map(r);
	if (ret)
		return ret;
	ret = pvas_raw6(r->nr, r->args[0], r->args[1], r->args[2], r->args[3], r->args[4], 0);
	user_call_unlock_mapped(r);
	return ret;
}

/* The kernel would read all pages in the call, so under the lock. */
static int64_t on_remap_file_pages(struct user_request *r)
{
	int wait = !(r->args[4] & MAP_NONBLOCK);
	int64_t ret;

	r->args[4] |= MAP_NONBLOCK;
	ret = unmark_for(r);
	if (wait && !ret)
		user_fill(r, PAGE_DOWN(r->args[0]), PAGE_DOWN(r->args[1]), MADV_POPULATE_READ, 1);
	return ret;
}

static int64_t on_madvise(struct user_request *r)
{
	if (r->args[2] == MADV_DOFORK)
		return unmark_for(r);
	if (r->args[2] == MADV_DONTFORK)
		user_fork_exempt(r->u, r->part);
	return on_range(r, r->args[0], r->args[1]);
}

static int64_t on_mremap_fixed(struct user_request *r)
{
	uint64_t to = r->args[4], len = r->args[2];
	int64_t ret;

	if (to + len < to)
		return -EINVAL;
	if (!user_may_map(r->part, to, len))
		return -EPERM;
	if (user_call_lock_to_map(r))
		return -ESRCH;
	ret = user_mremap_fixed(r->part, r->args);
	user_call_unlock_mapped(r);
	return ret;
}

static int64_t on_mremap(struct user_request *r)
{
	const uint64_t *a = r->args;
	int64_t ret;

	/* Also a length that wraps around: rounded up to 0, it asks for a copy of the mapping. */
	if (user_foreign(r->part, a[0], a[1]))
		return -EPERM;
	if (a[3] & MREMAP_FIXED)
		return on_mremap_fixed(r);
	if (a[3] & ~(uint64_t)(MREMAP_MAYMOVE | MREMAP_DONTUNMAP))
		return -EINVAL;
	if (user_call_lock_to_map(r))
		return -ESRCH;
	ret = user_mremap(r->part, a[0], a[1], a[2], (int)a[3]);
	user_call_unlock_mapped(r);
	return ret;
}

static int64_t on_brk(struct user_request *r)
{
	int64_t ret;

	if (user_call_lock_to_map(r))
		return -ESRCH;
	ret = user_brk(r->part, r->args[0]);
	user_call_unlock_mapped(r);
	return ret;
}

static int64_t attach(struct user_request *r, uint64_t align)
{
	int64_t ret;

	if (user_call_lock_to_map(r))
		return -ESRCH;
	ret = user_shmat(r->part, (int)r->args[0], r->args[1], (int)r->args[2], align);
	user_call_unlock_mapped(r);
	return ret;
}

/* The page size of a segment shows only in that an address of smaller alignment is refused. */
static int64_t on_shmat(struct user_request *r)
{
	int64_t ret = !r->args[1] && (r->args[2] & SHM_REMAP) ? -EINVAL : 0;

	if (!ret)
		ret = user_segment_check(r->tid, (int)r->args[0], (int)r->args[2]);
	if (!ret)
		ret = user_fork_check_segment(r->u, r->part, (int)r->args[0], r->args[1]);
	if (ret)
		return ret;
	ret = attach(r, PAGE);
	if (ret != -EINVAL || r->args[1])
		return ret;
	user_fork_exempt(r->u, r->part);
	ret = attach(r, HUGE_2M);
	return ret == -EINVAL ? attach(r, HUGE_1G) : ret;
}

static int64_t on_shmdt(struct user_request *r)
{
	uint64_t addr = r->args[0];
	FILE *maps = user_maps_open();
	struct user_mapping m;
	int foreign = !maps;

	/* The kernel looks for the segment from there upwards, and in all of the mm. */
	while (maps && !foreign && user_maps_next(maps, &m))
		foreign = m.start >= addr && m.offset == m.start - addr &&
			  user_foreign(r->part, m.start, m.end - m.start);
	if (maps)
		fclose(maps);
	return foreign ? -EPERM : on_range(r, addr, 1);
}

/*
 * Programs that children start don't stay; nor do those of a job with far memory: the pager's
 * memory would be unmapped behind its back. Under the lock, for other threads' calls to see
 * which one leaves.
 */
static int64_t on_execve(struct user_request *r)
{
	int locked = user_request_of_task(r) && !user_call_lock(r);
	int stays = locked && !r->u->far && user_stay(r);

	if (!stays)
		user_exec_begin(r->u, r->tid);
	if (locked)
		user_call_unlock(r);
	if (stays < 0)
		return stays;
	return stays ? STAY_RESTART : user_call_continue(r);
}

static int64_t on_prctl(struct user_request *r)
{
	const uint64_t *a = r->args;

	if ((uint32_t)a[0] == OPT_SET_VMA)
		return on_range(r, a[2], a[3]);
	/* The handler of stay_signal.c would not get through. */
	if ((uint32_t)a[0] == PR_SET_SYSCALL_USER_DISPATCH) {
		user_unfit(r);
		return user_call_continue(r);
	}
	if (user_rights_invalid((int)a[0], a[1]))
		return user_call_continue(r);
	/* Only the first thread's setting ends the task with the launcher. */
	if ((uint32_t)a[0] == PR_SET_PDEATHSIG && r->tid != r->part->pid)
		return user_call_continue(r);
	return -EPERM;
}

/*
 * Calls that would change the mm of all tasks, or who may trace the caller: programs inside
 * a task's own Landlock domain could then reach the memory of its peers, which are outside.
 */
static int64_t refuse(struct user_request *r)
{
	(void)r;
	return -EPERM;
}

/* The same, of those for which programs have a fallback */
static int64_t refuse_as_missing(struct user_request *r)
{
	(void)r;
	return -ENOSYS;
}

/* ---- fork children ---- */

static int64_t on_brk_of_child(struct user_request *r)
{
	return user_child_brk(r->part, r->tid, r->args[0]);
}

/*
 * In some layouts (ulimit -s unlimited) the libraries of a program that has nothing to do
 * with the space lie where partitions are, so its calls come here as well.
 */
static int has_page(const struct user_request *r)
{
	uint64_t cookie = 0;
	ssize_t n = user_caller_read(memory_pid(r), (uint64_t)&r->part->page->cookie, &cookie,
				     sizeof(cookie));

	return n < 0 ? (int)n : n == sizeof(cookie) && cookie == r->u->cookie;
}

/* ---- dispatch ---- */

/**
 * struct call - a system call that the filter sends to workers
 * @nr:		its number
 * @of_task:	performs or refuses it for a task
 * @of_child:	for a fork child; NULL: the kernel performs it
 */
struct call {
	int nr;
	int64_t (*of_task)(struct user_request *r);
	int64_t (*of_child)(struct user_request *r);
};

static const struct call calls[] = {
	{ __NR_mmap, user_on_mmap },
	PVAS_OLD_CALL({ __NR_readlink, user_on_readlink, user_on_readlink },)
	{ __NR_readlinkat, user_on_readlinkat, user_on_readlinkat },
	{ __NR_brk, on_brk, on_brk_of_child },
	{ __NR_rt_sigaction, user_on_sigaction, user_on_sigaction },
	{ __NR_sigaltstack, user_on_sigaltstack },
	{ __NR_mremap, on_mremap },
	{ __NR_madvise, on_madvise },
	{ __NR_remap_file_pages, on_remap_file_pages },
	{ __NR_shmat, on_shmat },
	{ __NR_shmdt, on_shmdt },
	{ __NR_execve, on_execve },
	{ __NR_execveat, on_execve },
	PVAS_OLD_CALL({ __NR_fork, user_on_fork },)
	PVAS_OLD_CALL({ __NR_vfork, user_on_vfork },)
	{ __NR_clone, user_on_clone },
	{ __NR_clone3, user_on_clone3 },
	{ __NR_perf_event_open, user_on_perf_event_open },
	{ __NR_setuid, user_on_rights },
	{ __NR_setgid, user_on_rights },
	{ __NR_setreuid, user_on_rights },
	{ __NR_setregid, user_on_rights },
	{ __NR_setresuid, user_on_rights },
	{ __NR_setresgid, user_on_rights },
	{ __NR_setfsuid, user_on_setfsid },
	{ __NR_setfsgid, user_on_setfsid },
	{ __NR_unshare, user_on_rights },
	{ __NR_setns, user_on_rights },
	{ __NR_capset, user_on_rights },
	{ __NR_prctl, on_prctl },
	{ NR_LANDLOCK_RESTRICT_SELF, refuse },
	{ NR_LSM_SET_SELF_ATTR, refuse },
	PVAS_OLD_CALL({ __NR_arch_prctl, refuse },)
	{ __NR_mlockall, refuse },
	{ __NR_munlockall, refuse },
	{ __NR_migrate_pages, refuse },
	{ __NR_io_setup, refuse_as_missing },
	{ __NR_io_uring_setup, refuse_as_missing },
	{ __NR_io_uring_enter, refuse_as_missing },
	{ __NR_userfaultfd, refuse_as_missing },
	{ __NR_ioctl, refuse_as_missing },
	{ __NR_process_madvise, refuse_as_missing },
	PVAS_OLD_CALL({ __NR_modify_ldt, refuse_as_missing },)
	{ NR_MSEAL, refuse_as_missing },
	{ NR_MAP_SHADOW_STACK, refuse_as_missing },
};

static const struct call *find_call(int nr)
{
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].nr == nr)
			return &calls[i];
	return NULL;
}

int user_call_known(int nr)
{
	static const int ranges[] = {
		__NR_munmap, __NR_mprotect, __NR_pkey_mprotect, __NR_mlock, __NR_mlock2,
		__NR_munlock, __NR_mbind, NR_SET_MEMPOLICY_HOME_NODE,
	};
	size_t i;

	for (i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (ranges[i] == nr)
			return 1;
	return !!find_call(nr);
}

/* The others begin with the address and the length of a range. */
int64_t user_call_of_task(struct user_request *r)
{
	const struct call *c;
	int64_t value;

	if (user_far_call(r, &value))
		return value;
	if (user_sandbox_call(r))
		return on_sandbox(r);
	c = find_call(r->nr);
	return c ? c->of_task(r) : on_range(r, r->args[0], r->args[1]);
}

int user_call_reads_child(const struct user_request *r)
{
	const struct call *c = r->part ? find_call(r->nr) : NULL;

	return user_sandbox_call(r) || (c && c->of_child);
}

/*
 * The break is the one call that the kernel may not perform for a fork child whose memory
 * this process has no right to read: it would report the launcher's break.
 */
int64_t user_call_of_child(struct user_request *r)
{
	const struct call *c;
	int known;

	if (user_sandbox_call(r))
		return on_sandbox(r);
	c = r->part ? find_call(r->nr) : NULL;
	if (!c || !c->of_child)
		return user_call_continue(r);
	known = has_page(r);
	if (known > 0 || (known < 0 && r->nr == __NR_brk))
		return c->of_child(r);
	return user_call_continue(r);
}
