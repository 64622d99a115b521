// SPDX-License-Identifier: GPL-2.0-only
/* Namespaces and credentials. */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "hostile.h"

static const struct {
	const char *path;
	unsigned int flag;
} kinds[] = {
	{ "/proc/self/ns/user", CLONE_NEWUSER }, { "/proc/self/ns/time_for_children", 0x80 },
	{ "/proc/self/ns/time", 0x80 }, { "/proc/self/ns/uts", CLONE_NEWUTS },
	{ "/proc/self/ns/ipc", CLONE_NEWIPC }, { "/proc/self/ns/pid_for_children", CLONE_NEWPID },
	{ "/proc/self/ns/cgroup", CLONE_NEWCGROUP }, { "/proc/self/ns/mnt", CLONE_NEWNS },
	{ "/proc/self/ns/pid", CLONE_NEWPID },
};

/* Its page is in the vdso's data of the mm, if the call lets us in. */
void op_timens(struct actor *a)
{
	struct timespec ts;
	long fd;

	CALL(a, SYS_unshare, CLONE_NEWUSER | (pick(a, 3) ? 0x80 : 0));
	if (!pick(a, 3))
		CALL(a, SYS_unshare, 0x80);
	fd = raw6(SYS_openat, AT_FDCWD, (uintptr_t)"/proc/self/ns/time_for_children",
		  O_RDONLY | O_CLOEXEC, 0, 0, 0);
	CALL(a, SYS_setns, fd, pick(a, 2) ? 0x80 : 0);
	raw6(SYS_close, fd, 0, 0, 0, 0, 0);
	/* To be had through the vdso, the page must be looked at. */
	op_scan(a);
	CALL(a, SYS_clock_gettime, CLOCK_MONOTONIC, &ts);
}

void op_ns(struct actor *a)
{
	unsigned int k = pick(a, ARRAY(kinds));
	long fd;

	switch (pick(a, 4)) {
	case 0:
		CALL(a, SYS_unshare, CLONE_NEWUSER | kinds[k].flag);
		break;
	case 1:
		CALL(a, SYS_unshare, kinds[k].flag);
		break;
	case 2:
		fd = raw6(SYS_openat, AT_FDCWD, (uintptr_t)kinds[k].path, O_RDONLY | O_CLOEXEC,
			  0, 0, 0);
		CALL(a, SYS_setns, fd, kinds[k].flag);
		keep_fd(a, fd);
		break;
	default:
		fd = CALL(a, SYS_pidfd_open, a->child > 0 && pick(a, 2) ? a->child : a->pid, 0);
		CALL(a, SYS_setns, fd, kinds[k].flag);
		keep_fd(a, fd);
	}
}

static uint64_t any_id(struct actor *a)
{
	static const int ids[] = { 0, 1000, 1001, UID_VICTIM, 65534, -1 };

	return ids[pick(a, ARRAY(ids))];
}

/* Allows all: what counts is that there is one. */
static void filter(struct actor *a)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = { 1, &allow };

	CALL(a, SYS_seccomp, SECCOMP_SET_MODE_FILTER, pick(a, 4), &prog);
}

static void drop_caps(struct actor *a)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];

	raw6(SYS_capget, (uintptr_t)&head, (uintptr_t)data, 0, 0, 0, 0);
	data[0].effective &= ~(1U << pick(a, 32));
	if (pick(a, 2))
		data[0].permitted &= data[0].effective;
	CALL(a, SYS_capset, &head, data);
}

static void ids(struct actor *a)
{
	static const unsigned int calls[] = {
		SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid,
		SYS_setfsuid, SYS_setfsgid,
	};

	CALL(a, calls[pick(a, ARRAY(calls))], any_id(a), any_id(a), any_id(a));
}

void op_cred(struct actor *a)
{
	switch (pick(a, 9)) {
	case 0: CALL(a, SYS_prctl, PR_SET_DUMPABLE, pick(a, 3)); break;
	case 1: CALL(a, SYS_prctl, PR_SET_KEEPCAPS, pick(a, 2)); break;
	case 2: CALL(a, SYS_prctl, PR_SET_NO_NEW_PRIVS, 1); break;
	case 3: CALL(a, SYS_personality, pick(a, 2) ? 0x0400000 : 0x0040000); break;
	case 4: drop_caps(a); break;
	case 5: CALL(a, SYS_setgroups, 0, 0); break;
	case 6: filter(a); break;
	default: ids(a);
	}
}
