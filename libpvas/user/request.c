// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: a request of the filter, in the worker that handles it.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>

#include "rawsys.h"
#include "worker.h"

/* The request that this worker handles. */
static __thread const struct user_request *current;

/* Signals are blocked here, but a stop or freeze of the process interrupts as well. */
static long listener_ioctl(int listener, unsigned long command, void *arg)
{
	long ret;

	do {
		ret = pvas_raw3(__NR_ioctl, listener, command, arg);
	} while (ret == -EINTR);
	return ret;
}

int user_request_valid(void)
{
	uint64_t id = current->id;

	return !listener_ioctl(current->u->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id);
}

int64_t user_request_owner(void)
{
	return current->stranger ? current->owner : -1;
}

int user_request_is_dead(const struct user_request *r)
{
	uint64_t id = r->id;

	return listener_ioctl(r->u->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == -ENOENT;
}

int user_request_given_up(const struct user_request *r)
{
	return __atomic_load_n(&r->u->abandoned, __ATOMIC_RELAXED) || user_request_is_dead(r);
}

int user_request_current(const struct user_request *r)
{
	return __atomic_load_n(&r->u->changes, __ATOMIC_SEQ_CST) == r->changes ||
	       user_request_valid();
}

struct user_space *user_request_space(void)
{
	return current->u;
}

void user_request_begin(const struct user_request *r)
{
	current = r;
}

/* Signal 0 only asks. This never blocks. */
int user_is_thread_of(pid_t process, pid_t tid)
{
	return process && pvas_raw3(__NR_tgkill, process, tid, 0) != -ESRCH;
}

int user_request_of_task(const struct user_request *r)
{
	pid_t pid = r->part ? __atomic_load_n(&r->part->pid, __ATOMIC_ACQUIRE) : 0;

	return pid == r->tid || user_is_thread_of(pid, r->tid);
}

int user_request_receive(struct user_space *u, struct user_request *r)
{
	struct seccomp_notif n;
	uint64_t index;
	long err;

	memset(&n, 0, sizeof(n));
	*r = (struct user_request){ .u = u };
	r->changes = __atomic_load_n(&u->changes, __ATOMIC_ACQUIRE);
	err = pvas_raw3(__NR_ioctl, u->listener, SECCOMP_IOCTL_NOTIF_RECV, &n);
	/* ENOENT: the caller was killed meanwhile. */
	if (err)
		return err == -EINTR || err == -ENOENT ? -EAGAIN : (int)err;
	index = n.data.instruction_pointer >> u->space->shift;
	r->part = index < u->entries ? &u->parts[index] : NULL;
	r->id = n.id;
	r->tid = (pid_t)n.pid;
	r->arch = n.data.arch;
	r->nr = n.data.nr;
	r->ip = n.data.instruction_pointer;
	memcpy(r->args, n.data.args, sizeof(r->args));
	current = r;
	return 0;
}

/* If nobody waits for it, the caller was killed, and what was mapped for it goes with it. */
void user_request_reply(const struct user_request *r, int64_t value)
{
	struct seccomp_notif_resp resp = { .id = r->id };

	if (r->continued)
		resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else if (value < 0 && value >= -4095)
		resp.error = (int)value;
	else
		resp.val = value;
	listener_ioctl(r->u->listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}
