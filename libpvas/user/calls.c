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
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "loader/blob.h"
#include "rawsys.h"
#include "worker.h"

static int64_t continue_call(struct user_request *r)
{
	r->continued = 1;
	return 0;
}

static int64_t continue_if(struct user_request *r, int permitted)
{
	return permitted ? continue_call(r) : -EPERM;
}

/* The process whose memory the caller has: for a task this one, whose pid can't be reused. */
static pid_t memory_pid(const struct user_request *r)
{
	return r->inside ? (pid_t)pvas_raw0(__NR_getpid) : r->tid;
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
static int lock_partition(struct user_request *r)
{
	struct user_part *p = r->part;

	pthread_mutex_lock(&p->lock);
	if (is_live(p) && user_request_current(r))
		return 0;
	pthread_mutex_unlock(&p->lock);
	return -ESRCH;
}

static void unlock_partition(struct user_request *r)
{
	pthread_mutex_unlock(&r->part->lock);
}

/* A seccomp filter, also in a call that is not of x86-64's table */
static int64_t on_sandbox(struct user_request *r)
{
	int64_t err = user_sandbox_check(r, memory_pid(r));

	return err ? err : continue_call(r);
}

/* ---- tasks ---- */

/* -EPERM for a range of another's; a range that wraps around is for the kernel to refuse. */
static int64_t on_range(struct user_request *r, uint64_t addr, uint64_t len)
{
	if (addr + len >= addr && user_foreign(r->part, addr, len))
		return -EPERM;
	return continue_call(r);
}

static int64_t on_madvise(struct user_request *r)
{
	if (r->args[2] == MADV_DONTFORK)
		user_fork_exempt(r->u, r->part);
	return on_range(r, r->args[0], r->args[1]);
}

static int64_t on_mmap_fixed(struct user_request *r)
{
	if (user_foreign(r->part, r->args[0], r->args[1]))
		return -ENOMEM;
	if (lock_partition(r))
		return -ESRCH;
	user_make_room(r->part, r->args[0], r->args[1]);
	unlock_partition(r);
	return continue_call(r);
}

/* As mmap() does, ignore errors. The file may be slow: not under the partition's lock. */
static void populate(const struct user_mmap *m, int64_t at)
{
	int writes = (m->prot & PROT_WRITE) && (m->flags & MAP_TYPE) == MAP_PRIVATE;
	int how = writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

	pvas_raw3(__NR_madvise, at, PAGE_UP(m->len), how);
}

static int64_t map_for(struct user_request *r, struct user_mmap *m)
{
	int wait = (m->flags & (MAP_POPULATE | MAP_NONBLOCK)) == MAP_POPULATE;
	int64_t ret = -ESRCH;

	m->flags &= ~MAP_POPULATE;
	if (!lock_partition(r)) {
		ret = user_mmap(r->part, m);
		unlock_partition(r);
	}
	if (wait && ret > 0)
		populate(m, ret);
	return ret;
}

static int64_t on_mmap(struct user_request *r)
{
	struct user_mmap m = {
		.addr = r->args[0], .len = r->args[1], .prot = (int)r->args[2],
		.flags = (int)r->args[3], .fd = -1, .off = r->args[5],
	};
	int64_t ret;

	if (m.flags & MAP_GROWSDOWN)
		return -ENOMEM;
	if (m.flags & MAP_HUGETLB)
		user_fork_exempt(r->u, r->part);
	if (m.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE))
		return on_mmap_fixed(r);
	if (m.flags & MAP_ANONYMOUS)
		return map_for(r, &m);
	m.fd = user_caller_file(r->tid, (int)r->args[4], m.prot, m.flags);
	/* It is the workers' table that is full, not the task's: mmap(2) has no EMFILE. */
	if (m.fd < 0)
		return m.fd == -EMFILE ? -ENFILE : m.fd;
	user_fork_check_file(r->u, r->part, m.fd);
	ret = map_for(r, &m);
	close(m.fd);
	return ret;
}

static int64_t on_mremap_fixed(struct user_request *r)
{
	uint64_t to = r->args[4], len = r->args[2];

	if (to + len < to)
		return continue_call(r);	/* for the kernel to refuse */
	if (user_foreign(r->part, to, len))
		return -EPERM;
	if (lock_partition(r))
		return -ESRCH;
	user_make_room(r->part, to, len);
	unlock_partition(r);
	return continue_call(r);
}

static int64_t on_mremap(struct user_request *r)
{
	const uint64_t *a = r->args;
	int64_t ret;

	if (a[0] + a[1] >= a[0] && user_foreign(r->part, a[0], a[1]))
		return -EPERM;
	if (a[3] & MREMAP_FIXED)
		return on_mremap_fixed(r);
	if (a[3] & ~(uint64_t)(MREMAP_MAYMOVE | MREMAP_DONTUNMAP))
		return -EINVAL;
	if (lock_partition(r))
		return -ESRCH;
	ret = user_mremap(r->part, a[0], a[1], a[2], (int)a[3]);
	unlock_partition(r);
	return ret;
}

static int64_t on_brk(struct user_request *r)
{
	int64_t ret;

	if (lock_partition(r))
		return -ESRCH;
	ret = user_brk(r->part, r->args[0]);
	unlock_partition(r);
	return ret;
}

static int64_t attach(struct user_request *r, uint64_t align)
{
	int64_t ret;

	if (lock_partition(r))
		return -ESRCH;
	ret = user_shmat(r->part, (int)r->args[0], r->args[1], (int)r->args[2], align);
	unlock_partition(r);
	return ret;
}

/* The page size of a segment shows only in that an address of smaller alignment is refused. */
static int64_t on_shmat(struct user_request *r)
{
	int64_t ret = user_fork_check_segment(r->u, r->part, (int)r->args[0], r->args[1]);

	if (ret)
		return ret;
	ret = attach(r, PAGE);
	if (ret != -EINVAL || r->args[1])
		return ret;
	user_fork_exempt(r->u, r->part);
	ret = attach(r, HUGE_2M);
	return ret == -EINVAL ? attach(r, HUGE_1G) : ret;
}

static int64_t on_fork(struct user_request *r)
{
	user_fork_prepare(r->u, r->part, r->tid);
	return continue_call(r);
}

/* Its first argument is a pointer to a structure that begins with the flags. */
static int64_t on_clone3(struct user_request *r)
{
	uint64_t flags = 0;

	user_caller_read(memory_pid(r), r->args[0], &flags, sizeof(flags));
	return flags & CLONE_VM ? continue_if(r, user_rights_kept_by_clone(flags)) : on_fork(r);
}

/* ---- tasks and fork children ---- */

static int64_t on_readlink(struct user_request *r, uint64_t path, uint64_t buf, uint64_t room)
{
	char text[64] = "";
	char exe[sizeof(r->part->page->exe)] = "";
	size_t len;

	user_caller_read(memory_pid(r), path, text, sizeof(text) - 1);
	if ((int64_t)room <= 0 ||
	    !user_exe_of(r->u, r->part, r->tid, r->inside, text, exe, sizeof(exe)))
		return continue_call(r);
	len = strlen(exe);
	if (len > room)
		len = room;
	if (user_caller_write(memory_pid(r), buf, exe, len) != (ssize_t)len)
		return -EFAULT;
	return (int64_t)len;
}

#define SA_RESTORER_FLAG 0x04000000UL	/* libc does not show it */

struct kernel_sigaction {
	uint64_t handler;
	uint64_t flags;
	uint64_t restorer;
};

/*
 * Replace libc's restorer, which the handler returns to, by the loader's, which
 * restarts interrupted calls (the structure is libc's copy, on its stack during this
 * call). With SA_RESTART there is nothing to repair. In a fork child its copy of the
 * page has the restorer's address.
 */
static int64_t on_sigaction(struct user_request *r, uint64_t act)
{
	struct kernel_sigaction sa;
	uint64_t restorer;

	if (user_caller_read(memory_pid(r), act, &sa, sizeof(sa)) == sizeof(sa) &&
	    sa.handler != (uint64_t)SIG_DFL && sa.handler != (uint64_t)SIG_IGN &&
	    (sa.flags & SA_RESTORER_FLAG) && !(sa.flags & SA_RESTART) &&
	    user_caller_read(memory_pid(r), (uint64_t)&r->part->page->loader, &restorer,
			     sizeof(restorer)) == sizeof(restorer)) {
		restorer += PVAS_BLOB_RESTORE;
		user_caller_write(memory_pid(r), act + offsetof(struct kernel_sigaction, restorer),
				  &restorer, sizeof(restorer));
	}
	return continue_call(r);
}

/* ---- dispatch ---- */

/* Calls that would change the mm of all tasks. ENOSYS where programs have a fallback for it. */
static int64_t refuse(struct user_request *r)
{
	const uint64_t *a = r->args;

	switch (r->nr) {
	case __NR_prctl:
		if ((uint32_t)a[0] == OPT_SET_VMA)
			return on_range(r, a[2], a[3]);
		/* Only the first thread's setting ends the task with the launcher. */
		if ((uint32_t)a[0] == PR_SET_PDEATHSIG && r->tid != r->part->pid)
			return continue_call(r);
		return -EPERM;
	case __NR_arch_prctl:
	case __NR_mlockall:
	case __NR_munlockall:
	case __NR_migrate_pages:
		return -EPERM;
	case __NR_io_setup:
	case __NR_io_uring_setup:
	case __NR_io_uring_enter:
	case __NR_userfaultfd:
	case __NR_process_madvise:
	case __NR_modify_ldt:
	case NR_MSEAL:
	case NR_MAP_SHADOW_STACK:
		return -ENOSYS;
	default:
		return on_range(r, a[0], a[1]);
	}
}

static int64_t call_about_rights(struct user_request *r)
{
	int kept;

	switch (r->nr) {
	case __NR_setuid:
	case __NR_setgid:
	case __NR_setreuid:
	case __NR_setregid:
	case __NR_setresuid:
	case __NR_setresgid:
	case __NR_setfsuid:
	case __NR_setfsgid:
	case __NR_unshare:
	case __NR_setns:
	case __NR_capset:
		kept = user_rights_kept(r->nr, r->args, memory_pid(r));
		break;
	default:
		return refuse(r);
	}
	/* They return the old id, and no error. */
	if (!kept && (r->nr == __NR_setfsuid || r->nr == __NR_setfsgid))
		return pvas_raw1(r->nr, -1);
	return continue_if(r, kept);
}

int64_t user_call_of_task(struct user_request *r)
{
	const uint64_t *a = r->args;

	if (user_sandbox_call(r))
		return on_sandbox(r);
	switch (r->nr) {
	case __NR_mmap:
		return on_mmap(r);
	case __NR_mremap:
		return on_mremap(r);
	case __NR_brk:
		return on_brk(r);
	case __NR_shmat:
		return on_shmat(r);
	case __NR_shmdt:
		return on_range(r, a[0], 1);
	case __NR_madvise:
		return on_madvise(r);
	case __NR_readlink:
		return on_readlink(r, a[0], a[1], (uint64_t)(int)a[2]);
	case __NR_readlinkat:
		return on_readlink(r, a[1], a[2], (uint64_t)(int)a[3]);
	case __NR_rt_sigaction:
		return on_sigaction(r, a[1]);
	case __NR_execve:
	case __NR_execveat:
		user_exec_begin(r->u, r->tid);
		return continue_call(r);
	case __NR_clone:
		return a[0] & CLONE_VM ? continue_if(r, user_rights_kept_by_clone(a[0]))
				       : on_fork(r);
	case __NR_fork:
		return on_fork(r);
	case __NR_clone3:
		return on_clone3(r);
	default:
		return call_about_rights(r);
	}
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

	return n == -EPERM ? -EPERM : n == sizeof(cookie) && cookie == r->u->cookie;
}

/*
 * The break is the one call that the kernel may not perform for a fork child whose memory
 * this process has no right to read: it would report the launcher's break.
 */
int64_t user_call_of_child(struct user_request *r)
{
	const uint64_t *a = r->args;
	int known;

	if (user_sandbox_call(r))
		return on_sandbox(r);
	known = r->part ? has_page(r) : 0;
	if (!known || (known < 0 && r->nr != __NR_brk))
		return continue_call(r);
	switch (r->nr) {
	case __NR_brk:
		return user_child_brk(r->part, r->tid, a[0]);
	case __NR_readlink:
		return on_readlink(r, a[0], a[1], (uint64_t)(int)a[2]);
	case __NR_readlinkat:
		return on_readlink(r, a[1], a[2], (uint64_t)(int)a[3]);
	case __NR_rt_sigaction:
		return on_sigaction(r, a[1]);
	default:
		return continue_call(r);
	}
}
