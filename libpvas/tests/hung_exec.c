// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend and a file server that doesn't answer what its execve(), its close or its memory
 * waits for: nobody else waits. Needs root, to mount a file system of its own.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "blocked.h"
#include "hung_fixture.h"
#include "user/worker.h"

/* ---- execve() ---- */

/* The launcher compares its memory with the task's, which waits for the execve(). */
static void exec_waits(struct __test_metadata *_metadata, FIXTURE_DATA(hung) *self,
		       const char *by_thread)
{
	pid_t pid;

	*self->holds_close = 1;
	ASSERT_GT(start_with(self->s, "exec", self->server.file, by_thread, &pid), 0);
	usleep(300000);
	others_go_on(_metadata, self->s);
	/* It has left the space already. */
	EXPECT_EQ(pvas_task_list(self->s, NULL, 0), 0);
	EXPECT_EQ(waitpid(pid, NULL, WNOHANG), 0);
	kill(self->server.pid, SIGKILL);
	EXPECT_EQ(end_of(pid), 0);
	destroy(_metadata, self->s);
}

TEST_F(hung, who_execs_waits_alone)
{
	exec_waits(_metadata, self, "0");
}

TEST_F(hung, whose_thread_execs_waits_alone)
{
	exec_waits(_metadata, self, "1");
}

/* A program, not a task, that calls execve() while its memory is locked; and @says so before. */
static pid_t exec_locked(const char *dir, const int says[2])
{
	char path[80];
	pid_t pid;

	snprintf(path, sizeof(path), "%s/changed", dir);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(says[1], STDOUT_FILENO);
		execl(ours("lock_task"), "lock_task", path, "exec", NULL);
		_exit(127);
	}
	close(says[1]);
	return pid;
}

/*
 * It waits for the lock of the memory that it gives up, and has already what kcmp() waits for: an
 * execve() of a program that a task has become.
 */
TEST_F(hung, who_execs_locked_memory_waits_alone)
{
	static const struct user_part nowhere;
	char text[64], c;
	int64_t begin;
	int says[2];
	pid_t pid;

	ASSERT_EQ(pipe2(says, O_CLOEXEC), 0);
	pid = exec_locked(self->server.dir, says);
	ASSERT_GT(pid, 0);
	if (read(says[0], &c, 1) != 1)
		SKIP(return, "this kernel does not wait for the server in mmap()");
	for (begin = now_ms(); !is_blocked(pid) && now_ms() - begin < 10000;)
		usleep(1000);
	begin = now_ms();
	EXPECT_EQ(user_caller_left(pid, pid), 1);
	/* As of a thread that forks, and has such a process' number by now */
	EXPECT_EQ(user_ask(self->s->priv, &nowhere, pid, "syscall", text, sizeof(text)), -ETIME);
	EXPECT_LT(now_ms() - begin, 10000);
	EXPECT_GT(user_ask(self->s->priv, &nowhere, getpid(), "syscall", text, sizeof(text)), 0);
	kill(self->server.pid, SIGKILL);
	EXPECT_EQ(end_of(pid), 0);
	destroy(_metadata, self->s);
}

/* The workers' copy of a descriptor of the launcher's is closed for ever: they go on. */
TEST_F(hung, copies_of_files_wait_alone)
{
	const struct pvas_create_attr attr = {
		.size = sizeof(attr), .backend = PVAS_BACKEND_USER,
	};
	int fd;

	pvas_space_destroy(self->s);
	fd = open(self->server.file, O_RDONLY | O_CLOEXEC);
	ASSERT_GE(fd, 0);
	*self->holds_close = 1;
	ASSERT_EQ(pvas_space_create(&self->s, &attr), 0) TH_LOG("%s", pvas_error_get());
	*self->holds_close = 0;
	close(fd);
	reader_waits(_metadata, self, "populate");
}

/* Nor does the copy of a pipe, although it comes after that one. */
TEST_F(hung, copies_of_files_hold_no_pipe)
{
	const struct pvas_create_attr attr = {
		.size = sizeof(attr), .backend = PVAS_BACKEND_USER,
	};
	struct pollfd reader = { .events = POLLIN };
	int fd, p[2], i;

	pvas_space_destroy(self->s);
	fd = open(self->server.file, O_RDONLY | O_CLOEXEC);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(pipe2(p, O_CLOEXEC), 0);
	*self->holds_close = 1;
	ASSERT_EQ(pvas_space_create(&self->s, &attr), 0) TH_LOG("%s", pvas_error_get());
	close(p[1]);
	reader.fd = p[0];
	EXPECT_EQ(poll(&reader, 1, 5000), 1);
	/* That copy is closed a little later. */
	for (i = 0; i < 500 && *self->holds_close != CLOSE_HANGS; i++)
		usleep(10000);
	EXPECT_EQ(*self->holds_close, CLOSE_HANGS);
	*self->holds_close = 0;
	close(fd);
	destroy(_metadata, self->s);
}

/* Each closes its own: at its end, too. */
TEST_F(hung, who_has_it_closed_waits_alone)
{
	pid_t pid[TASKS];
	int i;

	*self->holds_close = 1;
	all_wait(_metadata, self->s, "map", self->server.file, pid);
	kill(self->server.pid, SIGKILL);
	for (i = 0; i < TASKS; i++) {
		EXPECT_EQ(end_of(pid[i]), 0);
	}
	destroy(_metadata, self->s);
}

/*
 * A process that holds the lock of its own memory for ever, with threads that make calls. Without
 * kcmp() to identify them takes that lock, and so does to identify what a posix_spawn() starts.
 */
TEST_F(hung, who_locks_its_memory_waits_alone)
{
	const struct pvas_create_attr attr = {
		.size = sizeof(attr), .backend = PVAS_BACKEND_USER,
	};
	const int nr[] = { SYS_kcmp };
	char path[80];
	pid_t holder, other;
	int i, status;

	alarm(50);
	pvas_space_destroy(self->s);
	forbid(nr, 1, EPERM);
	ASSERT_EQ(pvas_space_create(&self->s, &attr), 0) TH_LOG("%s", pvas_error_get());
	snprintf(path, sizeof(path), "%s/changed", self->server.dir);
	ASSERT_GT(start_of(self->s, "lock_task", path, CHILDREN, NULL, &holder), 0);
	sleep(2);
	for (i = 0; i < 3; i++) {
		ASSERT_GT(start_of(self->s, "lock_task", NULL, NULL, NULL, &other), 0);
		EXPECT_EQ(end_of(other), 0);
	}
	kill(self->server.pid, SIGKILL);
	status = end_of(holder);
	destroy(_metadata, self->s);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP(return, "this kernel does not wait for the server in munmap()");
	EXPECT_EQ(status, 0);
}

TEST_HARNESS_MAIN
