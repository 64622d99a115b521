// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exec of a task that would have to wait for what may never come: for a file server that does
 * not answer, or for the child of another thread that uses the task's memory.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "silent_fuse.h"

#define SOON_MS		10000	/* on a busy machine; a hang lasts longer */
#define CHILD_S		20

/* ---- a file server ---- */

FIXTURE(silent) {
	const char *dir;
	pid_t server;
	struct pvas_space *space;
};

FIXTURE_SETUP(silent)
{
	self->server = 0;
	PT_NEED_DEVICE();
	PT_NEED_ROOT();
	self->dir = pt_tmpdir();
	self->server = fuse_begin(self->dir, FUSE_NEVER_OPENS);
	if (self->server < 0)
		SKIP(return, "no FUSE: %s", strerror(-self->server));
	self->space = PT_SPACE();
}

FIXTURE_TEARDOWN(silent)
{
	if (self->server <= 0)
		return;
	pvas_space_destroy(self->space);
	fuse_end(self->server, self->dir);
	pt_remove_tmpdir();
}

/* The server stops when somebody opens the file. */
static bool is_being_opened(pid_t server)
{
	return fuse_has_stopped(server) && !kill(server, SIGCONT);
}

/* As pt_wait(), or -ETIME: then it is killed. */
static int ends_soon(pid_t pid)
{
	int status, i;

	for (i = 0; i < SOON_MS; i += 10, usleep(10000))
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
	pt_kill(pid);
	return -ETIME;
}

static void *exec_silent_file(void *arg)
{
	execl(getenv(FUSE_FILE_ENV), "x", (char *)NULL);
	CHECK_EQ(0, errno);
	return arg;
}

TASK(exec_silent)
{
	exec_silent_file(NULL);
}

/* a signal ends the task while its exec waits for the program to be opened */
TEST_F(silent, ended_by_signal)
{
	pid_t pid = pt_start_task(self->space, 1, "exec_silent");

	ASSERT_LT(0, pid);
	ASSERT_TRUE(is_being_opened(self->server));
	EXPECT_EQ(0, kill(pid, SIGTERM));
	EXPECT_EQ(256 + SIGTERM, ends_soon(pid));
}

TASK(exec_silent_by_thread)
{
	pthread_t t;

	CHECK_EQ(0, pthread_create(&t, NULL, exec_silent_file, NULL));
	CHECK_EQ('g', pt_hear(atoi(pt_args[0])));
	pt_exec_as("check_outside_if_user", NULL);
}

/* and another thread's exec does not wait for that one: with the user backend it leaves */
TEST_F(silent, exec_of_another_thread)
{
	int go[2];
	pid_t pid;

	/* As with any process before 6.8: an execve holds its mutex while it opens the file. */
	if (pt_kernel_before(6, 8))
		PT_NEED_USER("the execve of this kernel waits");
	ASSERT_EQ(0, pipe(go));
	pid = pt_start_task_fd(self->space, 1, "exec_silent_by_thread", go[0]);
	ASSERT_LT(0, pid);
	ASSERT_TRUE(is_being_opened(self->server));
	ASSERT_EQ(1, write(go[1], "g", 1));
	EXPECT_EQ(0, ends_soon(pid));
}

TASK(end_well)
{
}

static void *leave_by_link(void *path)
{
	char *argv[] = { (char *)path, "--task", "end_well", NULL };
	char *envp[] = { "PVAS_EXEC=leave", NULL };

	execve(path, argv, envp);
	CHECK_EQ(0, errno);
	return NULL;
}

TASK(exec_twice_beside_leaving)
{
	char *argv[] = { "x", NULL };
	pthread_t t;

	CHECK_EQ(0, pthread_create(&t, NULL, leave_by_link, getenv(FUSE_FILE_ENV)));
	CHECK_EQ('g', pt_hear(atoi(pt_args[0])));
	execve("/nonexistent", argv, environ);
	CHECK_EQ(ENOENT, errno);
	pt_exec_as("check_outside_if_user", NULL);
}

/* another one that fails is no reason to forget the exec that is leaving: a signal would end it */
TEST_F(silent, leaving_beside_two_execs)
{
	char link[256];
	int go[2];
	pid_t pid;

	snprintf(link, sizeof(link), "%s/%s", self->dir, FUSE_LINK);
	ASSERT_EQ(0, setenv(FUSE_FILE_ENV, link, 1));
	ASSERT_EQ(0, pipe(go));
	pid = pt_start_task_fd(self->space, 1, "exec_twice_beside_leaving", go[0]);
	ASSERT_LT(0, pid);
	ASSERT_TRUE(fuse_has_stopped(self->server));
	ASSERT_EQ(1, write(go[1], "g", 1));
	/* For the signal to be sent before, if it is; nothing waits for that. */
	usleep(300000);
	ASSERT_EQ(0, kill(self->server, SIGCONT));
	EXPECT_EQ(0, ends_soon(pid));
}

/* ---- a child ---- */

static volatile int begins;
static int delay_us;

static void *vfork_in_time(void *arg)
{
	const struct timespec t = { CHILD_S, 0 };
	int64_t end;

	while (!begins)
		;
	end = now_ms() + delay_us / 1000;
	while (now_ms() < end)
		;
	if (!vfork()) {
		syscall(SYS_nanosleep, &t, NULL);
		_exit(0);
	}
	return arg;
}

TASK(check_soon)
{
	CHECK(now_ms() - atoll(pt_args[0]) < SOON_MS);
}

/* A child begins at some moment of the exec, which takes longer with many threads. */
TASK(exec_beside_vfork)
{
	pthread_t t;

	delay_us = atoi(pt_args[0]);
	CHECK_EQ(0, pthread_create(&t, NULL, vfork_in_time, NULL));
	pt_start_threads(100);
	usleep(50000);
	begins = 1;
	pt_exec_as("check_soon", pt_number(now_ms()));
}

/* an exec does not wait for a child that another thread begins in the meantime */
PVAS_TEST(beside_new_child)
{
	static const char *const delays[] = { "0", "1000", "2000", "3000", "5000", "8000" };
	char *argv[] = { (char *)pt_self(), "--task", "exec_beside_vfork", NULL, NULL };
	struct pvas_space *space;
	size_t i;
	pid_t pid;

	PT_NEED_USER("the exec waits for the child");
	space = PT_SPACE();
	for (i = 0; i < PT_ARRAY_SIZE(delays); i++) {
		argv[3] = (char *)delays[i];
		ASSERT_LT(0, pvas_task_spawn(space, 1, argv[0], argv, environ, NULL, &pid));
		EXPECT_EQ(0, pt_wait(pid)) TH_LOG("after %s us", delays[i]);
	}
	pvas_space_destroy(space);
}

/* ---- an exec that leaves, in the middle of loading a program ---- */

#define SHARED		(64UL << 20)
#define SMALL_KIB	((long)(SHARED >> 12))

static long shmem_kib(void)
{
	return pt_file_kib("/proc/meminfo", "Shmem:");
}

static void fill_shared(void)
{
	CHECK(mmap(NULL, SHARED, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0) != MAP_FAILED);
}

static void leave_for_silent_program(void)
{
	setenv("PVAS_EXEC", "leave", 1);
	execl(getenv(FUSE_FILE_ENV), "x", (char *)NULL);
	CHECK(0);
}

TASK(fill_and_wait)
{
	fill_shared();
	pt_say("r");
	pause();
}

TASK(leave)
{
	leave_for_silent_program();
}

TASK(fill_and_leave)
{
	fill_shared();
	leave_for_silent_program();
}

/* Its child uses its memory, and is the last that does. */
TASK(fill_and_let_child_leave)
{
	fill_shared();
	if (!vfork())
		leave_for_silent_program();
	_exit(0);
}

/* The release of the page, which it has changed, waits for the server. */
TASK(change_silent_page_and_stay)
{
	int file = open(getenv(FUSE_FILE_ENV), O_RDWR);
	char *page = mmap(NULL, FUSE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	CHECK(page != MAP_FAILED);
	close(file);
	if (pt_failed)
		return;
	page[0] = 1;
	pt_exec_as("fill_and_wait", pt_args[0]);
}

FIXTURE(leaving) {
	const char *dir;
	pid_t server;
	struct pvas_space *space;
	long before;
};

FIXTURE_SETUP(leaving)
{
	self->space = NULL;
	PT_NEED_MODULE("memory is of each process");
	PT_NEED_DEVICE();
	PT_NEED_ROOT();
	self->before = shmem_kib();
	self->dir = pt_tmpdir();
	self->server = fuse_begin(self->dir, FUSE_PROGRAM);
	if (self->server < 0)
		SKIP(return, "no FUSE: %s", strerror(-self->server));
	self->space = PT_SPACE();
}

FIXTURE_TEARDOWN(leaving)
{
	if (!self->space)
		return;
	pvas_space_destroy(self->space);
	pt_remove_tmpdir();
}

static bool is_freed(long before)
{
	int i;

	for (i = 0; i < SOON_MS && shmem_kib() > before + SMALL_KIB; i += 50)
		usleep(50000);
	return shmem_kib() <= before + SMALL_KIB;
}

static bool is_left(struct pvas_space *space)
{
	int i;

	for (i = 0; i < SOON_MS && pvas_task_list(space, NULL, 0) > 0; i += 50)
		usleep(50000);
	return !pvas_task_list(space, NULL, 0);
}

/* The process has another mm, and takes no memory of the space along. */
TEST_F(leaving, memory_of_the_only_task)
{
	pid_t pid = pt_start_task(self->space, 1, "fill_and_leave");

	ASSERT_LT(0, pid);
	EXPECT_TRUE(fuse_has_stopped(self->server));
	EXPECT_TRUE(is_freed(self->before));
	EXPECT_TRUE(is_left(self->space));
	kill(pid, SIGKILL);
	fuse_end(self->server, self->dir);
	EXPECT_EQ(256 + SIGKILL, ends_soon(pid));
}

/* nor if it is a child that has outlived the task */
TEST_F(leaving, memory_of_a_child)
{
	pid_t pid = pt_start_task(self->space, 1, "fill_and_let_child_leave");

	ASSERT_LT(0, pid);
	EXPECT_TRUE(fuse_has_stopped(self->server));
	EXPECT_TRUE(is_freed(self->before));
	EXPECT_TRUE(is_left(self->space));
	EXPECT_EQ(0, ends_soon(pid));
	fuse_end(self->server, self->dir);
}

/* nor after an OOM kill of the others */
TEST_F(leaving, memory_after_oom)
{
	pid_t pid[2];
	int out[2];

	ASSERT_EQ(0, pipe(out));
	pid[0] = pt_start_task_fd(self->space, 1, "fill_and_wait", out[1]);
	ASSERT_LT(0, pid[0]);
	ASSERT_EQ('r', pt_hear(out[0]));
	pid[1] = pt_start_task(self->space, 2, "leave");
	ASSERT_LT(0, pid[1]);
	EXPECT_TRUE(fuse_has_stopped(self->server));
	ASSERT_EQ(0, pt_write_file("/proc/sysrq-trigger", "f"));
	EXPECT_EQ(256 + SIGKILL, ends_soon(pid[0]));
	EXPECT_TRUE(is_freed(self->before));
	kill(pid[1], SIGKILL);
	fuse_end(self->server, self->dir);
	EXPECT_EQ(256 + SIGKILL, ends_soon(pid[1]));
}

/* An exec that stays has another mm, too, and does not wait for the old program's files. */
TEST_F(leaving, nothing_by_a_staying_exec)
{
	char file[64];
	int out[2];
	pid_t pid;

	ASSERT_EQ(0, pipe(out));
	snprintf(file, sizeof(file), "%s/f", self->dir);
	setenv(FUSE_FILE_ENV, file, 1);
	pid = pt_start_task_fd(self->space, 1, "change_silent_page_and_stay", out[1]);
	ASSERT_LT(0, pid);
	ASSERT_EQ('r', pt_hear(out[0]));
	ASSERT_EQ(0, pt_write_file("/proc/sysrq-trigger", "f"));
	EXPECT_EQ(256 + SIGKILL, ends_soon(pid));
	EXPECT_TRUE(is_freed(self->before));
	fuse_end(self->server, self->dir);
}

PT_MAIN()
