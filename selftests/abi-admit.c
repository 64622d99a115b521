// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process that enters a space must have the same rights as the creator: a process in
 * a sandbox, or with fewer rights, can't share a space with one that has more. Without
 * libpvas.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

static int no_new_privs(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -ENOTSUP : 0;
}

static int seccomp_filter(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = { .len = 1, .filter = &allow };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) ? -ENOTSUP : 0;
}

/* Root needs no PR_SET_NO_NEW_PRIVS for a filter: one thing at a time. */
static int landlock(void)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_SOCK };
	int fd = syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	return fd < 0 || syscall(SYS_landlock_restrict_self, fd, 0) ? -ENOTSUP : 0;
}

static int fewer_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) || prctl(PR_CAPBSET_DROP, CAP_SYS_BOOT, 0, 0, 0))
		return -ENOTSUP;
	data[0].effective &= ~(1U << CAP_SYS_BOOT);
	data[0].permitted &= ~(1U << CAP_SYS_BOOT);
	return syscall(SYS_capset, &header, data) ? -ENOTSUP : pt_dumpable();
}

static int ipc_namespace(void)
{
	return unshare(CLONE_NEWIPC) ? -ENOTSUP : 0;
}

static int cgroup_namespace(void)
{
	return unshare(CLONE_NEWCGROUP) ? -ENOTSUP : 0;
}

static int mount_namespace(void)
{
	return unshare(CLONE_NEWNS) ? -ENOTSUP : 0;
}

static int time_for_children(void)
{
	return unshare(0x80) ? -ENOTSUP : 0;	/* CLONE_NEWTIME */
}

static int pid_for_children(void)
{
	return unshare(CLONE_NEWPID) ? -ENOTSUP : 0;
}

static const struct change {
	const char *name;
	int (*make)(void);
	bool enter_only;	/* such a process can't make a space either */
} changes[] = {
	{ "no_new_privs", no_new_privs, false },
	{ "seccomp", seccomp_filter, false },
	{ "landlock", landlock, false },
	{ "capabilities", fewer_capabilities, false },
	{ "ipc namespace", ipc_namespace, false },
	{ "cgroup namespace", cgroup_namespace, false },
	{ "mount namespace", mount_namespace, false },
	{ "time namespace", time_for_children, true },
	{ "pid namespace", pid_for_children, true },
};

static int arm(void *arg)
{
	return pt_raw_arm(((struct pt_raw *)arg)->fd, 0, 0, PVAS_SPAWN_ANY);
}

struct attempt {
	const struct change *change;
	struct pt_raw *raw;
};

static int change_and_arm(void *arg)
{
	struct attempt *a = arg;

	return a->change->make() ?: arm(a->raw);
}

/* a process that has changed, into a space of one that has not: EPERM */
PVAS_TEST(changed_enters)
{
	struct pt_raw raw;
	struct attempt a = { .raw = &raw };
	size_t i;
	int err;

	PT_NEED_ROOT();
	ASSERT_EQ(0, pt_raw_make(&raw));
	EXPECT_EQ(0, pt_in_child(arm, &raw));
	for (i = 0; i < PT_ARRAY_SIZE(changes); i++) {
		a.change = &changes[i];
		err = pt_in_child(change_and_arm, &a);
		if (err == -ENOTSUP) {
			TH_LOG("%s: not available here", changes[i].name);
		} else {
			EXPECT_EQ(-EPERM, err) TH_LOG("%s", changes[i].name);
		}
	}
	EXPECT_EQ(0, pt_in_child(arm, &raw));
	pt_raw_close(&raw);
}

static int change_it(void *arg)
{
	return ((const struct change *)arg)->make();
}

/* and into a space of one that has changed, though it has the space's file: EPERM */
PVAS_TEST(changed_creates)
{
	struct pt_raw raw;
	size_t i;
	int err;

	PT_NEED_ROOT();
	for (i = 0; i < PT_ARRAY_SIZE(changes); i++) {
		pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
		raw.prepare = change_it;
		raw.prepare_arg = (void *)&changes[i];
		err = pt_raw_create(&raw);
		if (err == -ENOTSUP) {
			TH_LOG("%s: not available here", changes[i].name);
		} else if (changes[i].enter_only) {
			EXPECT_EQ(-EPERM, err) TH_LOG("%s", changes[i].name);
		} else {
			EXPECT_EQ(-EPERM, err ?: pt_in_child(arm, &raw))
				TH_LOG("%s", changes[i].name);
		}
		pt_raw_close(&raw);
	}
}

/* The whole of a job. */
static int make_and_spawn(void)
{
	struct pt_raw raw;
	pid_t pid, second;
	int err = pt_raw_make(&raw);

	if (err)
		return err;
	pid = pt_raw_spawn(&raw, 1);
	second = pt_raw_spawn(&raw, 2);
	if (pid < 0 || second < 0)
		return pid < 0 ? pid : second;
	if (pt_raw_call(&raw, 1, SYS_getpid) != pid || pt_raw_call(&raw, 2, SYS_getpid) != second)
		err = -EIO;
	pt_kill(pid);
	pt_kill(second);
	pt_raw_close(&raw);
	return err;
}

static int job_in_sandbox(void *arg)
{
	const struct change *change = arg;

	return change->make() ?: make_and_spawn();
}

static int job_in_container(void *arg)
{
	size_t i;
	int err = 0;

	(void)arg;
	for (i = 0; i < PT_ARRAY_SIZE(changes) && !err; i++)
		if (!changes[i].enter_only)
			err = changes[i].make();
	/* A second filter on top of the first, as a container's program may have. */
	return err ?: seccomp_filter() ?: make_and_spawn();
}

/* a whole job in one sandbox works, as in a container */
PVAS_TEST(job_in_a_sandbox)
{
	size_t i;
	int err;

	PT_NEED_ROOT();
	for (i = 0; i < PT_ARRAY_SIZE(changes); i++) {
		if (changes[i].enter_only)
			continue;
		err = pt_in_child(job_in_sandbox, (void *)&changes[i]);
		if (err == -ENOTSUP) {
			TH_LOG("%s: not available here", changes[i].name);
		} else {
			EXPECT_EQ(0, err) TH_LOG("%s", changes[i].name);
		}
	}
	err = pt_in_child(job_in_container, NULL);
	if (err != -ENOTSUP) {
		EXPECT_EQ(0, err);
	}
}

/* Without any capability, uid 0 or not */
static int look_without(void *arg)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { };
	char line[256];
	int err;

	if (syscall(SYS_capset, &header, none))
		return -ENOTSUP;
	err = pt_raw_query(arg);
	if (err != -EPERM)
		return err ?: -EEXIST;
	return pt_read_file("/proc/pvas", line, sizeof(line)) || !*line ? -EPERM : -EEXIST;
}

/* a root without capabilities sees nothing of the spaces of a root that has them */
PVAS_TEST(looks_without_capabilities)
{
	struct pt_raw raw;

	PT_NEED_ROOT();
	ASSERT_EQ(0, pt_raw_make(&raw));
	EXPECT_EQ(0, pt_raw_query(&raw));
	EXPECT_EQ(-EPERM, pt_in_child(look_without, &raw));
	pt_raw_close(&raw);
}

static int change_and_look(void *arg)
{
	struct attempt *a = arg;
	char all[4096] = "";
	int fd, err;

	/* As for whoever is not root. */
	err = no_new_privs() ?: a->change->make();
	if (err)
		return -ENOTSUP;
	err = pt_raw_query(a->raw);
	fd = open("/proc/pvas", O_RDONLY);
	if (read(fd, all, sizeof(all) - 1) < 0)
		return -EIO;
	return strstr(all, " pid ") ? -EEXIST : err;
}

static int look_unchanged(void *arg)
{
	return pt_raw_query(arg);
}

static int look_from_each(void *arg)
{
	struct pt_raw raw;
	struct attempt a = { .raw = &raw };
	size_t i;
	int err = pt_dumpable() ?: pt_raw_make(&raw);

	(void)arg;
	if (err || pt_raw_spawn(&raw, 1) < 0)
		return err ?: -EAGAIN;
	err = pt_in_child(look_unchanged, &raw);
	for (i = 0; i < PT_ARRAY_SIZE(changes) && !err; i++) {
		a.change = &changes[i];
		err = pt_in_child(change_and_look, &a);
		err = err == -EPERM || err == -ENOTSUP ? 0 : err ?: -EEXIST;
		if (err)
			fprintf(stderr, "%s: %s\n", changes[i].name, strerror(-err));
	}
	pt_raw_close(&raw);
	return err;
}

/* nor does a user's process in a sandbox learn pids and addresses of the user's tasks outside */
PVAS_TEST(looks_from_a_sandbox)
{
	PT_NEED_ROOT();
	EXPECT_EQ(0, pt_as_nobody(look_from_each, NULL));
}

/*
 * no task keeps debuggers, core files and new tasks from its peers, by a setting that they
 * share; nor does the creator
 */
PVAS_TEST(dumpable)
{
	const struct pt_slot after = { .nr = SYS_prctl, .args = { PR_SET_DUMPABLE, 0 } };
	struct pt_raw raw;
	long ret = 0;
	pid_t pid;

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.after = &after;
	raw.n_after = 1;
	raw.after_ret = &ret;
	ASSERT_EQ(0, pt_raw_create(&raw));
	EXPECT_EQ(-EPERM, ret);
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	EXPECT_EQ(-EPERM, pt_raw_call(&raw, 1, SYS_prctl, PR_SET_DUMPABLE, 0));
	EXPECT_EQ(1, pt_raw_call(&raw, 1, SYS_prctl, PR_GET_DUMPABLE));
	EXPECT_EQ(0, pt_in_child(arm, &raw));
	EXPECT_EQ(0, pt_raw_call(&raw, 1, SYS_prctl, PR_SET_DUMPABLE, 1));
	pt_kill(pid);
	pt_raw_close(&raw);
}

PT_MAIN()
