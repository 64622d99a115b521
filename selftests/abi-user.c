// SPDX-License-Identifier: GPL-2.0-only
/* The right to make, enter and see a space: users, capabilities, namespaces; without libpvas. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

/* ---- make ---- */

static int not_dumpable(void *arg)
{
	(void)arg;
	return prctl(PR_SET_DUMPABLE, 0) ? -errno : 0;
}

static int mix_uids(void *arg)
{
	(void)arg;
	return setresuid(65534, 0, 0) ? -errno : pt_dumpable();
}

static int mix_gids(void *arg)
{
	(void)arg;
	return setresgid(0, 65534, 0) ? -errno : pt_dumpable();
}

/* a creator that is not dumpable: EPERM */
PVAS_TEST(create_not_dumpable)
{
	struct pt_raw raw;

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = not_dumpable;
	EXPECT_EQ(-EPERM, pt_raw_create(&raw));
	pt_raw_close(&raw);
}

/* a creator with mixed user or group ids: EPERM */
PVAS_TEST(create_mixed_ids)
{
	struct pt_raw raw;

	PT_NEED_ROOT();
	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	raw.prepare = mix_uids;
	EXPECT_EQ(-EPERM, pt_raw_create(&raw));
	raw.prepare = mix_gids;
	EXPECT_EQ(-EPERM, pt_raw_create(&raw));
	pt_raw_close(&raw);
}

static int unshare_time(void *arg)
{
	(void)arg;
	return unshare(CLONE_NEWTIME) ? -errno : 0;
}

static int create_once(void *arg)
{
	struct pt_raw raw;
	int err;

	pt_raw_init(&raw, PVAS_SHIFT_DEFAULT);
	(void)arg;
	err = pt_raw_create(&raw);
	pt_raw_close(&raw);
	return err;
}

/* Its children are in the new namespace. */
static int create_in_time_ns(void *arg)
{
	int err = unshare_time(NULL);

	return err == -EINVAL || err == -ENOSYS ? -ENOTSUP : err ?: pt_in_child(create_once, arg);
}

/* a time namespace other than the first: EPERM */
PVAS_TEST(create_in_time_namespace)
{
	int err;

	PT_NEED_ROOT();
	err = pt_in_child(create_in_time_ns, NULL);
	if (err == -ENOTSUP)
		SKIP(return, "no time namespaces in this kernel");
	EXPECT_EQ(-EPERM, err);
}

static int create_in_user_ns(void *arg)
{
	struct pt_raw raw;
	int err = unshare(CLONE_NEWUSER) ? -ENOTSUP : pt_dumpable() ?: pt_raw_make(&raw);
	pid_t pid;

	(void)arg;
	if (err)
		return err;
	pid = pt_raw_spawn(&raw, 1);
	if (pid < 0)
		return pid;
	err = pt_raw_call(&raw, 1, SYS_getpid) == pid ? 0 : -EIO;
	pt_kill(pid);
	return err;
}

/* in a user namespace one makes and enters one's own space */
PVAS_TEST(own_space_in_user_namespace)
{
	int err = pt_in_child(create_in_user_ns, NULL);

	if (err == -ENOTSUP)
		SKIP(return, "no user namespaces for this user");
	EXPECT_EQ(0, err);
}

/* ---- enter ---- */

static int arm_inherited(void *arg)
{
	struct pt_raw *raw = arg;

	return pt_raw_arm(raw->fd, 0, 3, 0);
}

static int arm_by_id(void *arg)
{
	struct pt_raw *raw = arg;

	return pt_raw_arm(pt_open(), raw->create.id, 3, 0);
}

static int kill_inherited(void *arg)
{
	struct pvas_destroy destroy = { .size = sizeof(destroy), .flags = PVAS_DESTROY_KILL };

	return pt_ioctl(((struct pt_raw *)arg)->fd, PVAS_IOC_DESTROY, &destroy);
}

/* a process that has given up its rights cannot kill the tasks by an inherited file */
PVAS_TEST(destroy_inherited)
{
	struct pt_raw raw;
	pid_t pid;

	PT_NEED_ROOT();
	ASSERT_EQ(0, pt_raw_make(&raw));
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	EXPECT_EQ(-EPERM, pt_as_nobody(kill_inherited, &raw));
	EXPECT_EQ(pid, pt_raw_call(&raw, 1, SYS_getpid));
	EXPECT_EQ(0, pt_in_child(kill_inherited, &raw));
	EXPECT_EQ(256 + SIGKILL, pt_wait(pid));
	pt_raw_close(&raw);
}

/* another user's space: EPERM, by an inherited file and by its id */
PVAS_TEST(other_user)
{
	struct pt_raw raw;

	PT_NEED_ROOT();
	ASSERT_EQ(0, pt_raw_make(&raw));
	EXPECT_EQ(-EPERM, pt_as_nobody(arm_inherited, &raw));
	EXPECT_EQ(-EPERM, pt_as_nobody(arm_by_id, &raw));
	EXPECT_EQ(-EPERM, pt_as_nobody(pt_raw_query, &raw));
	EXPECT_EQ(0, pt_in_child(pt_raw_query, &raw));
	EXPECT_EQ(0, pt_raw_count(raw.fd));
	pt_raw_close(&raw);
}

static int make_and_tell(void *arg)
{
	static struct pt_raw raw;

	(void)arg;
	return pt_raw_make(&raw) ?: (int)raw.create.id;
}

/* even root can't enter a user's space; a user makes his own */
PVAS_TEST(root_is_another_user)
{
	struct pt_raw raw;
	int fds[2], id = 0;
	pid_t pid;

	PT_NEED_ROOT();
	ASSERT_EQ(0, pipe(fds));
	pid = fork();
	if (!pid) {
		if (pt_become(65534) || pt_dumpable())
			_exit(1);
		id = make_and_tell(NULL);
		_exit(write(fds[1], &id, sizeof(id)) != sizeof(id) || pause());
	}
	ASSERT_EQ(sizeof(id), read(fds[0], &id, sizeof(id)));
	EXPECT_LT(0, id);
	raw.create.id = id;
	EXPECT_EQ(-EPERM, arm_by_id(&raw));
	EXPECT_EQ(0, pt_raw_query(&raw));	/* CAP_SYS_PTRACE may look */
	pt_kill(pid);
}

static int arm_in_user_ns(void *arg)
{
	return unshare(CLONE_NEWUSER) ? -ENOTSUP : pt_dumpable() ?: arm_inherited(arg);
}

static int arm_in_pid_ns(void *arg)
{
	return unshare(CLONE_NEWPID) ? -ENOTSUP : pt_in_child(arm_inherited, arg);
}

static int arm_in_mount_ns(void *arg)
{
	return unshare(CLONE_NEWNS) ? -ENOTSUP : arm_inherited(arg);
}

static int arm_in_time_ns(void *arg)
{
	return unshare(CLONE_NEWTIME) ? -ENOTSUP : pt_in_child(arm_inherited, arg);
}

static int arm_with_mixed_uids(void *arg)
{
	return mix_uids(NULL) ?: arm_inherited(arg);
}

static int arm_with_mixed_gids(void *arg)
{
	return mix_gids(NULL) ?: arm_inherited(arg);
}

/* from another user, pid, mount or time namespace, or with mixed ids: EPERM */
PVAS_TEST(spawn_credentials)
{
	struct pt_raw raw;

	PT_NEED_ROOT();
	ASSERT_EQ(0, pt_raw_make(&raw));
	EXPECT_EQ(-EPERM, pt_in_child(arm_in_user_ns, &raw));
	EXPECT_EQ(-EPERM, pt_in_child(arm_in_pid_ns, &raw));
	EXPECT_EQ(-EPERM, pt_in_child(arm_in_mount_ns, &raw));
	EXPECT_EQ(-EPERM, pt_in_child(arm_in_time_ns, &raw));
	EXPECT_EQ(-EPERM, pt_in_child(arm_with_mixed_uids, &raw));
	EXPECT_EQ(-EPERM, pt_in_child(arm_with_mixed_gids, &raw));
	EXPECT_EQ(0, pt_in_child(arm_inherited, &raw));
	pt_raw_close(&raw);
}

static int arm_with_fewer_capabilities(void *arg)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -ENOTSUP;
	data[0].effective &= ~(1U << CAP_SYS_ADMIN);
	data[0].permitted &= ~(1U << CAP_SYS_ADMIN);
	if (syscall(SYS_capset, &header, data))
		return -ENOTSUP;
	return pt_dumpable() ?: arm_inherited(arg);
}

/* with fewer capabilities than the tasks have, as ptrace would refuse: EPERM */
PVAS_TEST(spawn_with_other_capabilities)
{
	struct pt_raw raw;
	pid_t pid;

	PT_NEED_ROOT();
	ASSERT_EQ(0, pt_raw_make(&raw));
	pid = pt_raw_spawn(&raw, 7);
	ASSERT_LT(0, pid);
	EXPECT_EQ(-EPERM, pt_in_child(arm_with_fewer_capabilities, &raw));
	EXPECT_EQ(0, pt_in_child(arm_inherited, &raw));
	pt_kill(pid);
	pt_raw_close(&raw);
}

/* ---- see ---- */

/* /proc/pvas lists a user's own spaces and tasks only; the opener counts, not the reader */
static int see(int fd)
{
	char text[4096];
	ssize_t n = read(fd, text, sizeof(text) - 1);

	if (n < 0)
		return -EIO;
	text[n] = '\0';
	return strstr(text, "space ") && strstr(text, "task ") ? 2 : n != 0;
}

static int see_spaces(void *arg)
{
	(void)arg;
	return see(open("/proc/pvas", O_RDONLY));
}

/* Opens it as nobody, and reads as root. */
static int see_by_file(void)
{
	int fd;

	if (seteuid(65534))
		return -ENOTSUP;
	fd = open("/proc/pvas", O_RDONLY);
	return seteuid(0) ? -ENOTSUP : see(fd);
}

PVAS_TEST(proc_pvas)
{
	char line[256];
	struct pt_raw raw;
	unsigned int id = 0;
	pid_t pid;

	ASSERT_EQ(0, pt_raw_make(&raw));
	pid = pt_raw_spawn(&raw, 1);
	ASSERT_LT(0, pid);
	ASSERT_EQ(0, pt_read_file("/proc/pvas", line, sizeof(line)));
	EXPECT_EQ(1, sscanf(line, "space %u ", &id));
	EXPECT_EQ(raw.create.id, id);
	EXPECT_EQ(2, see_spaces(NULL));
	if (!geteuid()) {
		EXPECT_EQ(0, pt_as_nobody(see_spaces, NULL));
		EXPECT_EQ(0, see_by_file());
	}
	pt_kill(pid);
	pt_raw_close(&raw);
}

PT_MAIN()
