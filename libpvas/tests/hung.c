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

#include "blocked.h"
#include "helpers.h"
#include "hung_launcher.h"
#include "hung_server.h"
#include "pvas.h"
#include "user/worker.h"
#include "kselftest_harness.h"

#define TASKS	8	/* more than there are workers at first */
#define CHILDREN "80"	/* more than there can be workers */

/*
 * Of this program and of the library in it. A wait until a time of this clock, which may be set
 * back, takes too long.
 */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	int err = (int)syscall(SYS_clock_gettime, clock, now);

	if (clock == CLOCK_REALTIME)
		now->tv_sec += 3600;
	return err;
}

/* ---- tasks ---- */

FIXTURE(hung)
{
	struct hung_server server;
	volatile int *holds_close;
	struct pvas_space *s;
};

FIXTURE_SETUP(hung)
{
	const char *why;

	self->holds_close = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	why = hung_server_start(&self->server, self->holds_close);
	if (why)
		SKIP(return, "%s", why);
	ASSERT_EQ(pvas_space_create(&self->s, &(struct pvas_create_attr){
			.size = sizeof(struct pvas_create_attr), .backend = PVAS_BACKEND_USER }), 0)
		TH_LOG("%s", pvas_error_get());
}

FIXTURE_TEARDOWN(hung)
{
	hung_server_stop(&self->server);
}

static int start_with(struct pvas_space *s, const char *what, const char *arg, const char *arg2,
		      pid_t *pid)
{
	return start_of(s, "hung_task", what, arg, arg2, pid);
}

static int start(struct pvas_space *s, const char *what, const char *arg, pid_t *pid)
{
	return start_with(s, what, arg, NULL, pid);
}

/* Tasks start, run and end. */
static void others_go_on(struct __test_metadata *_metadata, struct pvas_space *s)
{
	pid_t other;
	int i;

	for (i = 0; i < 3; i++) {
		ASSERT_GT(start_of(s, "peer_task", "own-state", NULL, NULL, &other), 0);
		EXPECT_EQ(end_of(other), 0);
	}
	ASSERT_GT(start_of(s, "peer_task", "descriptors", NULL, NULL, &other), 0);
	EXPECT_EQ(end_of(other), 0);
}

static void all_wait(struct __test_metadata *_metadata, struct pvas_space *s, const char *what,
		     const char *file, pid_t pid[TASKS])
{
	int i;

	for (i = 0; i < TASKS; i++) {
		ASSERT_GT(start(s, what, file, &pid[i]), 0);
	}
	usleep(300000);
	others_go_on(_metadata, s);
	for (i = 0; i < TASKS; i++) {
		EXPECT_EQ(waitpid(pid[i], NULL, WNOHANG), 0);
		kill(pid[i], SIGKILL);
	}
}

static void destroy(struct __test_metadata *_metadata, struct pvas_space *s)
{
	int64_t begin = now_ms();

	pvas_space_destroy(s);
	EXPECT_LT(now_ms() - begin, 60000);
}

/* A worker fills the mapping; or it reads the name of a link in one. */
static void reader_waits(struct __test_metadata *_metadata, FIXTURE_DATA(hung) *self,
			 const char *what)
{
	pid_t pid[TASKS];
	int i;

	all_wait(_metadata, self->s, what, self->server.file, pid);
	for (i = 0; i < TASKS; i++) {
		EXPECT_EQ(end_of(pid[i]), SIGKILL);
	}
	others_go_on(_metadata, self->s);
	/* No other task gets their partitions: workers are going to store there. */
	EXPECT_EQ(pvas_task_list(self->s, NULL, 0), TASKS);
	destroy(_metadata, self->s);
}

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
