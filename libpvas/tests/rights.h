/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Changes of rights, for tests of the user backend. They make system calls only, of the
 * calling thread: so that they can also be setup functions. 0 or -errno.
 */
#ifndef PVAS_TEST_RIGHTS_H
#define PVAS_TEST_RIGHTS_H

#include <errno.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "helpers.h"

#define NOBODY	65534

static inline int result(long ret)
{
	return ret < 0 ? -errno : 0;
}

static inline int set_caps(uint64_t permitted, uint64_t effective, uint64_t inheritable)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = {
		{ (uint32_t)effective, (uint32_t)permitted, (uint32_t)inheritable },
		{ effective >> 32, permitted >> 32, inheritable >> 32 },
	};

	return result(syscall(SYS_capset, &head, caps));
}

static inline uint64_t permitted_caps(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { 0 };

	syscall(SYS_capget, &head, caps);
	return caps[0].permitted | (uint64_t)caps[1].permitted << 32;
}

static inline int mixed_uids(void *arg)
{
	return result(syscall(SYS_setresuid, NOBODY, -1, -1));
}

static inline int saved_uid(void *arg)
{
	return result(syscall(SYS_setresuid, -1, -1, NOBODY));
}

static inline int other_fsuid(void *arg)
{
	syscall(SYS_setfsuid, NOBODY);
	return syscall(SYS_setfsuid, -1) == NOBODY ? 0 : -EPERM;
}

static inline int other_uid(void *arg)
{
	return result(syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY));
}

static inline int mixed_gids(void *arg)
{
	return result(syscall(SYS_setresgid, -1, NOBODY, -1));
}

static inline int saved_gid(void *arg)
{
	return result(syscall(SYS_setresgid, -1, -1, NOBODY));
}

static inline int other_fsgid(void *arg)
{
	syscall(SYS_setfsgid, NOBODY);
	return syscall(SYS_setfsgid, -1) == NOBODY ? 0 : -EPERM;
}

static inline int other_groups(void *arg)
{
	const gid_t other = 65533;

	return result(syscall(SYS_setgroups, 1, &other));
}

static inline int fewer_permitted(void *arg)
{
	uint64_t caps = permitted_caps() & ~(1ULL << CAP_SYS_BOOT);

	return set_caps(caps, caps, 0);
}

static inline int fewer_effective(void *arg)
{
	uint64_t caps = permitted_caps();

	return set_caps(caps, caps & ~(1ULL << CAP_SYS_BOOT), 0);
}

static inline int inheritable(void *arg)
{
	uint64_t caps = permitted_caps();

	return set_caps(caps, caps, 1ULL << CAP_SYS_BOOT);
}

static inline int fewer_bounding(void *arg)
{
	return result(prctl(PR_CAPBSET_DROP, CAP_SYS_BOOT, 0, 0, 0));
}

static inline int no_root(void *arg)
{
	return result(prctl(PR_SET_SECUREBITS, SECBIT_NOROOT, 0, 0, 0));
}

/* As a daemon that keeps capabilities when it changes its user */
static inline int kept_caps(void *arg)
{
	uint64_t caps = permitted_caps();

	return result(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)) ?: other_uid(NULL) ?:
	       set_caps(caps, caps, caps);
}

/* The same for programs, too */
static inline int ambient_caps(void *arg)
{
	uint64_t caps = permitted_caps();
	int i, err;

	err = kept_caps(NULL);
	for (i = 0; i < 64 && !err; i++)
		if (caps >> i & 1)
			err = result(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0));
	return err;
}

static inline int other_net(void *arg)
{
	return result(syscall(SYS_unshare, CLONE_NEWNET));
}

static inline int other_mounts(void *arg)
{
	return result(syscall(SYS_unshare, CLONE_NEWNS));
}

static inline int other_pids(void *arg)
{
	return result(syscall(SYS_unshare, CLONE_NEWPID));
}

static inline int another_filter(void *arg)
{
	forbid((int[]){ SYS_swapon }, 1, EPERM);
	return 0;
}

static inline int landlock(void *arg)
{
	const struct landlock_ruleset_attr attr = {
		.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_SOCK,
	};
	long fd, ret;

	fd = syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (fd < 0)
		return -ENOTSUP;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	ret = result(syscall(SYS_landlock_restrict_self, fd, 0));
	syscall(SYS_close, fd);
	return ret;
}

#endif /* PVAS_TEST_RIGHTS_H */
