// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: a thread that has given up rights does not get them back by
 * starting a task, and one that has descriptors of its own does not hang.
 */
#include <fcntl.h>
#include <linux/keyctl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "pvas.h"
#include "rights.h"
#include "kselftest_harness.h"

static const struct pvas_create_attr user = {
	.size = sizeof(user), .backend = PVAS_BACKEND_USER,
};

static int fewer_ids(void *arg)
{
	/* Others can't, but "nobody" can have this id already. */
	return geteuid() ? -EPERM : result(syscall(SYS_setresuid, -1, NOBODY, -1));
}

static int other_umask(void *arg)
{
	return result(unshare(CLONE_FS)) ?: (umask(0123), 0);
}

static int other_directory(void *arg)
{
	return result(unshare(CLONE_FS)) ?: result(chdir("/usr"));
}

static int other_root(void *arg)
{
	return result(unshare(CLONE_FS)) ?: result(chroot("/usr"));
}

static int own_descriptors(void *arg)
{
	return result(unshare(CLONE_FILES));
}

static int own_session(void *arg)
{
	return result(syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL));
}

static char group[64];

/* Only of version 1, where every thread can have its own */
static int own_cgroup(void *arg)
{
	char path[80];
	int fd, err;

	snprintf(group, sizeof(group), "/sys/fs/cgroup/pids/pvas-test-%d", getpid());
	if (mkdir(group, 0755))
		return -errno;
	snprintf(path, sizeof(path), "%s/tasks", group);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	err = fd < 0 ? -errno : result(write(fd, "0", 1));
	close(fd);
	return err;
}

static const struct confined {
	const char *what;
	int (*begin)(void *);
} confined[] = {
	{ "user ids", fewer_ids }, { "groups", other_groups },
	{ "bounding capabilities", fewer_bounding }, { "securebits", no_root },
	{ "namespaces", other_net }, { "seccomp filters", another_filter },
	{ "Landlock domain", landlock }, { "umask", other_umask },
	{ "directory", other_directory }, { "", other_root },
	{ "descriptors", own_descriptors }, { "session's keys", own_session },
	{ "control groups", own_cgroup },
};

static struct pvas_space *confined_space;

/* In a thread: only that gives them up. */
static void *start_confined(void *arg)
{
	const struct confined *c = arg;
	char *argv[] = { "true", NULL };
	int ret;
	pid_t pid;

	if (c->begin(NULL))
		return NULL;		/* not permitted to begin with */
	ret = pvas_task_spawn(confined_space, PVAS_ANY, "/bin/true", argv, environ, NULL, &pid);
	if (ret > 0)
		end_of(pid);
	return ret != -EPERM || !strstr(pvas_error_get(), c->what) ? arg : NULL;
}

FIXTURE(confined)
{
};

FIXTURE_VARIANT(confined)
{
	int contained;
};

FIXTURE_VARIANT_ADD(confined, plain) { .contained = 0 };
FIXTURE_VARIANT_ADD(confined, contained) { .contained = 1 };

FIXTURE_SETUP(confined)
{
	if (variant->contained)
		forbid((int[]){ SYS_kcmp }, 1, EPERM);
}

FIXTURE_TEARDOWN(confined)
{
}

TEST_F(confined, caller)
{
	char *argv[] = { "true", NULL };
	pthread_t t;
	void *bad;
	pid_t pid;

	ASSERT_EQ(pvas_space_create(&confined_space, &user), 0) TH_LOG("%s", pvas_error_get());
	for (size_t i = 0; i < sizeof(confined) / sizeof(confined[0]); i++) {
		ASSERT_EQ(pthread_create(&t, NULL, start_confined, (void *)&confined[i]), 0);
		pthread_join(t, &bad);
		EXPECT_EQ(bad, NULL) TH_LOG("%s", confined[i].what);
	}
	ASSERT_GT(pvas_task_spawn(confined_space, PVAS_ANY, "/bin/true", argv, environ, NULL, &pid),
		  0) TH_LOG("%s", pvas_error_get());
	EXPECT_EQ(end_of(pid), 0);
	pvas_space_destroy(confined_space);
	rmdir(group);
}

/* A session's keys can't be used after its end, but programs run on. */
TEST(session_has_ended)
{
	char *argv[] = { "true", NULL };
	pid_t pid;

	if (own_session(NULL))
		SKIP(return, "no keys");
	ASSERT_EQ(pvas_space_create(&confined_space, &user), 0) TH_LOG("%s", pvas_error_get());
	ASSERT_EQ(syscall(SYS_keyctl, KEYCTL_REVOKE, KEY_SPEC_SESSION_KEYRING), 0);
	ASSERT_GT(pvas_task_spawn(confined_space, PVAS_ANY, "/bin/true", argv, environ, NULL, &pid),
		  0) TH_LOG("%s", pvas_error_get());
	EXPECT_EQ(end_of(pid), 0);
	pvas_space_destroy(confined_space);
}

/* ---- as many filters as the creator, but others ---- */

static pthread_barrier_t turn;

/* The result of a start, after the creation of the space */
static void *start_later(void *with_filter)
{
	char *argv[] = { "true", NULL };
	intptr_t ret;
	pid_t pid;

	if (with_filter)
		another_filter(NULL);
	pthread_barrier_wait(&turn);
	pthread_barrier_wait(&turn);
	ret = pvas_task_spawn(confined_space, PVAS_ANY, "/bin/true", argv, environ, NULL, &pid);
	if (ret > 0)
		end_of(pid);
	return (void *)ret;
}

static intptr_t start_by_older_thread(int with_filters)
{
	pthread_t t;
	void *ret;

	pthread_barrier_init(&turn, NULL, 2);
	pthread_create(&t, NULL, start_later, with_filters ? &turn : NULL);
	pthread_barrier_wait(&turn);
	if (with_filters)
		forbid((int[]){ SYS_mkdir }, 1, EACCES);
	if (pvas_space_create(&confined_space, &user))
		return -EINVAL;
	pthread_barrier_wait(&turn);
	pthread_join(t, &ret);
	return (intptr_t)ret;
}

TEST(as_many_filters)
{
	EXPECT_EQ(start_by_older_thread(1), -EPERM);
	/* The creator can. */
	pthread_barrier_init(&turn, NULL, 1);
	EXPECT_GT((intptr_t)start_later(NULL), 0) TH_LOG("%s", pvas_error_get());
	pvas_space_destroy(confined_space);
}

TEST(no_filters)
{
	EXPECT_GT(start_by_older_thread(0), 0);
	pvas_space_destroy(confined_space);
}

/* Threads that descend from the creator have its filters. */
TEST(inherited_filters)
{
	pthread_t t;
	void *ret;

	another_filter(NULL);
	ASSERT_EQ(pvas_space_create(&confined_space, &user), 0) TH_LOG("%s", pvas_error_get());
	pthread_barrier_init(&turn, NULL, 1);
	pthread_create(&t, NULL, start_later, NULL);
	pthread_join(t, &ret);
	EXPECT_GT((intptr_t)ret, 0);
	pvas_space_destroy(confined_space);
}

/* ---- the numbers of the space's descriptors are others' here ---- */

#define NUMBERS 64

static int fork_closes_nothing(void)
{
	pid_t pid = fork();
	int i;

	if (pid)
		return end_of(pid);
	for (i = 3; i < NUMBERS; i++)
		if (fcntl(i, F_GETFD) < 0)
			_exit(1);
	pvas_space_destroy(confined_space);
	for (i = 3; i < NUMBERS; i++)
		if (fcntl(i, F_GETFD) < 0)
			_exit(2);
	_exit(0);
}

/* @arg: a task. Returns whether all is right. */
static void *use_elsewhere(void *arg)
{
	pid_t pid = *(pid_t *)arg;
	int p[2], i, bad = 0;
	char c;

	if (unshare(CLONE_FILES) || pipe2(p, O_NONBLOCK))
		return NULL;
	for (i = 3; i < NUMBERS; i++)
		if (i != p[0])
			dup2(p[1], i);
	if (fork_closes_nothing())
		bad |= 1;
	if (pvas_task_list(confined_space, NULL, 0) != 1)
		bad |= 2;
	kill(pid, SIGKILL);
	end_of(pid);
	if (pvas_task_list(confined_space, NULL, 0))
		bad |= 4;
	pvas_space_destroy(confined_space);
	for (i = 3; i < NUMBERS; i++)
		if (fcntl(i, F_GETFD) < 0)
			bad |= 8;
	if (read(p[0], &c, 1) >= 0)
		bad |= 16;		/* something was written */
	return (void *)(intptr_t)bad;
}

TEST_F(confined, end_by_thread_with_descriptors)
{
	char *argv[] = { "sleep", "1000", NULL };
	int fd = dup(0);
	pthread_t t;
	void *bad;
	pid_t pid;

	close(fd);
	ASSERT_EQ(pvas_space_create(&confined_space, &user), 0) TH_LOG("%s", pvas_error_get());
	ASSERT_EQ(pvas_task_spawn(confined_space, 2, "/bin/sleep", argv, environ, NULL, &pid), 2);
	pthread_create(&t, NULL, use_elsewhere, &pid);
	pthread_join(t, &bad);
	EXPECT_EQ((intptr_t)bad, 0);
	EXPECT_EQ(dup(0), fd);		/* all are closed */
}

TEST_HARNESS_MAIN
