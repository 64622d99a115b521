// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The launcher's side, as far as it works without the module: attributes, the vfork
 * child, and the process that becomes a space (until its ioctl is refused).
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend.h"
#include "rawsys.h"
#include "kselftest_harness.h"

/* ---- attributes ---- */

TEST(create_refuses)
{
	struct { struct pvas_create_attr a; long more; } big;
	struct pvas_create_attr a;
	struct pvas_space *s;

#define REFUSED(err_, text_, ...)					\
	do {								\
		a = (struct pvas_create_attr){ .size = sizeof(a), __VA_ARGS__ }; \
		EXPECT_EQ(pvas_space_create(&s, &a), err_);			\
		EXPECT_NE(strstr(pvas_error_get(), text_), NULL)	\
			TH_LOG("%s", pvas_error_get());		\
	} while (0)
	REFUSED(-EINVAL, "no backend has the number 3", .backend = 3);
	REFUSED(-EINVAL, "no backend has the number -1", .backend = -1);
	REFUSED(-EINVAL, "unknown flags 0x2", .flags = 2);
	REFUSED(-EINVAL, "4294967297 is not a power of two", .partition_size = 4294967297);
	REFUSED(-EINVAL, "not from 4 GiB to 8 TiB", .partition_size = 1ULL << 31);
	REFUSED(-EINVAL, "not from 4 GiB to 8 TiB", .partition_size = 1ULL << 44);
	memset(&big, 0, sizeof(big));
	big.a.size = sizeof(big);
	big.a.flags = 2;
	EXPECT_EQ(pvas_space_create(&s, &big.a), -EINVAL);	/* not -E2BIG: the tail is zero */
	big.more = 1;
	EXPECT_EQ(pvas_space_create(&s, &big.a), -E2BIG);
	big.a.size = 8;
	EXPECT_EQ(pvas_space_create(&s, &big.a), -EINVAL);
	EXPECT_EQ(pvas_space_destroy(NULL), 0);
	EXPECT_STREQ(pvas_error_get(), "");
	EXPECT_EQ(pvas_version_get(), 1 << 16);
}

TEST(no_module)
{
	struct pvas_create_attr a = { .size = sizeof(a), .backend = PVAS_BACKEND_KERNEL };
	struct pvas_space *s;

	if (!access("/dev/pvas", F_OK))
		SKIP(return, "there is one");
	EXPECT_EQ(pvas_space_create(&s, &a), -ENODEV);
	EXPECT_STREQ(pvas_error_get(), "no /dev/pvas: is the module pvas loaded?");
	ASSERT_EQ(pvas_space_create(&s, NULL), 0);	/* AUTO takes the user backend */
	EXPECT_EQ(pvas_space_get_backend(s), PVAS_BACKEND_USER);
	EXPECT_EQ(pvas_space_destroy(s), 0);
}

/* ---- the vfork child, with a backend without a space to enter ---- */

static int enter_err;

static int enter(struct pvas_spawn_call *call)
{
	call->index = 5;
	return enter_err;
}

static int plain_spawn(struct pvas_spawn_call *call)
{
	return pvas_vfork_exec(call, enter);
}

static const struct pvas_backend_ops plain = { .name = "plain", .spawn = plain_spawn };

FIXTURE(spawn)
{
	struct pvas_space space;
	struct pvas_spawn_attr attr;
	char out[4096];
	int pipe[2];
	pid_t pid;
};

FIXTURE_SETUP(spawn)
{
	memset(self, 0, sizeof(*self));
	enter_err = 0;
	self->space.ops = &plain;
	self->space.first = 1;
	self->space.last = 100;
	self->attr.size = sizeof(self->attr);
	ASSERT_EQ(pipe2(self->pipe, O_CLOEXEC), 0);
	self->attr.set_fds = 1;
	self->attr.fds[0] = self->attr.fds[2] = -1;
	self->attr.fds[1] = self->pipe[1];
}

FIXTURE_TEARDOWN(spawn)
{
	pvas_free_stack(&self->space);
	close(self->pipe[0]);
}

extern char **environ;

static int sh(struct pvas_space *space, const char *script, struct pvas_spawn_attr *attr,
	      pid_t *pid)
{
	char *argv[] = { "sh", "-c", (char *)script, NULL };

	return pvas_task_spawn(space, PVAS_ANY, "/bin/sh", argv, environ, attr, pid);
}

/* Run @script: returns its status, and stores its output in self->out. */
#define RUN(script_)							\
	({								\
		int status_ = -1;					\
		ssize_t n_;						\
									\
		EXPECT_EQ(sh(&self->space, script_, &self->attr, &self->pid), 5)	\
			TH_LOG("%s", pvas_error_get());		\
		close(self->pipe[1]);					\
		n_ = read(self->pipe[0], self->out, sizeof(self->out) - 1); \
		self->out[n_ < 0 ? 0 : n_] = 0;				\
		EXPECT_EQ(waitpid(self->pid, &status_, 0), self->pid);	\
		status_;						\
	})

TEST_F(spawn, runs)
{
	EXPECT_EQ(RUN("echo $$; exit 3"), 3 << 8);
	EXPECT_EQ(atoi(self->out), self->pid);
}

TEST_F(spawn, arguments)
{
	const int wrong[] = { 2, 2 };
	char *argv[] = { "x", NULL };
	pid_t pid;

	EXPECT_EQ(pvas_task_spawn(&self->space, 0, "/bin/true", argv, environ, NULL, &pid),
		  -EINVAL);
	EXPECT_STREQ(pvas_error_get(), "index 0 is not from 1 to 100");
	EXPECT_EQ(pvas_task_spawn(&self->space, 101, "/bin/true", argv, environ, NULL, &pid),
		  -EINVAL);
	self->attr.flags = PVAS_SPAWN_KEEP << 1;
	EXPECT_EQ(sh(&self->space, ":", &self->attr, &pid), -EINVAL);
	self->attr.flags = PVAS_SPAWN_KEEP;
	self->attr.keep = wrong;
	self->attr.nr_keep = 2;
	EXPECT_EQ(sh(&self->space, ":", &self->attr, &pid), -EINVAL);
	self->attr.nr_keep = 1;
	EXPECT_EQ(sh(&self->space, ":", &self->attr, &pid), -EINVAL);
	self->attr.nr_keep = 0;
	self->attr.size = offsetof(struct pvas_spawn_attr, keep);
	EXPECT_EQ(sh(&self->space, ":", &self->attr, &pid), -EINVAL);
	self->attr.flags = 0;
	self->attr.size = 4;
	EXPECT_EQ(sh(&self->space, ":", &self->attr, &pid), -EINVAL);
}

TEST_F(spawn, errors_are_execves)
{
	char *argv[] = { "x", NULL };
	pid_t pid;

	EXPECT_EQ(pvas_task_spawn(&self->space, 7, "/no", argv, environ, NULL, &pid), -ENOENT);
	EXPECT_EQ(pvas_task_spawn(&self->space, 7, "/etc", argv, environ, NULL, &pid), -EACCES);
	EXPECT_EQ(pvas_task_spawn(&self->space, 7, "/etc/passwd/x", argv, environ, NULL, &pid),
		  -ENOTDIR);
	enter_err = -EBUSY;
	EXPECT_EQ(pvas_task_spawn(&self->space, 7, "/bin/true", argv, environ, NULL, &pid), -EBUSY);
	EXPECT_EQ(waitpid(-1, NULL, 0), -1);	/* all were reaped */
	EXPECT_EQ(errno, ECHILD);
}

TEST_F(spawn, errno_is_left_alone)
{
	char *argv[] = { "x", NULL };

	errno = 4242;
	pvas_task_spawn(&self->space, 7, "/no", argv, environ, NULL, NULL);
	EXPECT_EQ(errno, 4242);
}

static int setup_ok(void *arg)
{
	setenv("PVAS_TEST_SETUP", "1", 1);
	*(int *)arg = 1;
	return chdir("/usr");
}

static int setup_bad(void *arg)
{
	(void)arg;
	return -EDOM;
}

TEST_F(spawn, cwd_and_setup)
{
	int called = 0;

	self->attr.cwd = "/proc";
	self->attr.setup = setup_bad;
	EXPECT_EQ(sh(&self->space, "pwd", &self->attr, NULL), -EDOM);
	EXPECT_STREQ(pvas_error_get(), "the setup function failed");
	self->attr.cwd = "/no/where";
	EXPECT_EQ(sh(&self->space, "pwd", &self->attr, NULL), -ENOENT);
	EXPECT_STREQ(pvas_error_get(), "can't change to directory /no/where");
	self->attr.cwd = "/proc";
	self->attr.setup = setup_ok;
	self->attr.setup_arg = &called;
	EXPECT_EQ(RUN("pwd"), 0);
	EXPECT_STREQ(self->out, "/usr\n");
	EXPECT_EQ(called, 1);
}

TEST_F(spawn, cwd)
{
	self->attr.cwd = "/proc";
	EXPECT_EQ(RUN("pwd"), 0);
	EXPECT_STREQ(self->out, "/proc\n");
}

/* 1 and 2 are swapped, and a descriptor that stays loses close-on-exec. */
TEST_F(spawn, swapped_fds)
{
	int saved[2] = { fcntl(1, F_DUPFD_CLOEXEC, 10), fcntl(2, F_DUPFD_CLOEXEC, 10) };
	int other[2], status;
	char buf[16] = "";

	ASSERT_EQ(pipe2(other, O_CLOEXEC), 0);
	dup3(self->pipe[1], 1, O_CLOEXEC);
	dup3(other[1], 2, O_CLOEXEC);
	self->attr.fds[1] = 2;
	self->attr.fds[2] = 1;
	status = sh(&self->space, "echo o; echo e >&2", &self->attr, &self->pid);
	dup2(saved[0], 1);
	dup2(saved[1], 2);
	EXPECT_EQ(status, 5);
	waitpid(self->pid, &status, 0);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(read(other[0], buf, sizeof(buf)), 2);
	EXPECT_EQ(buf[0], 'o');
	EXPECT_EQ(read(self->pipe[0], buf, sizeof(buf)), 2);
	EXPECT_EQ(buf[0], 'e');
}

TEST_F(spawn, same_fd_keeps_open)
{
	int saved = fcntl(1, F_DUPFD_CLOEXEC, 10), status;

	dup3(self->pipe[1], 1, O_CLOEXEC);
	self->attr.fds[1] = 1;
	status = sh(&self->space, "echo o", &self->attr, &self->pid);
	dup2(saved, 1);
	EXPECT_EQ(status, 5);
	waitpid(self->pid, &status, 0);
	EXPECT_EQ(read(self->pipe[0], self->out, 16), 2);
}

TEST_F(spawn, bad_fd)
{
	self->attr.fds[0] = 999;
	EXPECT_EQ(sh(&self->space, ":", &self->attr, NULL), -EBADF);
	self->attr.fds[0] = 0;
	close(0);
	EXPECT_EQ(sh(&self->space, ":", &self->attr, NULL), -EBADF);
}

static void ignore(int sig)
{
	(void)sig;
}

/* Signals that are ignored, caught or blocked here have the default action there, unblocked. */
TEST_F(spawn, signals)
{
	sigset_t set, after;

	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, ignore);
	signal(SIGRTMAX, SIG_IGN);
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	EXPECT_EQ(RUN("sed -n '/Sig[BIC]/p' /proc/self/status"), 0);
	EXPECT_STREQ(self->out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
		     "SigCgt:\t0000000000000000\n");
	sigprocmask(SIG_SETMASK, NULL, &after);
	EXPECT_EQ(sigismember(&after, SIGTERM), 1);	/* unchanged in the launcher */
	EXPECT_TRUE(signal(SIGUSR2, SIG_DFL) == ignore);
}

TEST_F(spawn, sigchld_ignored)
{
	char *argv[] = { "x", NULL };

	signal(SIGCHLD, SIG_IGN);
	EXPECT_EQ(pvas_task_spawn(&self->space, 7, "/no", argv, environ, NULL, NULL), -ENOENT);
	EXPECT_EQ(sh(&self->space, ":", &self->attr, NULL), 5);
}

static int setup_die(void *arg)
{
	(void)arg;
	kill((pid_t)pvas_raw0(__NR_getpid), SIGKILL);
	return 0;
}

TEST_F(spawn, killed_before_exec)
{
	self->attr.setup = setup_die;
	EXPECT_EQ(sh(&self->space, ":", &self->attr, NULL), -ECHILD);
}

static void *spawn_many(void *arg)
{
	struct pvas_space space = *(struct pvas_space *)arg;
	char *argv[] = { "true", NULL };
	long bad = 0;
	int i, status;
	pid_t pid;

	for (i = 0; i < 50; i++) {
		if (pvas_task_spawn(&space, 7, "/bin/true", argv, environ, NULL, &pid) != 5 ||
		    waitpid(pid, &status, 0) != pid || status)
			bad++;
	}
	pvas_free_stack(&space);
	return (void *)bad;
}

TEST_F(spawn, threads_with_a_handle_each)
{
	pthread_t t[3];
	void *bad;
	int i;

	for (i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, spawn_many, &self->space);
	for (i = 0; i < 3; i++) {
		pthread_join(t[i], &bad);
		EXPECT_EQ(bad, NULL);
	}
}

/* ---- the process that becomes a space ---- */

/* /dev/null refuses the ioctl, after everything has been mapped and unmapped. */
static int make_with_null(void)
{
	struct pvas_create create = { .size = sizeof(create), .shift = 36 };
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int err = pvas_create_mm(fd, &create);

	close(fd);
	return err;
}

TEST(make)
{
	int i;

	for (i = 0; i < 20; i++)
		ASSERT_EQ(make_with_null(), -ENOTTY) TH_LOG("%s", pvas_error_get());
	EXPECT_NE(strstr(pvas_error_get(), "the pvas module can't make a space"), NULL);
	EXPECT_EQ(waitpid(-1, NULL, __WALL), -1);	/* nothing is left behind */
}

static int chld;

static void on_chld(int sig)
{
	(void)sig;
	chld++;
}

TEST(make_and_sigchld)
{
	signal(SIGCHLD, SIG_IGN);
	EXPECT_EQ(make_with_null(), -ENOTTY);
	signal(SIGCHLD, on_chld);
	EXPECT_EQ(make_with_null(), -ENOTTY);
	EXPECT_EQ(chld, 0);
}

static void *spin(void *stop)
{
	while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED))
		free(malloc(100000));
	return NULL;
}

TEST(make_from_a_threaded_process)
{
	pthread_t t[2];
	int stop = 0, i;

	for (i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, spin, &stop);
	for (i = 0; i < 20; i++)
		EXPECT_EQ(make_with_null(), -ENOTTY);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
}

/* Map a page there, if nothing is mapped yet. */
static void block(unsigned long at)
{
	mmap((void *)at, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

/* Mappings of the launcher occupy the first places for the header. */
TEST(make_around_other_mappings)
{
	unsigned long at = 256UL << 20;

	block(at);
	EXPECT_EQ(make_with_null(), -ENOTTY);
	for (; at < 1UL << 32; at += 256UL << 20)
		block(at);
	EXPECT_EQ(make_with_null(), -ENOMEM);
	EXPECT_STREQ(pvas_error_get(), "no room for the space header below 4 GiB");
}

TEST_HARNESS_MAIN
