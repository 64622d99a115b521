// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many spaces a user can have, and a container. Without libpvas.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define PARAM "/sys/module/pvas/parameters/"
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

/* A container that has taken all that it can, and keeps it until @go is closed */
static pid_t start_greedy(uid_t first, int *go)
{
	int fds[2], ready[2];
	pid_t pid;
	char c;

	if (pipe(fds) || pipe(ready))
		return -1;
	pid = fork();
	if (!pid) {
		close(fds[1]);
		c = as_container(&first) == -ENOSPC ? 'y' : 'n';
		if (write(ready[1], &c, 1) == 1 && read(fds[0], &c, 1))
			_exit(1);
		_exit(0);
	}
	close(fds[0]);
	*go = fds[1];
	return read(ready[0], &c, 1) == 1 && c == 'y' ? pid : -1;
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
	made = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ(0, pt_read_file(PARAM "max_spaces_per_user", own, sizeof(own)));
	ASSERT_EQ(0, pt_write_file(PARAM "max_spaces_per_user", "5"));
	greedy = start_greedy(first, &go);
	EXPECT_LT(0, greedy);
	EXPECT_EQ(5, *made);
	*made = 0;
	EXPECT_EQ(-ENOSPC, pt_in_child(as_container, &other));
	EXPECT_EQ(5, *made);
	/* It has one share, whichever of its users makes the spaces, in namespaces of their own. */
	*made = 0;
	EXPECT_EQ(-ENOSPC, pt_in_child(as_user_in_container, &other));
	EXPECT_EQ(5, *made);
	close(go);
	EXPECT_EQ(0, pt_wait(greedy));
	EXPECT_EQ(0, pt_raw_spaces_left(fd));
	EXPECT_EQ(0, pt_write_file(PARAM "max_spaces_per_user", own));
	close(fd);
}

PT_MAIN()
