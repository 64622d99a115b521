// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: the threads that answer what the filter sends.
 *
 * A caller is a task (or a thread or vfork child of one) if it shares our mm.
 * Else it is a fork child that has not called execve yet: an ordinary process
 * with a copy of the mm, whose calls the kernel shall make as they are. Two
 * things need care there: its brk, for the kernel's is the launcher's, and
 * /proc/self/exe, which is the launcher's as well.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mman.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "loader/blob.h"
#include "rawsys.h"
#include "user.h"

#define NR_MAP_SHADOW_STACK	453
#define NR_MSEAL		462
#define OPT_SET_VMA		0x53564d41	/* PR_SET_VMA */

/**
 * struct question - one system call to be answered
 * @u:		the space
 * @part:	the caller's partition
 * @id:		of the request
 * @tid:	the caller
 * @inside:	it is a task, or a thread or vfork child of one
 * @nr:		of the call
 * @args:	its arguments
 * @go_on:	answer: the kernel shall make the call
 */
struct question {
	struct user_space *u;
	struct user_part *part;
	uint64_t id;
	pid_t tid;
	int inside;
	int nr;
	const uint64_t *args;
	int go_on;
};

/* Of this worker: the request, and how many tasks had ended before it came. */
static __thread uint64_t request;
static __thread unsigned int ends_seen;
static __thread struct user_space *of_space;

static int64_t go_on(struct question *q)
{
	q->go_on = 1;
	return 0;
}

static int64_t if_kept(struct question *q, int kept)
{
	return kept ? go_on(q) : -EPERM;
}

/* Signals are blocked here, but a stop of the process, a freezer and the like interrupt as well. */
static long ask_listener(int listener, unsigned long what, void *arg)
{
	long ret;

	do {
		ret = pvas_raw3(__NR_ioctl, listener, what, arg);
	} while (ret == -EINTR);
	return ret;
}

int user_request_valid(void)
{
	return !ask_listener(of_space->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &request);
}

/* Its memory; a task's is ours, under a number that can't become another's. */
static pid_t memory_of(const struct question *q)
{
	return q->inside ? (pid_t)pvas_raw0(__NR_getpid) : q->tid;
}

/* Has it a task, or one that is just beginning? */
static int is_live(const struct user_part *p)
{
	uint32_t state = __atomic_load_n(&p->state, __ATOMIC_ACQUIRE);

	return state == PVAS_PART_RUNNING || state == PVAS_PART_ARMED;
}

/*
 * Take the partition's lock. The caller may be gone, and the partition be the
 * next task's; but not if no task has ended since before the request came.
 */
static int enter(struct question *q)
{
	struct user_part *p = q->part;

	pthread_mutex_lock(&p->lock);
	if (is_live(p) &&
	    (__atomic_load_n(&q->u->ends, __ATOMIC_ACQUIRE) == ends_seen || user_request_valid()))
		return 0;
	pthread_mutex_unlock(&p->lock);
	return -ESRCH;
}

static void leave(struct question *q)
{
	pthread_mutex_unlock(&q->part->lock);
}

/* ---- tasks ---- */

/* -EPERM for what is another's; what is wrong in itself is for the kernel to refuse. */
static int64_t on_range(struct question *q, uint64_t addr, uint64_t len)
{
	if (addr + len >= addr && user_foreign(q->part, addr, len))
		return -EPERM;
	return go_on(q);
}

static int64_t on_madvise(struct question *q)
{
	if (q->args[2] == MADV_DONTFORK)
		user_fork_exempt(q->u, q->part);
	return on_range(q, q->args[0], q->args[1]);
}

static int64_t on_mmap_fixed(struct question *q)
{
	if (user_foreign(q->part, q->args[0], q->args[1]))
		return -ENOMEM;
	if (enter(q))
		return -ESRCH;
	user_make_room(q->part, q->args[0], q->args[1]);
	leave(q);
	return go_on(q);
}

/* As mmap would: errors don't matter. The file may be slow: not under the partition's lock. */
static void populate(const struct user_mmap *m, int64_t at)
{
	int writes = (m->prot & PROT_WRITE) && (m->flags & MAP_TYPE) == MAP_PRIVATE;
	int how = writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

	pvas_raw3(__NR_madvise, at, PAGE_UP(m->len), how);
}

static int64_t map_for(struct question *q, struct user_mmap *m)
{
	int wait = (m->flags & (MAP_POPULATE | MAP_NONBLOCK)) == MAP_POPULATE;
	int64_t ret = -ESRCH;

	m->flags &= ~MAP_POPULATE;
	if (!enter(q)) {
		ret = user_mmap(q->part, m);
		leave(q);
	}
	if (wait && ret > 0)
		populate(m, ret);
	return ret;
}

static int64_t on_mmap(struct question *q)
{
	struct user_mmap m = {
		.addr = q->args[0], .len = q->args[1], .prot = (int)q->args[2],
		.flags = (int)q->args[3], .fd = -1, .off = q->args[5],
	};
	int64_t ret;

	if (m.flags & MAP_GROWSDOWN)
		return -ENOMEM;
	if (m.flags & MAP_HUGETLB)
		user_fork_exempt(q->u, q->part);
	if (m.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE))
		return on_mmap_fixed(q);
	if (m.flags & MAP_ANONYMOUS)
		return map_for(q, &m);
	m.fd = user_caller_file(q->tid, (int)q->args[4], m.prot, m.flags);
	/* Ours are used up, not the task's: mmap(2) has no EMFILE. */
	if (m.fd < 0)
		return m.fd == -EMFILE ? -ENFILE : m.fd;
	user_fork_look_at_file(q->u, q->part, m.fd);
	ret = map_for(q, &m);
	close(m.fd);
	return ret;
}

static int64_t on_mremap(struct question *q)
{
	const uint64_t *a = q->args;
	int64_t ret;

	if (a[0] + a[1] >= a[0] && user_foreign(q->part, a[0], a[1]))
		return -EPERM;
	if (a[3] & MREMAP_FIXED)
		return on_range(q, a[4], a[2]);
	if (a[3] & ~(uint64_t)(MREMAP_MAYMOVE | MREMAP_DONTUNMAP))
		return -EINVAL;
	if (enter(q))
		return -ESRCH;
	ret = user_mremap(q->part, a[0], a[1], a[2], (int)a[3]);
	leave(q);
	return ret;
}

static int64_t on_brk(struct question *q)
{
	int64_t ret;

	if (enter(q))
		return -ESRCH;
	ret = user_brk(q->part, q->args[0]);
	leave(q);
	return ret;
}

static int64_t attach(struct question *q, uint64_t align)
{
	int64_t ret;

	if (enter(q))
		return -ESRCH;
	ret = user_shmat(q->part, (int)q->args[0], q->args[1], (int)q->args[2], align);
	leave(q);
	return ret;
}

/* Nothing tells of which pages a segment is, but that it is refused. */
static int64_t on_shmat(struct question *q)
{
	int64_t ret = user_fork_look_at_segment(q->u, q->part, (int)q->args[0], q->args[1]);

	if (ret)
		return ret;
	ret = attach(q, PAGE);
	if (ret != -EINVAL || q->args[1])
		return ret;
	user_fork_exempt(q->u, q->part);
	ret = attach(q, HUGE_2M);
	return ret == -EINVAL ? attach(q, HUGE_1G) : ret;
}

static int64_t on_fork(struct question *q)
{
	user_fork_prepare(q->u, q->part, q->tid);
	return go_on(q);
}

/* Its first argument is a pointer to a structure that begins with the flags. */
static int64_t on_clone3(struct question *q)
{
	uint64_t flags = 0;

	user_caller_read(memory_of(q), q->args[0], &flags, sizeof(flags));
	return flags & CLONE_VM ? if_kept(q, user_rights_kept_by_clone(flags)) : on_fork(q);
}

/* ---- tasks and fork children ---- */

static int64_t on_readlink(struct question *q, uint64_t path, uint64_t buf, uint64_t room)
{
	char text[64] = "";
	char exe[sizeof(q->part->page->exe)] = "";
	size_t len;

	user_caller_read(memory_of(q), path, text, sizeof(text) - 1);
	if ((int64_t)room <= 0 ||
	    !user_exe_of(q->u, q->part, q->tid, q->inside, text, exe, sizeof(exe)))
		return go_on(q);
	len = strlen(exe);
	if (len > room)
		len = room;
	if (user_caller_write(memory_of(q), buf, exe, len) != (ssize_t)len)
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
 * Where libc says the handler shall return to (in a structure of its own, that
 * lives as long as this call), say that it is our restorer. With SA_RESTART
 * there is nothing to repair. A fork child's is where its copy of the page says.
 */
static int64_t on_sigaction(struct question *q, uint64_t act)
{
	struct kernel_sigaction sa;
	uint64_t restorer;

	if (user_caller_read(memory_of(q), act, &sa, sizeof(sa)) == sizeof(sa) &&
	    sa.handler != (uint64_t)SIG_DFL && sa.handler != (uint64_t)SIG_IGN &&
	    (sa.flags & SA_RESTORER_FLAG) && !(sa.flags & SA_RESTART) &&
	    user_caller_read(memory_of(q), (uint64_t)&q->part->page->loader, &restorer,
			     sizeof(restorer)) == sizeof(restorer)) {
		restorer += PVAS_BLOB_RESTORE;
		user_caller_write(memory_of(q), act + offsetof(struct kernel_sigaction, restorer),
				  &restorer, sizeof(restorer));
	}
	return go_on(q);
}

/* ---- dispatch ---- */

/* Refused for the whole mm's sake; as not there, where programs then do without. */
static int64_t refuse(struct question *q)
{
	const uint64_t *a = q->args;

	switch (q->nr) {
	case __NR_prctl:
		if ((uint32_t)a[0] == OPT_SET_VMA)
			return on_range(q, a[2], a[3]);
		/* The first thread's is what ends the task with the launcher. */
		if ((uint32_t)a[0] == PR_SET_PDEATHSIG && q->tid != q->part->pid)
			return go_on(q);
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
		return on_range(q, a[0], a[1]);
	}
}

static int64_t answer_task(struct question *q)
{
	const uint64_t *a = q->args;

	switch (q->nr) {
	case __NR_mmap:
		return on_mmap(q);
	case __NR_mremap:
		return on_mremap(q);
	case __NR_brk:
		return on_brk(q);
	case __NR_shmat:
		return on_shmat(q);
	case __NR_shmdt:
		return on_range(q, a[0], 1);
	case __NR_madvise:
		return on_madvise(q);
	case __NR_readlink:
		return on_readlink(q, a[0], a[1], (uint64_t)(int)a[2]);
	case __NR_readlinkat:
		return on_readlink(q, a[1], a[2], (uint64_t)(int)a[3]);
	case __NR_rt_sigaction:
		return on_sigaction(q, a[1]);
	case __NR_execve:
	case __NR_execveat:
		user_keeper_expect_exec(q->u, q->tid);
		return go_on(q);
	case __NR_clone:
		return a[0] & CLONE_VM ? if_kept(q, user_rights_kept_by_clone(a[0]))
				       : on_fork(q);
	case __NR_fork:
		return on_fork(q);
	case __NR_clone3:
		return on_clone3(q);
	case __NR_setfsuid:
	case __NR_setfsgid:
		/* They report no error. */
		return user_rights_kept(q->nr, a, memory_of(q)) ? go_on(q)
								: pvas_raw1(q->nr, -1);
	case __NR_setuid:
	case __NR_setgid:
	case __NR_setreuid:
	case __NR_setregid:
	case __NR_setresuid:
	case __NR_setresgid:
	case __NR_unshare:
	case __NR_setns:
	case __NR_capset:
		return if_kept(q, user_rights_kept(q->nr, a, memory_of(q)));
	default:
		return refuse(q);
	}
}

static int64_t answer_fork_child(struct question *q)
{
	const uint64_t *a = q->args;

	switch (q->nr) {
	case __NR_brk:
		return user_child_brk(q->part, q->tid, a[0]);
	case __NR_readlink:
		return on_readlink(q, a[0], a[1], (uint64_t)(int)a[2]);
	case __NR_readlinkat:
		return on_readlink(q, a[1], a[2], (uint64_t)(int)a[3]);
	case __NR_rt_sigaction:
		return on_sigaction(q, a[1]);
	default:
		return go_on(q);
	}
}

/*
 * Has the caller our mm? A number says nothing: it can be another process' before we know of
 * the task's end, and the task's own after an execve. What was compared was the caller if the
 * request is still there.
 */
static int find_inside(const struct question *q)
{
	if (!user_caller_inside(q->tid))
		return 0;
	return user_request_valid() ? 1 : -ESRCH;
}

static int64_t answer(struct question *q)
{
	if (__atomic_load_n(&q->part->nr_forks, __ATOMIC_RELAXED))
		user_fork_returned(q->u, q->part, q->tid);
	q->inside = find_inside(q);
	if (q->inside < 0)
		return q->inside;
	return q->inside ? answer_task(q) : answer_fork_child(q);
}

static void reply(int listener, uint64_t id, const struct question *q, int64_t value)
{
	struct seccomp_notif_resp resp = { .id = id };

	if (q->go_on)
		resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else if (value < 0 && value >= -4095)
		resp.error = (int)value;
	else
		resp.val = value;
	/* Nobody there: it was killed, and with it goes what was mapped for it. */
	ask_listener(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}

/* Anybody under the filter can make the call; it counts if the keeper does. */
static int is_dismissal(const struct user_space *u, const struct seccomp_notif *n)
{
	return n->data.nr == USER_NR_STOP && (pid_t)n->pid == u->keeper_tid &&
	       __atomic_load_n(&u->stop, __ATOMIC_ACQUIRE);
}

/* Returns whether to go on. */
static int serve(struct user_space *u, const struct seccomp_notif *n)
{
	uint64_t index = n->data.instruction_pointer >> u->space->shift;
	int go = !is_dismissal(u, n);
	struct question q = {
		.u = u, .id = n->id, .tid = (pid_t)n->pid, .nr = n->data.nr,
		.args = (const uint64_t *)n->data.args,
	};
	int64_t value = -ENOSYS;

	request = n->id;
	if (n->data.nr != USER_NR_STOP && index < u->entries && !user_worker_slow(u)) {
		q.part = &u->parts[index];
		value = answer(&q);
		user_worker_quick(u);
	}
	/* Before the keeper counts again */
	if (!go)
		user_worker_ends(u);
	reply(u->listener, n->id, &q, value);
	return go && !user_worker_left();
}

void *user_worker_main(void *arg)
{
	struct user_space *u = arg;
	struct seccomp_notif n;
	long err;
	int go = 1;

	of_space = u;
	while (go) {
		memset(&n, 0, sizeof(n));
		ends_seen = __atomic_load_n(&u->ends, __ATOMIC_ACQUIRE);
		err = pvas_raw3(__NR_ioctl, u->listener, SECCOMP_IOCTL_NOTIF_RECV, &n);
		if (!err)
			go = serve(u, &n);
		else if (err != -EINTR && err != -ENOENT) {
			user_worker_ends(u);
			go = 0;
		}
	}
	return NULL;
}
