// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: seccomp filters that tasks and their descendants install.
 *
 * If several filters return different actions, the kernel takes the one of the highest
 * precedence, and that of our filter, SECCOMP_RET_USER_NOTIF, precedes SECCOMP_RET_TRACE
 * (seccomp(2)). So a call that our filter sends to a worker, and that the worker lets the
 * kernel perform, would never reach the tracer of a sandbox. Such filters can't be
 * installed: a sandbox that needs them has to find out, and it does when it starts.
 *
 * The program is read before the kernel copies it. A thread that could change it in
 * between is not in the sandbox yet.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "arch.h"
#include "worker.h"

#define CHUNK		512	/* instructions: a page, which is read at once */

/* The argument of both calls, as 64-bit and as 32-bit programs have it */
union fprog {
	struct sock_fprog native;
	struct {
		uint16_t len;
		uint32_t filter;
	} compat;
};

static int is_compat(const struct user_request *r)
{
	return r->arch != PVAS_AUDIT_ARCH || ((uint32_t)r->nr & X32_BIT);
}

int user_sandbox_call(const struct user_request *r)
{
	uint32_t nr = (uint32_t)r->nr;

	if (r->arch == PVAS_AUDIT_ARCH_32)
		return nr == PVAS_NR_SECCOMP_32 || nr == PVAS_NR_PRCTL_32;
	nr &= ~X32_BIT;
	return nr == __NR_seccomp || (nr == __NR_prctl && (uint32_t)r->args[0] == PR_SET_SECCOMP);
}

/*
 * Can the instruction return an action that ours precedes, and that does more than allow the
 * call? That is SECCOMP_RET_TRACE, and those unknown here, for which a kernel that doesn't know
 * them either would kill the caller. The accumulator's value is not known here.
 */
static int is_preceded(const struct sock_filter *f)
{
	if (BPF_CLASS(f->code) != BPF_RET)
		return 0;
	if (BPF_RVAL(f->code) != BPF_K)
		return 1;
	switch (f->k & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_KILL_PROCESS:
	case SECCOMP_RET_KILL_THREAD:
	case SECCOMP_RET_TRAP:
	case SECCOMP_RET_ERRNO:
	case SECCOMP_RET_USER_NOTIF:
	case SECCOMP_RET_LOG:
	case SECCOMP_RET_ALLOW:
		return 0;
	default:
		return 1;
	}
}

/* 0 if no instruction can */
static int64_t check_program(pid_t memory, uint64_t filter, unsigned int len)
{
	struct sock_filter chunk[CHUNK];
	unsigned int done, n, i;
	ssize_t bytes;

	for (done = 0; done < len; done += n) {
		n = len - done < CHUNK ? len - done : CHUNK;
		bytes = user_caller_read(memory, filter + done * sizeof(chunk[0]), chunk,
					 n * sizeof(chunk[0]));
		if (bytes != (ssize_t)(n * sizeof(chunk[0])))
			return bytes < 0 ? bytes : -EFAULT;
		for (i = 0; i < n; i++)
			if (is_preceded(&chunk[i]))
				return -EINVAL;
	}
	return 0;
}

int64_t user_sandbox_check(const struct user_request *r, pid_t memory)
{
	ssize_t want = is_compat(r) ? sizeof(uint64_t) : sizeof(struct sock_fprog);
	union fprog f = { 0 };
	ssize_t bytes;

	bytes = user_caller_read(memory, r->args[2], &f, (size_t)want);
	if (bytes != want)
		return bytes < 0 ? bytes : -EFAULT;
	if (is_compat(r))
		return check_program(memory, f.compat.filter, f.compat.len);
	return check_program(memory, (uint64_t)f.native.filter, f.native.len);
}
