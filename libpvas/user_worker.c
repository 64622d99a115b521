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
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loader/blob.h"
#include "rawsys.h"
#include "user.h"

#define NR_MAP_SHADOW_STACK	453
#define NR_MSEAL		462

/**
 * struct question - one system call to be answered
 * @u:		the space
 * @part:	the caller's partition
 * @tid:	the caller
 * @nr:		of the call
 * @args:	its arguments
 * @go_on:	answer: the kernel shall make the call
 */
struct question {
	struct user_space *u;
	struct user_part *part;
	pid_t tid;
	int nr;
	const uint64_t *args;
	int go_on;
};

static int64_t go_on(struct question *q)
{
	q->go_on = 1;
	return 0;
}

/* ---- tasks ---- */

/* -EPERM for what is another's; what is wrong in itself is for the kernel to refuse. */
static int64_t on_range(struct question *q, uint64_t addr, uint64_t len)
{
	if (addr + len >= addr && user_foreign(q->part, addr, len))
		return -EPERM;
	return go_on(q);
}

static int64_t on_mmap_fixed(struct question *q)
{
	if (user_foreign(q->part, q->args[0], q->args[1]))
		return -ENOMEM;
	pthread_mutex_lock(&q->part->lock);
	user_make_room(q->part, q->args[0], q->args[1]);
	pthread_mutex_unlock(&q->part->lock);
	return go_on(q);
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
	if (m.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE))
		return on_mmap_fixed(q);
	if (!(m.flags & MAP_ANONYMOUS)) {
		m.fd = user_caller_file(q->tid, q->tid == q->part->pid ? q->part->pidfd : -1,
					(int)q->args[4], m.prot, m.flags);
		if (m.fd < 0)
			return m.fd;
	}
	pthread_mutex_lock(&q->part->lock);
	ret = user_mmap(q->part, &m);
	pthread_mutex_unlock(&q->part->lock);
	if (m.fd >= 0)
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
	pthread_mutex_lock(&q->part->lock);
	ret = user_mremap(q->part, a[0], a[1], a[2], (int)a[3]);
	pthread_mutex_unlock(&q->part->lock);
	return ret;
}

static int64_t on_brk(struct question *q)
{
	int64_t ret;

	pthread_mutex_lock(&q->part->lock);
	ret = user_brk(q->part, q->args[0]);
	pthread_mutex_unlock(&q->part->lock);
	return ret;
}

static int64_t on_shmat(struct question *q)
{
	int64_t ret;

	pthread_mutex_lock(&q->part->lock);
	ret = user_shmat(q->part, (int)q->args[0], q->args[1], (int)q->args[2]);
	pthread_mutex_unlock(&q->part->lock);
	return ret;
}

/* ---- tasks and fork children ---- */

static int is_own_exe(const struct question *q, const char *path)
{
	char own[48];

	if (!strcmp(path, "/proc/self/exe") || !strcmp(path, "/proc/thread-self/exe"))
		return 1;
	if (strncmp(path, "/proc/", 6))
		return 0;
	snprintf(own, sizeof(own), "/proc/%d/exe", q->tid);
	return !strcmp(path, own);
}

/* Answered from the caller's own page: a fork child's outlives its parent. */
static int64_t on_readlink(struct question *q, uint64_t path, uint64_t buf, uint64_t room)
{
	char text[48] = "";
	char exe[sizeof(q->part->page->exe)] = "";
	size_t len;

	user_caller_read(q->tid, path, text, sizeof(text) - 1);
	if (!is_own_exe(q, text) || (int64_t)room <= 0)
		return go_on(q);
	user_caller_read(q->tid, (uint64_t)q->part->page->exe, exe, sizeof(exe) - 1);
	len = strlen(exe);
	if (!len)
		return go_on(q);
	if (len > room)
		len = room;
	if (user_caller_write(q->tid, buf, exe, len) != (ssize_t)len)
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

	if (user_caller_read(q->tid, act, &sa, sizeof(sa)) == sizeof(sa) &&
	    sa.handler != (uint64_t)SIG_DFL && sa.handler != (uint64_t)SIG_IGN &&
	    (sa.flags & SA_RESTORER_FLAG) && !(sa.flags & SA_RESTART) &&
	    user_caller_read(q->tid, (uint64_t)&q->part->page->loader, &restorer,
			     sizeof(restorer)) == sizeof(restorer)) {
		restorer += PVAS_BLOB_RESTORE;
		user_caller_write(q->tid, act + offsetof(struct kernel_sigaction, restorer),
				  &restorer, sizeof(restorer));
	}
	return go_on(q);
}

/* ---- dispatch ---- */

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
	case __NR_readlink:
		return on_readlink(q, a[0], a[1], (uint64_t)(int)a[2]);
	case __NR_readlinkat:
		return on_readlink(q, a[1], a[2], (uint64_t)(int)a[3]);
	case __NR_rt_sigaction:
		return on_sigaction(q, a[1]);
	case __NR_io_setup:
	case __NR_io_uring_setup:
	case NR_MSEAL:
	case NR_MAP_SHADOW_STACK:
		return -ENOSYS;
	case __NR_execve:
	case __NR_execveat:
		user_keeper_expect_exec(q->u, q->part, q->tid);
		return go_on(q);
	default:
		return on_range(q, a[0], a[1]);
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

/* A task's first thread needs no look: its process id is in our hands. */
static int64_t answer(struct question *q)
{
	if (q->tid == q->part->pid || user_caller_inside(q->tid))
		return answer_task(q);
	return answer_fork_child(q);
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
	pvas_raw3(__NR_ioctl, listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}

/* Returns whether to go on. */
static int serve(struct user_space *u, const struct seccomp_notif *n)
{
	uint64_t index = n->data.instruction_pointer >> u->space->shift;
	struct question q = {
		.u = u, .tid = (pid_t)n->pid, .nr = n->data.nr,
		.args = (const uint64_t *)n->data.args,
	};
	int64_t value = -ENOSYS;

	if (n->data.nr != USER_NR_STOP && index < u->entries) {
		q.part = &u->parts[index];
		value = answer(&q);
	}
	reply(u->listener, n->id, &q, value);
	return n->data.nr != USER_NR_STOP || !__atomic_load_n(&u->stop, __ATOMIC_ACQUIRE);
}

static void *worker(void *arg)
{
	struct user_space *u = arg;
	struct seccomp_notif n;
	long err;

	do {
		memset(&n, 0, sizeof(n));
		err = pvas_raw3(__NR_ioctl, u->listener, SECCOMP_IOCTL_NOTIF_RECV, &n);
	} while (err ? err == -EINTR || err == -ENOENT : serve(u, &n));
	return NULL;
}

int user_workers_start(struct user_space *u)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned int wanted = cpus < 2 ? 2 : cpus > WORKERS_MAX ? WORKERS_MAX : (unsigned int)cpus;
	int err;

	for (; u->nr_workers < wanted; u->nr_workers++) {
		err = pthread_create(&u->workers[u->nr_workers], NULL, worker, u);
		if (err)
			return -err;
	}
	return 0;
}

void user_workers_join(struct user_space *u)
{
	while (u->nr_workers)
		pthread_join(u->workers[--u->nr_workers], NULL);
}
