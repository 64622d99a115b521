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

/* How many spaces @as makes until there are no more for it; negative if it ends otherwise */
static int spaces_for(int (*as)(void *arg), uid_t uid)
{
	*made = 0;
	return pt_in_child(as, &uid) == -ENOSPC ? *made : -1;
}

/* Processes that have taken all spaces they could get, and keep them */
struct greedy {
	pid_t pid[5];
	int go[5];	/* closed: they end */
	int n;
};

/* One more; returns as spaces_for() does. */
static int greedy_add(struct greedy *g, int (*as)(void *arg), uid_t uid)
{
	int fds[2], ready[2];
	pid_t pid;
	char c;

	*made = 0;
	if (pipe(fds) || pipe(ready))
		return -1;
	pid = fork();
	if (!pid) {
		close(fds[1]);
		c = as(&uid) == -ENOSPC ? 'y' : 'n';
		if (write(ready[1], &c, 1) == 1 && read(fds[0], &c, 1))
			_exit(1);
		_exit(0);
	}
	close(fds[0]);
	g->go[g->n] = fds[1];
	g->pid[g->n++] = pid;
	return read(ready[0], &c, 1) == 1 && c == 'y' ? *made : -1;
}

/* In reverse: each has the descriptors of those before it. */
static int greedy_end(struct greedy *g)
{
	int bad = 0;

	while (g->n--) {
		close(g->go[g->n]);
		bad += !!pt_wait(g->pid[g->n]);
	}
	return bad;
}

/* ---- the limits ---- */

struct limits {
	int fd;
	char total[32], each[32];	/* as they were */
};

static int limits_set(struct limits *l, const char *total, const char *each)
{
	made = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (made == MAP_FAILED)
		return -errno;
	l->fd = pt_open();
	return pt_read_file(PARAM "max_spaces", l->total, sizeof(l->total)) ?:
	       pt_read_file(PARAM "max_spaces_per_user", l->each, sizeof(l->each)) ?:
	       (total ? pt_write_file(PARAM "max_spaces", total) : 0) ?:
	       (each ? pt_write_file(PARAM "max_spaces_per_user", each) : 0);
}

/* When all spaces have been freed */
static int limits_restore(struct limits *l)
{
	int left = pt_raw_spaces_left(l->fd);

	close(l->fd);
	return left ?: pt_write_file(PARAM "max_spaces", l->total) ?:
	       pt_write_file(PARAM "max_spaces_per_user", l->each);
}

/* ---- tests ---- */

/* a user has a share, and others theirs at the same time; root is not held to it */
PVAS_TEST(share_of_a_user)
{
	struct limits limits;
	uid_t user = 12345;

	PT_NEED_ROOT();
	ASSERT_EQ(0, limits_set(&limits, NULL, "5"));
	EXPECT_EQ(5, spaces_for(as_user, user));
	/* A quarter of all is the most. Spaces count until all of them is freed. */
	ASSERT_EQ(0, pt_write_file(PARAM "max_spaces", "12"));
	ASSERT_EQ(0, pt_raw_spaces_left(limits.fd));
	EXPECT_EQ(3, spaces_for(as_user, user));
	ASSERT_EQ(0, pt_raw_spaces_left(limits.fd));
	EXPECT_EQ(3, spaces_for(as_user_in_namespace, user));
	ASSERT_EQ(0, pt_raw_spaces_left(limits.fd));
	EXPECT_EQ(0, one_as(user + 1));
	EXPECT_EQ(0, limits_restore(&limits));
}

/* so has a container of root's: it keeps neither other containers' nor the capless root's */
PVAS_TEST(share_of_a_container)
{
	uid_t first = 100000, other = 200000;
	struct greedy greedy = { 0 };
	struct limits limits;

	PT_NEED_ROOT();
	ASSERT_EQ(0, limits_set(&limits, NULL, "5"));
	EXPECT_EQ(5, greedy_add(&greedy, as_container, first));
	EXPECT_EQ(5, spaces_for(as_container, other));
	/* It has one share, whichever of its users makes the spaces, in namespaces of their own. */
	EXPECT_EQ(5, spaces_for(as_user_in_container, other));
	/* Containers often have the same ids. */
	EXPECT_EQ(5, spaces_for(as_container, first));
	EXPECT_EQ(5, spaces_for(as_user_in_container, first));
	EXPECT_EQ(0, greedy_end(&greedy));
	EXPECT_EQ(0, limits_restore(&limits));
}

/* and one without a user namespace, whose root has few rights */
PVAS_TEST(share_of_a_weak_root)
{
	struct greedy greedy = { 0 };
	struct limits limits;
	struct pt_raw raw;

	PT_NEED_ROOT();
	ASSERT_EQ(0, limits_set(&limits, NULL, "5"));
	/* Whole root's count for nobody else. */
	ASSERT_EQ(0, pt_raw_make(&raw));
	EXPECT_EQ(5, greedy_add(&greedy, as_weak_root, 0));
	EXPECT_EQ(5, spaces_for(as_weak_root, 0));
	EXPECT_EQ(0, greedy_end(&greedy));
	pt_raw_close(&raw);
	EXPECT_EQ(0, limits_restore(&limits));
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
	struct limits limits;
	uid_t outside = 7777;

	PT_NEED_ROOT();
	ASSERT_EQ(0, limits_set(&limits, NULL, "5"));
	EXPECT_EQ(0, pt_in_child(as_many_users, NULL));
	EXPECT_EQ(5, *made);
	EXPECT_EQ(0, one_as(outside));
	EXPECT_EQ(0, limits_restore(&limits));
}

/* ---- logins ---- */

#define NEED_LOGINS() do { \
	if (access("/proc/self/loginuid", W_OK)) \
		SKIP(return, "the kernel has no logins (CONFIG_AUDIT)"); \
} while (0)

/*
 * Set-uid files give the ids of a user's own namespace outside of it: the login counts. But a
 * daemon's jobs, of several users, can have its administrator's: none of them takes it all.
 */
PVAS_TEST(share_of_a_login)
{
	struct greedy greedy = { 0 };
	struct limits limits;

	PT_NEED_ROOT();
	NEED_LOGINS();
	ASSERT_EQ(0, limits_set(&limits, NULL, "5"));
	EXPECT_EQ(5, greedy_add(&greedy, as_login, 100001));
	EXPECT_EQ(5, greedy_add(&greedy, as_login, 100002));
	EXPECT_EQ(0, spaces_for(as_login, 100003));
	EXPECT_EQ(0, spaces_for(as_login_in_namespace, 100003));
	EXPECT_EQ(0, one_as(100003));
	/* Anybody without a login can have chosen this one: its user has a share all the same. */
	EXPECT_EQ(5, spaces_for(as_login, LOGIN));
	EXPECT_EQ(0, greedy_end(&greedy));
	EXPECT_EQ(0, limits_restore(&limits));
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
	struct greedy greedy = { 0 };
	struct limits limits;
	uid_t uid = 100003;

	PT_NEED_ROOT();
	NEED_LOGINS();
	ASSERT_EQ(0, limits_set(&limits, NULL, "5"));
	EXPECT_EQ(5, greedy_add(&greedy, as_login_in_container, uid));
	EXPECT_EQ(5, greedy_add(&greedy, as_login_in_container, uid));
	EXPECT_EQ(0, spaces_for(as_login_in_container, uid));
	EXPECT_EQ(0, one_as(uid));
	EXPECT_EQ(0, greedy_end(&greedy));
	EXPECT_EQ(0, limits_restore(&limits));
}

/*
 * The same with the ids of the user who has logged in, which root of a container can take, too:
 * that user's own share remains.
 */
PVAS_TEST(share_of_a_user_in_sandboxes)
{
	struct greedy greedy = { 0 };
	struct limits limits;

	PT_NEED_ROOT();
	NEED_LOGINS();
	ASSERT_EQ(0, limits_set(&limits, NULL, "5"));
	EXPECT_EQ(5, greedy_add(&greedy, as_login_in_container, LOGIN));
	EXPECT_EQ(5, greedy_add(&greedy, as_login_in_container, LOGIN));
	EXPECT_EQ(0, spaces_for(as_login_in_container, LOGIN));
	EXPECT_EQ(0, spaces_for(as_login_in_root_namespace, LOGIN));
	EXPECT_EQ(5, spaces_for(as_login, LOGIN));
	EXPECT_EQ(0, greedy_end(&greedy));
	EXPECT_EQ(0, limits_restore(&limits));
}

/* Many users at once leave something to root. */
PVAS_TEST(reserve_of_root)
{
	struct greedy greedy = { 0 };
	struct limits limits;
	struct pt_raw raw;
	uid_t user;
	int n = 0;

	PT_NEED_ROOT();
	ASSERT_EQ(0, limits_set(&limits, "16", NULL));
	for (user = 20001; user <= 20005; user++) {
		int got = greedy_add(&greedy, as_user, user);

		EXPECT_LE(0, got);
		n += got;
	}
	EXPECT_EQ(14, n);
	EXPECT_EQ(0, pt_raw_make(&raw));
	pt_raw_close(&raw);
	EXPECT_EQ(0, greedy_end(&greedy));
	EXPECT_EQ(0, limits_restore(&limits));
}

PT_MAIN()
