// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many spaces a user can have, and a container. Without libpvas.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define PARAM "/sys/module/pvas/parameters/"
/* A user who logs in */
#define LOGIN 12345
#define LOGIN_TEXT "12345"
#define PAGE 4096UL
#define RW (PROT_READ | PROT_WRITE)

static int take_all(int *fds, int n)
{
	struct pt_raw raw;
	int i, err = 0;

	for (i = 0; i < n; i++) {
		err = pt_raw_make(&raw);
		fds[i] = raw.fd;
		if (err)
			break;
		close(raw.mem);
	}
	return err ? err : -EOVERFLOW;
}

static int *made;

static int take_and_count(void)
{
	static int fds[64];
	int i, err = pt_dumpable();

	if (err)
		return -ENOTSUP;
	err = take_all(fds, 64);
	for (i = 0; i < 64 && fds[i]; i++)
		(*made)++;
	(*made)--;
	return err;
}

static int as_user(void *arg)
{
	return pt_become(*(uid_t *)arg) ? -ENOTSUP : take_and_count();
}

static int as_user_in_namespace(void *arg)
{
	if (pt_become(*(uid_t *)arg) || unshare(CLONE_NEWUSER))
		return -ENOTSUP;
	/* Unmapped there, but the namespace is that user's all the same. */
	return take_and_count();
}

static int one_as(uid_t uid)
{
	int err = pt_in_child(as_user, &uid);

	return err == -ENOSPC ? 0 : err;
}

/* ---- containers ---- */

#define CONTAINER_IDS 65536

static bool map_ids(pid_t pid, const char *file, uid_t first)
{
	char path[64], map[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	snprintf(map, sizeof(map), "0 %u %u", first, CONTAINER_IDS);
	return !pt_write_file(path, map);
}

/* The caller is root of a user namespace that root has made and given ids from @first on. */
static bool enter_container(uid_t first)
{
	pid_t pid = getpid(), manager;
	int go[2];
	char c;

	if (pipe(go))
		return false;
	manager = fork();
	if (!manager) {
		close(go[1]);
		_exit(read(go[0], &c, 1) == 1 && map_ids(pid, "uid_map", first) &&
		      map_ids(pid, "gid_map", first) ? 0 : 1);
	}
	close(go[0]);
	if (unshare(CLONE_NEWUSER) || write(go[1], "g", 1) != 1)
		return false;
	close(go[1]);
	return !pt_wait(manager) && !setgroups(0, NULL) && !setresgid(0, 0, 0) &&
	       !setresuid(0, 0, 0);
}

static int as_container(void *arg)
{
	return enter_container(*(uid_t *)arg) ? take_and_count() : -ENOTSUP;
}

/* A user of a container that makes user namespaces, too */
static int as_user_in_container(void *arg)
{
	if (!enter_container(*(uid_t *)arg) || setresuid(1000, 1000, 1000) ||
	    unshare(CLONE_NEWUSER))
		return -ENOTSUP;
	return take_and_count();
}

/* A user who has logged in, and has become another one */
static int as_login(void *arg)
{
	return pt_write_file("/proc/self/loginuid", LOGIN_TEXT) ? -ENOTSUP : as_user(arg);
}

/* The same, in a user namespace of that one's */
static int as_login_in_namespace(void *arg)
{
	return pt_write_file("/proc/self/loginuid", LOGIN_TEXT) ? -ENOTSUP : as_user_in_namespace(arg);
}

/* It does not set limits any more. */
static int drop_sys_resource(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	int i;

	if (syscall(SYS_capget, &header, data))
		return -errno;
	data[0].effective &= ~(1U << CAP_SYS_RESOURCE);
	data[0].permitted &= ~(1U << CAP_SYS_RESOURCE);
	for (i = 0; i < 2; i++)
		data[i].inheritable = 0;
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

/*
 * Root of a container without a user namespace: it has a pid namespace, and few rights. The
 * caller goes on as the first process there.
 */
static int enter_weak_container(void)
{
	pid_t pid;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS))
		return -ENOTSUP;
	pid = fork();
	if (pid)
		_exit(pt_wait(pid));
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("proc", "/proc", "proc", 0, NULL) || drop_sys_resource())
		return -ENOTSUP;
	return 0;
}

static int as_weak_root(void *arg)
{
	(void)arg;
	return enter_weak_container() ?: take_and_count();
}

/* A container that has taken all that it can, and keeps it until @go is closed */
static pid_t start_greedy(int (*as)(void *arg), uid_t first, int *go)
{
	int fds[2], ready[2];
	pid_t pid;
	char c;

	if (pipe(fds) || pipe(ready))
		return -1;
	pid = fork();
	if (!pid) {
		close(fds[1]);
		c = as(&first) == -ENOSPC ? 'y' : 'n';
		if (write(ready[1], &c, 1) == 1 && read(fds[0], &c, 1))
			_exit(1);
		_exit(0);
	}
	close(fds[0]);
	*go = fds[1];
	return read(ready[0], &c, 1) == 1 && c == 'y' ? pid : -1;
}

/* A share of five spaces; the one before, as text */
static int five_for_each(char *own, size_t size)
{
	made = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (made == MAP_FAILED)
		return -errno;
	return pt_read_file(PARAM "max_spaces_per_user", own, size) ?:
	       pt_write_file(PARAM "max_spaces_per_user", "5");
}

/* ---- tests ---- */

/* a user has a share, and others theirs at the same time; root is not held to it */
PVAS_TEST(share_of_a_user)
{
	char total[32], own[32];
	uid_t user = 12345;
	int fd = pt_open();

	PT_NEED_ROOT();
	made = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ(0, pt_read_file(PARAM "max_spaces", total, sizeof(total)));
	ASSERT_EQ(0, pt_read_file(PARAM "max_spaces_per_user", own, sizeof(own)));
	ASSERT_EQ(0, pt_write_file(PARAM "max_spaces_per_user", "5"));
	EXPECT_EQ(-ENOSPC, pt_in_child(as_user, &user));
	EXPECT_EQ(5, *made);
	/* A quarter of all is the most. Spaces count until all of them is freed. */
	ASSERT_EQ(0, pt_write_file(PARAM "max_spaces", "12"));
	ASSERT_EQ(0, pt_raw_spaces_left(fd));
	*made = 0;
	EXPECT_EQ(-ENOSPC, pt_in_child(as_user, &user));
	EXPECT_EQ(3, *made);
	ASSERT_EQ(0, pt_raw_spaces_left(fd));
	*made = 0;
	EXPECT_EQ(-ENOSPC, pt_in_child(as_user_in_namespace, &user));
	EXPECT_EQ(3, *made);
	ASSERT_EQ(0, pt_raw_spaces_left(fd));
	EXPECT_EQ(0, one_as(user + 1));
	EXPECT_EQ(0, pt_write_file(PARAM "max_spaces", total));
	EXPECT_EQ(0, pt_write_file(PARAM "max_spaces_per_user", own));
	close(fd);
}

/* so has a container of root's: it keeps neither other containers' nor the capless root's */
PVAS_TEST(share_of_a_container)
{
	uid_t first = 100000, other = 200000;
	int fd = pt_open(), go = -1;
	char own[32];
	pid_t greedy;

	PT_NEED_ROOT();
	ASSERT_EQ(0, five_for_each(own, sizeof(own)));
	greedy = start_greedy(as_container, first, &go);
	EXPECT_LT(0, greedy);
	EXPECT_EQ(5, *made);
	*made = 0;
	EXPECT_EQ(-ENOSPC, pt_in_child(as_container, &other));
	EXPECT_EQ(5, *made);
	/* It has one share, whichever of its users makes the spaces, in namespaces of their own. */
	*made = 0;
	EXPECT_EQ(-ENOSPC, pt_in_child(as_user_in_container, &other));
	EXPECT_EQ(5, *made);
	/* Containers often have the same ids. */
	*made = 0;
	EXPECT_EQ(-ENOSPC, pt_in_child(as_container, &first));
	EXPECT_EQ(5, *made);
	*made = 0;
	EXPECT_EQ(-ENOSPC, pt_in_child(as_user_in_container, &first));
	EXPECT_EQ(5, *made);
	close(go);
	EXPECT_EQ(0, pt_wait(greedy));
	EXPECT_EQ(0, pt_raw_spaces_left(fd));
	EXPECT_EQ(0, pt_write_file(PARAM "max_spaces_per_user", own));
	close(fd);
}

/* and one without a user namespace, whose root has few rights */
PVAS_TEST(share_of_a_weak_root)
{
	int fd = pt_open(), go = -1;
	struct pt_raw raw;
	char own[32];
	pid_t greedy;

	PT_NEED_ROOT();
	ASSERT_EQ(0, five_for_each(own, sizeof(own)));
	/* Whole root's count for nobody else. */
	ASSERT_EQ(0, pt_raw_make(&raw));
	greedy = start_greedy(as_weak_root, 0, &go);
	EXPECT_LT(0, greedy);
	EXPECT_EQ(5, *made);
	*made = 0;
	EXPECT_EQ(-ENOSPC, pt_in_child(as_weak_root, NULL));
	EXPECT_EQ(5, *made);
	close(go);
	EXPECT_EQ(0, pt_wait(greedy));
	pt_raw_close(&raw);
	EXPECT_EQ(0, pt_raw_spaces_left(fd));
	EXPECT_EQ(0, pt_write_file(PARAM "max_spaces_per_user", own));
	close(fd);
}

/*
 * Root of a container, which takes all that it can with the ids of several users, and in user
 * namespaces to which it gives ids
 */
static int as_many_users(void *arg)
{
	static uid_t users[] = { 6001, 6002, 6003, 400000, 500000 };
	unsigned int i;
	int status;
	pid_t pid;

	(void)arg;
	if (enter_weak_container())
		return -ENOTSUP;
	for (i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
		int fds[2];

		if (pipe(fds))
			return -errno;
		pid = fork();
		if (!pid) {
			status = users[i] < CONTAINER_IDS ? as_user(&users[i]) :
							    as_container(&users[i]);
			_exit(write(fds[1], &status, sizeof(status)) != sizeof(status) || pause());
		}
		if (read(fds[0], &status, sizeof(status)) != sizeof(status) || status != -ENOSPC)
			return -EIO;
	}
	return 0;
}

/* All ids that a container's root can take have its share together. */
PVAS_TEST(share_of_ids_of_a_container)
{
	uid_t outside = 7777;
	int fd = pt_open();
	char own[32];

	PT_NEED_ROOT();
	ASSERT_EQ(0, five_for_each(own, sizeof(own)));
	EXPECT_EQ(0, pt_in_child(as_many_users, NULL));
	EXPECT_EQ(5, *made);
	EXPECT_EQ(0, one_as(outside));
	EXPECT_EQ(0, pt_raw_spaces_left(fd));
	EXPECT_EQ(0, pt_write_file(PARAM "max_spaces_per_user", own));
	close(fd);
}

/*
 * Set-uid files give the ids of a user's own namespace outside of it: the login counts. But a
 * daemon's jobs, of several users, can have its administrator's: none of them takes it all.
 */
PVAS_TEST(share_of_a_login)
{
	uid_t uids[] = { 100001, 100002, 100003 }, itself = LOGIN;
	int fd = pt_open(), go[2] = { -1, -1 }, i;
	char own[32];
	pid_t greedy[2];

	PT_NEED_ROOT();
	if (access("/proc/self/loginuid", W_OK))
		SKIP(return, "the kernel has no logins (CONFIG_AUDIT)");
	ASSERT_EQ(0, five_for_each(own, sizeof(own)));
	for (i = 0; i < 2; i++) {
		*made = 0;
		greedy[i] = start_greedy(as_login, uids[i], &go[i]);
		EXPECT_LT(0, greedy[i]);
		EXPECT_EQ(5, *made);
	}
	*made = 0;
	EXPECT_EQ(-ENOSPC, pt_in_child(as_login, &uids[2]));
	EXPECT_EQ(0, *made);
	EXPECT_EQ(-ENOSPC, pt_in_child(as_login_in_namespace, &uids[2]));
	EXPECT_EQ(0, *made);
	EXPECT_EQ(0, one_as(uids[2]));
	/* Anybody without a login can have chosen this one: its user has a share all the same. */
	*made = 0;
	EXPECT_EQ(-ENOSPC, pt_in_child(as_login, &itself));
	EXPECT_EQ(5, *made);
	/* Each has the descriptors of those before it. */
	while (i--) {
		close(go[i]);
		EXPECT_EQ(0, pt_wait(greedy[i]));
	}
	EXPECT_EQ(0, pt_raw_spaces_left(fd));
	EXPECT_EQ(0, pt_write_file(PARAM "max_spaces_per_user", own));
	close(fd);
}

/* A user who has logged in, in a container of root's */
static int as_login_in_container(void *arg)
{
	if (pt_write_file("/proc/self/loginuid", LOGIN_TEXT) || enter_weak_container())
		return -ENOTSUP;
	return as_user(arg);
}

/* The same in a user namespace of root's, in which it has kept its ids */
static int as_login_in_root_namespace(void *arg)
{
	if (pt_write_file("/proc/self/loginuid", LOGIN_TEXT) || !enter_container(0))
		return -ENOTSUP;
	return as_user(arg);
}

/*
 * Containers with one login, which have the same ids: none takes what all of them have. But they
 * may be one user's set-uid sandboxes, so that is no more than the login has elsewhere.
 */
PVAS_TEST(share_of_a_login_in_a_container)
{
	int fd = pt_open(), go[2], i;
	uid_t uid = 100003;
	pid_t greedy[2];
	char own[32];

	PT_NEED_ROOT();
	if (access("/proc/self/loginuid", W_OK))
		SKIP(return, "the kernel has no logins (CONFIG_AUDIT)");
	ASSERT_EQ(0, five_for_each(own, sizeof(own)));
	for (i = 0; i < 2; i++) {
		*made = 0;
		greedy[i] = start_greedy(as_login_in_container, uid, &go[i]);
		EXPECT_LT(0, greedy[i]);
		EXPECT_EQ(5, *made);
	}
	*made = 0;
	EXPECT_EQ(-ENOSPC, pt_in_child(as_login_in_container, &uid));
	EXPECT_EQ(0, *made);
	EXPECT_EQ(0, one_as(uid));
	/* Each has the descriptors of those before it. */
	while (i--) {
		close(go[i]);
		EXPECT_EQ(0, pt_wait(greedy[i]));
	}
	EXPECT_EQ(0, pt_raw_spaces_left(fd));
	EXPECT_EQ(0, pt_write_file(PARAM "max_spaces_per_user", own));
	close(fd);
}

/*
 * The same with the ids of the user who has logged in, which root of a container can take, too:
 * that user's own share remains.
 */
PVAS_TEST(share_of_a_user_in_sandboxes)
{
	uid_t itself = LOGIN;
	int fd = pt_open(), go[2], i;
	char own[32];
	pid_t greedy[2];

	PT_NEED_ROOT();
	if (access("/proc/self/loginuid", W_OK))
		SKIP(return, "the kernel has no logins (CONFIG_AUDIT)");
	ASSERT_EQ(0, five_for_each(own, sizeof(own)));
	for (i = 0; i < 2; i++) {
		*made = 0;
		greedy[i] = start_greedy(as_login_in_container, itself, &go[i]);
		EXPECT_LT(0, greedy[i]);
		EXPECT_EQ(5, *made);
	}
	*made = 0;
	EXPECT_EQ(-ENOSPC, pt_in_child(as_login_in_container, &itself));
	EXPECT_EQ(-ENOSPC, pt_in_child(as_login_in_root_namespace, &itself));
	EXPECT_EQ(0, *made);
	EXPECT_EQ(-ENOSPC, pt_in_child(as_login, &itself));
	EXPECT_EQ(5, *made);
	while (i--) {
		close(go[i]);
		EXPECT_EQ(0, pt_wait(greedy[i]));
	}
	EXPECT_EQ(0, pt_raw_spaces_left(fd));
	EXPECT_EQ(0, pt_write_file(PARAM "max_spaces_per_user", own));
	close(fd);
}

/* Many users at once leave something to root. */
PVAS_TEST(reserve_of_root)
{
	int fd = pt_open(), go[8], n = 0;
	char total[32];
	struct pt_raw raw;
	pid_t greedy[8];
	uid_t user;

	PT_NEED_ROOT();
	made = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ(0, pt_read_file(PARAM "max_spaces", total, sizeof(total)));
	ASSERT_EQ(0, pt_write_file(PARAM "max_spaces", "16"));
	for (user = 20001; n < 5; user++, n++) {
		greedy[n] = start_greedy(as_user, user, &go[n]);
		EXPECT_LT(0, greedy[n]);
	}
	/* take_and_count() counts the refused one off. */
	EXPECT_EQ(14, *made);
	EXPECT_EQ(0, pt_raw_make(&raw));
	pt_raw_close(&raw);
	while (n--) {
		close(go[n]);
		EXPECT_EQ(0, pt_wait(greedy[n]));
	}
	EXPECT_EQ(0, pt_raw_spaces_left(fd));
	EXPECT_EQ(0, pt_write_file(PARAM "max_spaces", total));
	close(fd);
}

PT_MAIN()
