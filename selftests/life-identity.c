// SPDX-License-Identifier: GPL-2.0-only
/* A task stays what it was when it came: ids, capabilities, namespaces. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <linux/landlock.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define OTHER 65534

static int capset_without_admin(bool permitted)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -1;
	data[0].effective &= ~(1U << CAP_SYS_ADMIN);
	if (permitted)
		data[0].permitted &= ~(1U << CAP_SYS_ADMIN);
	return syscall(SYS_capset, &header, data);
}

/* Is every one of them refused, and has none of them changed anything? */
static void check_ids_stay(void)
{
	uid_t r, e, s;

	CHECK_ERR(EPERM, syscall(SYS_setresuid, OTHER, OTHER, OTHER));
	CHECK_ERR(EPERM, syscall(SYS_setresuid, -1, OTHER, -1));
	CHECK_ERR(EPERM, syscall(SYS_setresuid, -1, -1, OTHER));
	CHECK_ERR(EPERM, syscall(SYS_setuid, OTHER));
	CHECK_ERR(EPERM, syscall(SYS_setreuid, OTHER, OTHER));
	CHECK_ERR(EPERM, syscall(SYS_setresgid, OTHER, OTHER, OTHER));
	CHECK_ERR(EPERM, syscall(SYS_setregid, OTHER, -1));
	CHECK_ERR(EPERM, syscall(SYS_setgid, OTHER));
	/* These say no error: they return what it was. */
	syscall(SYS_setfsuid, OTHER);
	CHECK_EQ(0, syscall(SYS_setfsuid, -1));
	syscall(SYS_setfsgid, OTHER);
	CHECK_EQ(0, syscall(SYS_setfsgid, -1));
	CHECK_ERR(EPERM, capset_without_admin(true));
	CHECK_EQ(0, getresuid(&r, &e, &s));
	CHECK(!r && !e && !s && !getgid() && !getegid());
	CHECK_EQ(1, prctl(PR_GET_DUMPABLE));
}

static int become_other(void)
{
	return setresgid(OTHER, OTHER, OTHER) || setresuid(OTHER, OTHER, OTHER) ? 1 :
	       getuid() != OTHER;
}

/* no id and no permitted capability changes in a task: EPERM; its fork child may */
TASK_TEST(ids)
{
	int st;
	pid_t pid;

	if (geteuid() || pt_backend() != PVAS_BACKEND_KERNEL)
		return;
	check_ids_stay();
	pid = fork();
	if (!pid)
		_exit(become_other());
	CHECK_EQ(pid, waitpid(pid, &st, 0));
	CHECK_EQ(0, st);
}

static int vfork_stack[4096] __attribute__((aligned(16)));

static int become_in_guest(void *arg)
{
	(void)arg;
	return syscall(SYS_setresuid, OTHER, OTHER, OTHER) == -1 && errno == EPERM ? 0 : 1;
}

static int unshare_in_guest(void *arg)
{
	return syscall(SYS_unshare, *(int *)arg) == -1 && errno == EPERM ? 0 : 1;
}

static int in_guest(int (*fn)(void *arg), void *arg)
{
	pid_t pid = clone(fn, vfork_stack + 4096, CLONE_VM | CLONE_VFORK | SIGCHLD, arg);
	int st;

	return pid < 0 || waitpid(pid, &st, 0) != pid ? -1 : st;
}

/* nor in a child that shares the mm, as posix_spawn()'s does */
TASK_TEST(ids_of_a_guest)
{
	int flags = CLONE_NEWUSER;

	if (geteuid() || pt_backend() != PVAS_BACKEND_KERNEL)
		return;
	CHECK_EQ(0, in_guest(become_in_guest, NULL));
	CHECK_EQ(0, in_guest(unshare_in_guest, &flags));
}

/* what changes nothing of that works: the same ids, groups, keyrings, less that is effective */
TASK_TEST(other_credentials)
{
	if (geteuid())
		return;
	CHECK_EQ(0, syscall(SYS_setresuid, 0, 0, 0));
	CHECK_EQ(0, syscall(SYS_setgroups, 0, NULL));
	CHECK_EQ(0, prctl(PR_CAPBSET_DROP, CAP_SYS_BOOT, 0, 0, 0));
	CHECK_EQ(0, prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
	CHECK_EQ(0, capset_without_admin(false));
	CHECK_EQ(0, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) > 0 || errno == ENOSYS);
}

static const int kept[] = {
	CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWIPC, CLONE_NEWCGROUP, CLONE_NEWTIME,
};

static const char * const kept_names[] = { "user", "mnt", "pid", "ipc", "cgroup", "time" };

static long clone_with(unsigned long flags)
{
	struct clone_args args = { .flags = flags, .exit_signal = SIGCHLD };
	int st = 0;
	long pid;

	if (flags & CLONE_VM) {
		args.stack = (uintptr_t)vfork_stack;
		args.stack_size = sizeof(vfork_stack);
	}
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (!pid)
		syscall(SYS_exit_group, 0);
	if (pid > 0)
		waitpid(pid, &st, 0);
	return pid;
}

/* none of these namespaces by unshare, nor for a child in the same mm; for a fork child, yes */
TASK_TEST(unshare_refused)
{
	size_t i;

	if (geteuid() || pt_backend() != PVAS_BACKEND_KERNEL)
		return;
	for (i = 0; i < PT_ARRAY_SIZE(kept); i++) {
		CHECK_ERR(EPERM, unshare(kept[i]));
		CHECK_ERR(EPERM, unshare(kept[i] | CLONE_NEWUTS));
		/* A time namespace is not for a clone that shares the mm: EINVAL. */
		if (kept[i] != CLONE_NEWTIME)
			CHECK_ERR(EPERM, clone_with(kept[i] | CLONE_VM | CLONE_VFORK));
		CHECK(clone_with(kept[i]) > 0);
	}
	CHECK_EQ(0, unshare(CLONE_NEWUTS));
}

/* Enters its own namespace, which is allowed to others, by @fd. */
static void check_setns(int fd, int type, bool by_pidfd)
{
	int want = type == CLONE_NEWTIME ? EUSERS : EPERM;

	/* One's own user namespace can't be entered by anybody. */
	if (type == CLONE_NEWUSER && !by_pidfd)
		CHECK_EQ(-1, setns(fd, type));
	else
		CHECK_ERR(want, setns(fd, type));
}

/* A domain would open the unconfined peers to all processes of that domain. */
TASK_TEST(landlock_refused)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_SOCK };
	int fd = syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	pid_t pid;

	if (fd < 0)
		return;
	CHECK_EQ(0, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_ERR(EPERM, syscall(SYS_landlock_restrict_self, fd, 0));
	pid = fork();
	if (!pid)
		_exit(syscall(SYS_landlock_restrict_self, fd, 0) ? errno : 0);
	CHECK_EQ(0, pt_wait(pid));
	close(fd);
}

/* nor by setns, by a file of the namespace or a process; for time: EUSERS */
TASK_TEST(setns_refused)
{
	int pidfd, fd;
	char path[64];
	size_t i;
	pid_t pid;

	if (geteuid() || pt_backend() != PVAS_BACKEND_KERNEL)
		return;
	pid = fork();
	if (!pid) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWCGROUP))
			_exit(1);
		pause();
	}
	usleep(50000);
	pidfd = syscall(SYS_pidfd_open, pid, 0);
	CHECK(pidfd >= 0);
	for (i = 0; i < PT_ARRAY_SIZE(kept); i++) {
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kept_names[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		CHECK(fd >= 0);
		check_setns(fd, kept[i], false);
		check_setns(pidfd, kept[i], true);
		close(fd);
	}
	kill(pid, SIGKILL);
	CHECK_EQ(pid, waitpid(pid, NULL, 0));
}

static unsigned long ns_of_time(pid_t pid)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/time", pid);
	return stat(path, &st) ? 0 : st.st_ino;
}

/*
 * A child with a new time namespace for its children; its child is in it. A page of
 * that namespace must not get into a space.
 */
TASK_TEST(time_namespace)
{
	int fds[2], fd, st;
	char path[64];
	pid_t pid, in;

	if (geteuid() || pt_backend() != PVAS_BACKEND_KERNEL)
		return;
	CHECK_EQ(0, pipe(fds));
	pid = fork();
	if (!pid) {
		if (unshare(CLONE_NEWTIME))
			_exit(1);
		in = fork();
		if (!in) {
			pause();
			_exit(0);
		}
		CHECK_EQ((long)sizeof(in), write(fds[1], &in, sizeof(in)));
		_exit(0);
	}
	CHECK_EQ((long)sizeof(in), read(fds[0], &in, sizeof(in)));
	CHECK(ns_of_time(in) != ns_of_time(getpid()));
	snprintf(path, sizeof(path), "/proc/%d/ns/time", in);
	fd = open(path, O_RDONLY);
	CHECK_ERR(EUSERS, setns(fd, CLONE_NEWTIME));
	CHECK_ERR(EUSERS, setns(syscall(SYS_pidfd_open, in, 0), CLONE_NEWTIME));
	kill(in, SIGKILL);
	CHECK_EQ(pid, waitpid(pid, &st, 0));
	CHECK_EQ(0, st);
}

/* a program that sets its ids runs by exec out of the space: by an exec that is not armed */
MODULE_TEST(exec_out_with_ids, "tasks gain no rights by exec")
{
	struct pvas_space *space = PT_SPACE();
	pid_t pid = pt_start_task(space, PVAS_ANY, "exec_setuid");

	ASSERT_LT(0, pid);
	EXPECT_EQ(0, pt_wait(pid));
	unlink("/var/tmp/pvas-suid");
	pvas_space_destroy(space);
}

TASK(exec_setuid)
{
	static const char path[] = "/var/tmp/pvas-suid";

	if (geteuid())
		return;
	unlink(path);
	CHECK_EQ(0, system("cp /usr/bin/test /var/tmp/pvas-suid"));
	CHECK_EQ(0, chown(path, OTHER, OTHER));
	CHECK_EQ(0, chmod(path, 04755));
	/* Is it owned by who it runs as? */
	execl(path, "test", "-O", path, (char *)NULL);
	CHECK_EQ(0, errno);
}

static long oom_score_adj(pid_t pid)
{
	char path[64], text[16];

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
	return pt_read_file(path, text, sizeof(text)) ? -1 : atol(text);
}

/* the OOM killer's victim is all of a space: so is what it is chosen by */
MODULE_TEST(oom_score, "each task has its own memory")
{
	struct pvas_space *space = PT_SPACE();
	pid_t pid[2];
	int fds[2], i;
	char path[64];

	ASSERT_EQ(0, pipe(fds));
	for (i = 0; i < 2; i++) {
		pid[i] = pt_start_task_fd(space, i + 1, "ready_and_pause", fds[1]);
		ASSERT_LT(0, pid[i]);
		ASSERT_EQ('r', pt_hear(fds[0]));
	}
	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid[0]);
	EXPECT_EQ(0, pt_write_file(path, "321"));
	EXPECT_EQ(321, oom_score_adj(pid[1]));
	EXPECT_NE(321, oom_score_adj(getpid()));
	for (i = 0; i < 2; i++)
		pt_kill(pid[i]);
	pvas_space_destroy(space);
}

PT_MAIN()
