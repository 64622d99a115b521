// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: programs that have left the space by execve(). They don't end with the
 * space, but with the launcher.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "helpers.h"
#include "pvas.h"
#include "kselftest_harness.h"

#define SOON_MS		300
#define LATE_MS		60000

static const struct pvas_create_attr user = {
	.size = sizeof(user), .backend = PVAS_BACKEND_USER,
};

/* Returns when the task has become another program, which has written to the pipe. */
static pid_t leave_as(struct pvas_space *s, const int p[2], char **argv)
{
	struct pvas_spawn_attr attr = { .size = sizeof(attr), .set_fds = 1,
					.fds = { -1, p[1], -1 } };
	pid_t pid;
	char c;

	if (pvas_task_spawn(s, PVAS_ANY, argv[0], argv, environ, &attr, &pid) < 0 ||
	    read(p[0], &c, 1) != 1)
		return -1;
	return pid;
}

static pid_t leave(struct pvas_space *s, const int p[2])
{
	char *argv[] = { "/bin/sh", "-c", "export PVAS_EXEC=leave; exec sh -c 'echo; exec sleep 1000'", NULL };

	return leave_as(s, p, argv);
}

static int wait_until_left(struct pvas_space *s)
{
	const int64_t end = now_ms() + LATE_MS;

	while (pvas_task_list(s, NULL, 0) && now_ms() < end)
		usleep(1000);
	return pvas_task_list(s, NULL, 0);
}

static int is_alive(pid_t pid)
{
	usleep(SOON_MS * 1000);
	return waitpid(pid, NULL, WNOHANG) == 0;
}

static int end_by(pid_t pid, int sig)
{
	kill(pid, sig);
	return end_of(pid);
}

static int threads(void)
{
	char line[256];
	int n = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Threads: %d", &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

static int one_thread_is_left(void)
{
	const int64_t end = now_ms() + LATE_MS;

	while (threads() > 1 && now_ms() < end)
		usleep(1000);
	return threads() == 1;
}

FIXTURE(left)
{
	struct pvas_space *s;
	int p[2];
};

FIXTURE_SETUP(left)
{
	ASSERT_EQ(pipe2(self->p, O_CLOEXEC), 0);
	ASSERT_EQ(pvas_space_create(&self->s, &user), 0) TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(left)
{
	close(self->p[0]);
	close(self->p[1]);
}

TEST_F(left, lives_on)
{
	pid_t pid = leave(self->s, self->p);

	ASSERT_GT(pid, 0);
	EXPECT_EQ(wait_until_left(self->s), 0);
	pvas_space_destroy(self->s);
	EXPECT_TRUE(is_alive(pid));
	EXPECT_EQ(end_by(pid, SIGTERM), SIGTERM);
	EXPECT_TRUE(one_thread_is_left());
}

/* The supervisor has not seen yet that it is no task any more. */
TEST_F(left, lives_on_unseen)
{
	pid_t pid = leave(self->s, self->p);

	ASSERT_GT(pid, 0);
	pvas_space_destroy(self->s);
	EXPECT_TRUE(is_alive(pid));
	EXPECT_EQ(end_by(pid, SIGTERM), SIGTERM);
	EXPECT_TRUE(one_thread_is_left());
}

/* It has no memory then, and only other threads show that the program has another one. */
TEST_F(left, first_thread_ends)
{
	char *program = (char *)ours("user_task");
	char *argv[] = { program, "leave", program, "first_thread_ends", NULL };
	pid_t pid = leave_as(self->s, self->p, argv);

	ASSERT_GT(pid, 0);
	EXPECT_EQ(wait_until_left(self->s), 0);
	pvas_space_destroy(self->s);
	EXPECT_TRUE(is_alive(pid));
	EXPECT_EQ(end_by(pid, SIGTERM), SIGTERM);
	EXPECT_TRUE(one_thread_is_left());
}

TEST_F(left, many_and_a_task)
{
	char *argv[] = { "sleep", "1000", NULL };
	pid_t pid[40], task;
	int i;

	for (i = 0; i < 40; i++) {
		pid[i] = leave(self->s, self->p);
		ASSERT_GT(pid[i], 0);
	}
	ASSERT_GT(pvas_task_spawn(self->s, PVAS_ANY, "/bin/sleep", argv, environ, NULL, &task), 0);
	for (i = 0; i < 10; i++)
		EXPECT_EQ(end_by(pid[i], SIGTERM), SIGTERM);
	pvas_space_destroy(self->s);
	EXPECT_EQ(end_of(task), SIGKILL);
	EXPECT_TRUE(is_alive(pid[39]));
	for (i = 39; i >= 10; i--)
		EXPECT_EQ(end_by(pid[i], SIGTERM), SIGTERM);
	EXPECT_TRUE(one_thread_is_left());
}

TEST_F(left, of_two_spaces)
{
	pid_t a, b;

	a = leave(self->s, self->p);
	ASSERT_GT(a, 0);
	pvas_space_destroy(self->s);
	ASSERT_EQ(pvas_space_create(&self->s, &user), 0) TH_LOG("%s", pvas_error_get());
	b = leave(self->s, self->p);
	ASSERT_GT(b, 0);
	EXPECT_EQ(end_by(a, SIGTERM), SIGTERM);
	pvas_space_destroy(self->s);
	EXPECT_TRUE(is_alive(b));
	EXPECT_EQ(end_by(b, SIGTERM), SIGTERM);
	EXPECT_TRUE(one_thread_is_left());
}

/* The application lets the kernel reap them. */
TEST_F(left, unattended)
{
	pid_t pid;

	signal(SIGCHLD, SIG_IGN);
	pid = leave(self->s, self->p);
	ASSERT_GT(pid, 0);
	pvas_space_destroy(self->s);
	usleep(SOON_MS * 1000);
	EXPECT_EQ(kill(pid, SIGTERM), 0);
	EXPECT_TRUE(one_thread_is_left());
}

/* Its standard output is the pipe's last writer. */
TEST_F(left, dies_with_the_launcher)
{
	struct pollfd end = { .fd = self->p[0] };
	struct pvas_space *s;
	pid_t pid;

	pvas_space_destroy(self->s);
	pid = fork();
	if (!pid) {
		if (pvas_space_create(&s, &user) || leave(s, self->p) < 0)
			_exit(1);
		pvas_space_destroy(s);
		usleep(SOON_MS * 1000);
		close(self->p[1]);
		end.revents = 0;
		/* It is alive until then. */
		_exit(poll(&end, 1, 0) ? 2 : 0);
	}
	close(self->p[1]);
	EXPECT_EQ(end_of(pid), 0);
	EXPECT_EQ(poll(&end, 1, LATE_MS), 1);
	EXPECT_TRUE(end.revents & POLLHUP);
	self->p[1] = -1;
}

TEST_HARNESS_MAIN
