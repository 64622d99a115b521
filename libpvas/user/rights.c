// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User backend: a task keeps the launcher's ids, namespaces and capabilities.
 *
 * Workers map files and segments with the launcher's rights, and all tasks share
 * the mm: if another user could trace one task, that would open all of them. So the
 * same calls are refused as by the module (kmod/pvas_guard.c). A task may change its
 * groups, network namespace and effective capabilities, as there.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "rawsys.h"
#include "worker.h"

#define KEPT_NS	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWCGROUP | \
		 CLONE_NEWTIME)

/* If the real, effective and saved ids differ, refuse to set any of them. */
static int are_own(int nr, const uint64_t *args, unsigned int n)
{
	uint32_t own[3];
	unsigned int i;

	if (pvas_raw3(nr, &own[0], &own[1], &own[2]))
		return 0;
	for (i = 0; i < n; i++) {
		uint32_t id = (uint32_t)args[i];

		if (id != UINT32_MAX && (id != own[0] || id != own[1] || id != own[2]))
			return 0;
	}
	return 1;
}

/* Malformed arguments are left for the kernel to refuse. */
static int keeps_permitted(const uint64_t *args, pid_t memory)
{
	struct __user_cap_header_struct head, mine = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct wanted[2] = { 0 }, own[2] = { 0 };
	ssize_t len = sizeof(wanted);

	if (user_caller_read(memory, args[0], &head, sizeof(head)) != sizeof(head))
		return 1;
	if (head.version == _LINUX_CAPABILITY_VERSION_1)
		len = sizeof(wanted[0]);
	if (user_caller_read(memory, args[1], wanted, (size_t)len) != len)
		return 1;
	pvas_raw2(__NR_capget, &mine, own);
	return wanted[0].permitted == own[0].permitted && wanted[1].permitted == own[1].permitted;
}

int user_rights_kept_by_clone(uint64_t flags)
{
	return !(flags & KEPT_NS);
}

int user_rights_invalid(int option, uint64_t value)
{
	return (option == PR_SET_PDEATHSIG && value >= _NSIG) ||
	       (option == PR_SET_DUMPABLE && value > 1);
}

static int are_kept(int nr, const uint64_t *args, pid_t memory)
{
	switch (nr) {
	case __NR_setuid:
	case __NR_setfsuid:
		return are_own(__NR_getresuid, args, 1);
	case __NR_setreuid:
		return are_own(__NR_getresuid, args, 2);
	case __NR_setresuid:
		return are_own(__NR_getresuid, args, 3);
	case __NR_setgid:
	case __NR_setfsgid:
		return are_own(__NR_getresgid, args, 1);
	case __NR_setregid:
		return are_own(__NR_getresgid, args, 2);
	case __NR_setresgid:
		return are_own(__NR_getresgid, args, 3);
	case __NR_unshare:
		return user_rights_kept_by_clone(args[0]);
	case __NR_capset:
		return keeps_permitted(args, memory);
	case __NR_setns:
		return (int)args[0] < 0;	/* no descriptor: for the kernel to refuse */
	default:
		return 0;
	}
}

int64_t user_on_rights(struct user_request *r)
{
	if (!are_kept(r->nr, r->args, user_caller_self()))
		return -EPERM;
	r->continued = 1;
	return 0;
}

int64_t user_on_setfsid(struct user_request *r)
{
	return user_on_rights(r) ? pvas_raw1(r->nr, -1) : 0;
}
