// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: a task has exactly the rights that execve() would have left to it, and
 * those of the space's creator. Most of these tests need root.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "pvas.h"
#include "rights.h"
#include "kselftest_harness.h"

static const struct pvas_create_attr user = {
	.size = sizeof(user), .backend = PVAS_BACKEND_USER,
};

/* The exit status of rights_task; or -errno, if it could not be started. */
static int run_with(struct pvas_space *s, int (*setup)(void *), unsigned int flags)
{
	struct pvas_spawn_attr attr = { .size = sizeof(attr), .flags = flags, .setup = setup };
	char *argv[] = { (char *)ours("rights_task"), NULL };
	pid_t pid;
	int ret = pvas_task_spawn(s, PVAS_ANY, argv[0], argv, environ, &attr, &pid);

	return ret < 0 ? ret : end_of(pid);
}

static int run(struct pvas_space *s, int (*setup)(void *))
{
	return run_with(s, setup, 0);
}

/* ---- the creator ---- */

#define UNSUPPORTED	77

/* Exits with the error of create, or the status of a task. */
static void create_after(int (*change)(void *))
{
	struct pvas_space *s;
	int ret;

	if (change && change(NULL))
		_exit(UNSUPPORTED);
	prctl(PR_SET_DUMPABLE, 1);
	ret = pvas_space_create(&s, &user);
	if (ret == -EPERM && !strstr(pvas_error_get(), "execve() would change"))
		ret = -EINVAL;
	if (ret)
		_exit(-ret);
	ret = run(s, NULL);
	if (ret)
		fprintf(stderr, "# %d: %s\n", ret, pvas_error_get());
	pvas_space_destroy(s);
	_exit(ret ? 99 : 0);
}

static int try_after(int (*change)(void *))
{
	pid_t pid = fork();
	int status;

	if (!pid)
		create_after(change);
	status = end_of(pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(rights_that_exec_would_change)
{
	static int (*const changes[])(void *) = {
		mixed_uids, saved_uid, other_fsuid, mixed_gids, saved_gid, other_fsgid,
		fewer_permitted, fewer_effective, fewer_bounding, no_root, kept_caps,
	};
	size_t i;

	if (getuid())
		SKIP(return, "must be root");
	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		EXPECT_EQ(try_after(changes[i]), EPERM) TH_LOG("change %zu", i);
}

/* execve() gives no capability back to a process with no_new_privs. */
static int for_good(void *arg)
{
	return result(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) ?: fewer_permitted(NULL);
}

static int permitted_and_bounding(void *arg)
{
	return fewer_bounding(NULL) ?: fewer_permitted(NULL);
}

TEST(rights_that_exec_would_keep)
{
	static int (*const changes[])(void *) = {
		NULL, other_groups, other_uid, ambient_caps, for_good, permitted_and_bounding,
		other_net, other_mounts, another_filter, landlock,
	};
	size_t i;

	if (getuid())
		SKIP(return, "must be root");
	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		int ret = try_after(changes[i]);

		EXPECT_TRUE(ret == 0 || (changes[i] == landlock && ret == UNSUPPORTED))
			TH_LOG("change %zu: %d", i, ret);
	}
}

/* ---- between the creation and a start ---- */

static int all_change_euid(void)
{
	return seteuid(NOBODY);
}

static int all_change_saved_uid(void)
{
	return setresuid(-1, -1, NOBODY);
}

static int all_change_gid(void)
{
	return setegid(NOBODY);
}

static int all_change_user(void)
{
	return setresuid(NOBODY, NOBODY, NOBODY);
}

static int all_become_ordinary(void)
{
	return setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY) ? -1 : 0;
}

/* libc's functions change all threads, so also those that make tasks. */
TEST(rights_that_change_later)
{
	static int (*const changes[])(void) = {
		all_change_euid, all_change_saved_uid, all_change_gid, all_change_user,
		all_become_ordinary,
	};
	struct pvas_space *s;
	size_t i;

	if (getuid())
		SKIP(return, "must be root");
	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		pid_t pid = fork();

		if (!pid) {
			if (pvas_space_create(&s, &user) || run(s, NULL) || changes[i]())
				_exit(1);
			prctl(PR_SET_DUMPABLE, 1);
			_exit(run(s, NULL) != -EPERM);
		}
		EXPECT_EQ(end_of(pid), 0) TH_LOG("change %zu", i);
	}
}

TEST(not_dumpable_any_more)
{
	struct pvas_space *s;

	if (!getuid())
		ASSERT_EQ(all_become_ordinary(), 0);
	prctl(PR_SET_DUMPABLE, 1);
	ASSERT_EQ(pvas_space_create(&s, &user), 0) TH_LOG("%s", pvas_error_get());
	EXPECT_EQ(run(s, NULL), 0);
	prctl(PR_SET_DUMPABLE, 0);
	EXPECT_EQ(run(s, NULL), -EPERM);
	EXPECT_NE(strstr(pvas_error_get(), "not dumpable"), NULL);
	prctl(PR_SET_DUMPABLE, 1);
	EXPECT_EQ(run(s, NULL), 0);
	pvas_space_destroy(s);
}

/* ---- the setup function ---- */

FIXTURE(setup)
{
	struct pvas_space *s;
};

FIXTURE_VARIANT(setup)
{
	int ordinary;
	int contained;
};

FIXTURE_VARIANT_ADD(setup, own_user) { .ordinary = 0 };
FIXTURE_VARIANT_ADD(setup, ordinary_user) { .ordinary = 1 };
FIXTURE_VARIANT_ADD(setup, container) { .contained = 1 };

FIXTURE_SETUP(setup)
{
	if (variant->ordinary && !getuid() && (setgid(NOBODY) || setuid(NOBODY)))
		SKIP(return, "can't become an ordinary user");
	prctl(PR_SET_DUMPABLE, 1);
	if (variant->contained)
		forbid((int[]){ SYS_kcmp, SYS_pidfd_getfd }, 2, EPERM);
	ASSERT_EQ(pvas_space_create(&self->s, &user), 0) TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(setup)
{
	pvas_space_destroy(self->s);
}

static const struct change {
	int (*make)(void *arg);
	const char *what;
	int ordinary;		/* any user may do that */
} forbidden[] = {
	{ other_uid, "user ids" }, { mixed_uids, "user ids" }, { saved_uid, "user ids" },
	{ other_fsuid, "user ids" }, { mixed_gids, "group ids" }, { saved_gid, "group ids" },
	{ other_fsgid, "group ids" }, { other_groups, "groups" },
	{ fewer_permitted, "permitted" }, { fewer_effective, "effective" },
	{ inheritable, "inheritable" }, { fewer_bounding, "bounding" },
	{ kept_caps, "user ids" }, { no_root, "securebits" }, { other_net, "namespaces" },
	{ other_mounts, "namespaces" }, { other_pids, "namespaces" },
	{ another_filter, "seccomp filters", 1 }, { landlock, "Landlock domain", 1 },
};

TEST_F(setup, must_keep_rights)
{
	size_t i;

	for (i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
		const struct change *c = &forbidden[i];
		int ret;

		if (geteuid() && !c->ordinary)
			continue;
		ret = run(self->s, c->make);
		if (ret == -ENOTSUP)
			continue;
		EXPECT_EQ(ret, -EPERM) TH_LOG("change %zu", i);
		EXPECT_NE(strstr(pvas_error_get(), c->what), NULL)
			TH_LOG("change %zu: %s", i, pvas_error_get());
		EXPECT_EQ(pvas_task_list(self->s, NULL, 0), 0);
	}
	EXPECT_EQ(run(self->s, NULL), 0) TH_LOG("%s", pvas_error_get());
}

static int change_directory(void *arg)
{
	return result(syscall(SYS_chdir, "/usr"));
}

static int change_descriptors(void *arg)
{
	return result(syscall(SYS_close_range, 3, ~0U, 0)) ?: result(syscall(SYS_dup2, 0, 9));
}

static int change_limits(void *arg)
{
	const struct rlimit none = { 0, 0 };

	return result(syscall(SYS_prlimit64, 0, RLIMIT_CORE, &none, NULL));
}

static int change_priority(void *arg)
{
	return result(syscall(SYS_setpriority, PRIO_PROCESS, 0, 10));
}

static int change_affinity(void *arg)
{
	unsigned long mask[16];
	long n = syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask);
	int i = 0;

	while (i < 16 && !mask[i])
		i++;
	mask[i] &= -mask[i];
	return n < 0 ? result(n) : result(syscall(SYS_sched_setaffinity, 0, n, mask));
}

static int change_signals(void *arg)
{
	const uint64_t none = 0;

	return result(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8));
}

static int change_umask(void *arg)
{
	syscall(SYS_umask, 027);
	return 0;
}

static int change_session(void *arg)
{
	return result(syscall(SYS_setsid));
}

static int end_request_for_a_signal(void *arg)
{
	return result(prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0)) ?:
	       result(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
}

/* The kernel forgets the request for a signal then. */
static int change_user_and_back(void *arg)
{
	if (geteuid())
		return 0;
	return result(syscall(SYS_setresuid, -1, NOBODY, -1)) ?:
	       result(syscall(SYS_setresuid, -1, 0, -1));
}

static int change_root(void *arg)
{
	return geteuid() ? 0 : result(syscall(SYS_chroot, "/"));
}

TEST_F(setup, may_change_the_rest)
{
	static int (*const allowed[])(void *) = {
		change_directory, change_descriptors, change_limits, change_priority,
		change_affinity, change_signals, change_umask, change_session,
		end_request_for_a_signal, change_user_and_back, change_root,
	};
	size_t i;

	for (i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		EXPECT_EQ(run(self->s, allowed[i]), 0)
			TH_LOG("change %zu: %s", i, pvas_error_get());
		/* It gets the same rights without a comparison. */
		EXPECT_EQ(run_with(self->s, allowed[i], PVAS_SPAWN_SAME_RIGHTS), 0)
			TH_LOG("change %zu: %s", i, pvas_error_get());
	}
}

static void *start_with_own_descriptors(void *space)
{
	if (unshare(CLONE_FILES))
		return (void *)1L;
	return (void *)(long)-run_with(space, NULL, PVAS_SPAWN_SAME_RIGHTS);
}

/* This is no right: the task would have others. */
TEST_F(setup, promise_does_not_hold_for_descriptors)
{
	pthread_t t;
	void *ret;

	ASSERT_EQ(pthread_create(&t, NULL, start_with_own_descriptors, self->s), 0);
	ASSERT_EQ(pthread_join(t, &ret), 0);
	EXPECT_EQ((long)ret, EPERM);
}

TEST_HARNESS_MAIN
