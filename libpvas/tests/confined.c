// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: a thread that has given up rights does not get them back by
 * starting a task.
 */
#include <linux/capability.h>
#include <linux/securebits.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "helpers.h"
#include "pvas.h"
#include "kselftest_harness.h"

static const struct pvas_create_attr user = {
	.size = sizeof(user), .backend = PVAS_BACKEND_USER,
};

static int fewer_ids(void)
{
	return syscall(SYS_setresuid, -1, 65534, -1) ? -1 : 0;
}

static int fewer_groups(void)
{
	const gid_t other = 65533;

	return (int)syscall(SYS_setgroups, 1, &other);
}

static int fewer_caps(void)
{
	return prctl(PR_CAPBSET_DROP, CAP_SYS_BOOT);
}

static int other_bits(void)
{
	return prctl(PR_SET_SECUREBITS, SECBIT_NOROOT);
}

static int other_net(void)
{
	return unshare(CLONE_NEWNET);
}

static int more_filters(void)
{
	const int nr = SYS_socket;

	forbid(&nr, 1, EPERM);
	return 0;
}

static const struct confined {
	const char *what;
	int (*begin)(void);
} confined[] = {
	{ "user ids", fewer_ids }, { "groups", fewer_groups },
	{ "bounding capabilities", fewer_caps }, { "securebits", other_bits },
	{ "namespaces", other_net }, { "seccomp filters", more_filters },
};

static struct pvas_space *confined_space;

/* In a thread: only that gives them up. */
static void *start_confined(void *arg)
{
	const struct confined *c = arg;
	char *argv[] = { "true", NULL };
	int ret;
	pid_t pid;

	if (c->begin())
		return NULL;		/* not permitted to begin with */
	ret = pvas_task_spawn(confined_space, PVAS_ANY, "/bin/true", argv, environ, NULL, &pid);
	if (ret > 0)
		end_of(pid);
	return ret != -EPERM || !strstr(pvas_error_get(), c->what) ? arg : NULL;
}

TEST(confined_caller)
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
	/* A change of all threads changes the tasks as well. */
	if (!getuid())
		ASSERT_FALSE(setgid(65534) || setuid(65534) || prctl(PR_SET_DUMPABLE, 1));
	ASSERT_GT(pvas_task_spawn(confined_space, PVAS_ANY, "/bin/true", argv, environ, NULL, &pid),
		  0) TH_LOG("%s", pvas_error_get());
	EXPECT_EQ(end_of(pid), 0);
	pvas_space_destroy(confined_space);
}

TEST_HARNESS_MAIN
