// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend and a file server that doesn't answer: who maps its file
 * waits, nobody else. Needs root, to mount a file system of its own.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hung_fixture.h"

/* ---- tasks ---- */

TEST_F(hung, who_maps_it_waits_alone)
{
	reader_waits(_metadata, self, "populate");
}

TEST_F(hung, who_names_a_link_in_it_waits_alone)
{
	reader_waits(_metadata, self, "name");
}

/* Of a task one thread waits, and not the others. */
static void thread_waits(struct __test_metadata *_metadata, FIXTURE_DATA(hung) *self,
			 const char *what)
{
	pid_t pid;

	ASSERT_GT(start(self->s, what, self->server.file, &pid), 0);
	alarm(40);
	EXPECT_EQ(end_of(pid), 0);
	others_go_on(_metadata, self->s);
	destroy(_metadata, self->s);
}

TEST_F(hung, who_maps_its_pages_anew_waits_alone)
{
	thread_waits(_metadata, self, "remap");
}

TEST_F(hung, who_locks_its_pages_waits_alone)
{
	thread_waits(_metadata, self, "beside-locked");
}

/* A worker keeps its partition: whoever begins to wait for that at once is woken. */
static int kill_in_worker(struct __test_metadata *_metadata, FIXTURE_DATA(hung) *self)
{
	pid_t pid;
	int index = start(self->s, "locked", self->server.file, &pid);

	EXPECT_GT(index, 0);
	usleep(300000);
	EXPECT_EQ(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGKILL);
	EXPECT_EQ(end_of(pid), SIGKILL);
	/* No other task begins or ends meanwhile: that would wake it. */
	alarm(40);
	return index;
}

TEST_F(hung, who_lists_tasks_waits_seconds)
{
	kill_in_worker(_metadata, self);
	EXPECT_EQ(pvas_task_list(self->s, NULL, 0), 1);
	destroy(_metadata, self->s);
}

static void *list_tasks(void *s)
{
	pvas_task_list(s, NULL, 0);
	return NULL;
}

/* A thread that is cancelled while it waits leaves no lock behind. */
TEST_F(hung, who_is_cancelled_holds_up_nobody)
{
	pthread_t lister;
	void *result;

	kill_in_worker(_metadata, self);
	ASSERT_EQ(pthread_create(&lister, NULL, list_tasks, self->s), 0);
	usleep(100000);
	pthread_cancel(lister);
	pthread_join(lister, &result);
	EXPECT_EQ(pvas_task_list(self->s, NULL, 0), 1);
	destroy(_metadata, self->s);
}

TEST_F(hung, who_wants_the_partition_waits_seconds)
{
	unsigned int index = (unsigned int)kill_in_worker(_metadata, self);
	char *argv[] = { (char *)"true", NULL };
	pid_t pid;

	EXPECT_EQ(pvas_task_spawn(self->s, index, "/bin/true", argv, environ, NULL, &pid), -EBUSY);
	destroy(_metadata, self->s);
}

/* It can't be killed before the server answers. */
TEST_F(hung, who_reads_it_outlives_the_space)
{
	char *argv[] = { (char *)"/bin/cat", self->server.file, NULL };
	pid_t pid;

	ASSERT_GT(pvas_task_spawn(self->s, PVAS_ANY, argv[0], argv, environ, NULL, &pid), 0);
	usleep(500000);
	alarm(50);
	destroy(_metadata, self->s);
	EXPECT_EQ(waitpid(pid, NULL, WNOHANG), 0);
	kill(self->server.pid, SIGKILL);
	EXPECT_EQ(end_of(pid), SIGKILL);
}

/* Processes that are no tasks, as many as they like. */
TEST_F(hung, who_has_left_waits_alone)
{
	pid_t pid;

	ASSERT_GT(start_with(self->s, "children-pass", self->server.file, CHILDREN, &pid), 0);
	usleep(500000);
	others_go_on(_metadata, self->s);
	EXPECT_EQ(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGKILL);
	EXPECT_EQ(end_of(pid), SIGKILL);
	others_go_on(_metadata, self->s);
	destroy(_metadata, self->s);
}

/* ---- whose arguments nobody can read ---- */

/* They can't keep what others need, although nobody can be found who does. */
TEST_F(hung, who_has_died_waits_alone)
{
	pid_t pid;

	ASSERT_GT(start_with(self->s, "children-die", self->server.file, "40", &pid), 0);
	alarm(40);
	EXPECT_EQ(end_of(pid), 0);
	destroy(_metadata, self->s);
}

static int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int n = -2;	/* not . and .. */

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* The threads of the space end although what they have asked for never comes. */
TEST_F(hung, whose_argument_is_in_it_keeps_no_thread)
{
	int tries = 500;
	pid_t pid;

	ASSERT_GT(start_with(self->s, "children-pass", self->server.file, "6", &pid), 0);
	usleep(1000000);
	kill(pid, SIGKILL);
	EXPECT_EQ(end_of(pid), SIGKILL);
	EXPECT_GT(threads(), 1);
	destroy(_metadata, self->s);
	/* A thread that has been joined is listed a moment longer. */
	while (threads() > 1 && --tries)
		usleep(10000);
	EXPECT_EQ(threads(), 1);
}

/* A task writes a byte to its standard output. */
static int start_and_wait(struct pvas_space *s, const char *what, const char *path, pid_t *pid)
{
	int says[2], out = dup(STDOUT_FILENO), index;
	char c;

	if (pipe2(says, O_CLOEXEC) || dup2(says[1], STDOUT_FILENO) < 0)
		return -1;
	index = start(s, what, path, pid);
	dup2(out, STDOUT_FILENO);
	close(out);
	close(says[1]);
	if (index > 0 && read(says[0], &c, 1) != 1)
		index = -1;
	close(says[0]);
	return index;
}

/* The processes that read arguments have no copy of such a task. */
TEST_F(hung, who_is_copied_waits_alone)
{
	char path[80];
	pid_t pid, other;

	snprintf(path, sizeof(path), "%s/changed", self->server.dir);
	ASSERT_GT(start_and_wait(self->s, "be-copied", path, &pid), 0);
	alarm(40);
	ASSERT_GT(start_with(self->s, "reads-link", path, NULL, &other), 0);
	EXPECT_EQ(end_of(other), 0);
	kill(self->server.pid, SIGKILL);
	kill(pid, SIGKILL);
	EXPECT_EQ(end_of(pid), SIGKILL);
	destroy(_metadata, self->s);
}

/* Nor is a launcher kept that is killed, with this task: a program and its arguments. */
static void keeps_no_launcher(struct __test_metadata *_metadata, FIXTURE_DATA(hung) *self,
			      const char *const task[4])
{
	pvas_space_destroy(self->s);
	EXPECT_TRUE(launcher_can_be_killed(task));
}

TEST_F(hung, whose_argument_is_in_it_keeps_no_launcher)
{
	const char *task[4] = { "hung_task", "children-pass", self->server.file, "6" };

	keeps_no_launcher(_metadata, self, task);
}

/* To answer it, its root is asked for /proc. */
TEST_F(hung, whose_root_it_is_keeps_no_launcher)
{
	const char *task[4] = { "roots_task", "exe", self->server.dir };

	keeps_no_launcher(_metadata, self, task);
}

TEST_F(hung, whose_own_root_it_is_keeps_no_launcher)
{
	const char *task[4] = { "roots_task", "exe-itself", self->server.dir };

	keeps_no_launcher(_metadata, self, task);
}

/* It could be a message queue, or have huge pages. */
TEST_F(hung, who_maps_a_bare_file_keeps_no_launcher)
{
	char file[64];
	const char *task[4] = { "hung_task", "map", file };

	snprintf(file, sizeof(file), "%s/bare", self->server.dir);
	keeps_no_launcher(_metadata, self, task);
}

TEST_HARNESS_MAIN
