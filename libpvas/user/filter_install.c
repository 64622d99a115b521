// SPDX-License-Identifier: LGPL-2.1-or-later
/* User backend: installing the seccomp filter of filter.c, and reaching it. */
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include "filter.h"
#include "rawsys.h"
#include "worker.h"

#define SYNC_WAKE_UP	1UL		/* SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, 6.6 */
#define IOCTL_SET_FLAGS	_IOW('!', 4, uint64_t)

long user_filter_call_worker(const struct user_space *u)
{
	return pvas_raw4(__NR_rt_sigaction, u->cookie, 0, 0, 0);
}

static const char *explain(int err)
{
	switch (err) {
	case -EBUSY:
		return "this process is under a seccomp listener already (in a container, or a task of another such space)";
	case -EINVAL:
		return "this kernel lacks SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (Linux 5.19)";
	case -ENOSYS:
		return "this kernel has no seccomp filters, or a container forbids the system call seccomp";
	case -EPERM:
	case -EACCES:
		return "seccomp(SECCOMP_SET_MODE_FILTER) is not permitted here";
	default:
		return "seccomp(SECCOMP_SET_MODE_FILTER) failed";
	}
}

int user_filter_install(const struct user_space *u, const char **why)
{
	struct program p = {
		.labels = FIRST_FREE_LABEL, .shift = u->space->shift - 32,
		.first = u->space->first, .last = u->space->last, .cookie = u->cookie,
	};
	struct sock_fprog prog = { .filter = p.code };
	uint64_t flags = SYNC_WAKE_UP;
	int fd, err;

	user_filter_assemble(&p, u->far);
	err = resolve(&p);
	if (err)
		return err;
	/* Without the filter the kernel answers it, unless a sandbox does. */
	if (user_filter_call_worker(u) != -EINVAL) {
		*why = "a sandbox forbids the system call rt_sigaction";
		return -EPERM;
	}
	prog.len = p.len;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
		err = -errno;
		*why = "prctl(PR_SET_NO_NEW_PRIVS) failed";
		return err;
	}
	fd = pvas_raw3(__NR_seccomp, SECCOMP_SET_MODE_FILTER,
		       SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
		       &prog);
	if (fd < 0) {
		*why = explain(fd);
		return fd;
	}
	/* Run caller and worker on the same processor, which is twice as fast. */
	ioctl(fd, IOCTL_SET_FLAGS, flags);
	return fd;
}
