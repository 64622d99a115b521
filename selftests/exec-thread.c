// SPDX-License-Identifier: GPL-2.0-only
/* The exec of a task with several threads, by any of them. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

static int a_pipe[2];

static void *exec_by_thread(void *arg)
{
	usleep(20000);
	pt_exec_as(arg, pt_number(getpid()));
	return NULL;
}

static void start_exec(const char *name)
{
	pthread_t t;

	pt_start_threads(2);
	CHECK_EQ(0, pthread_create(&t, NULL, exec_by_thread, (void *)name));
}

/* The first thread waits for the exec of another one. */
static void pause_beside(void *(*exec)(void *arg))
{
	pthread_t t;

	CHECK_EQ(0, pthread_create(&t, NULL, exec, NULL));
	pause();
}

TASK(exec_beside_read)
{
	CHECK_EQ(0, pipe(a_pipe));
	start_exec("check_inside");
	CHECK_EQ(0, read(a_pipe[0], a_pipe, 1));
}

/* Where its stack is cannot be seen. */
TASK(exec_beside_loop)
{
	start_exec("check_outside_if_user");
	for (;;)
		__asm__ volatile("" ::: "memory");
}

TASK(exec_beside_calls)
{
	start_exec("check_inside");
	for (;;)
		munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
}

TASK(exec_beside_end)
{
	start_exec("check_outside_if_user");
	pthread_exit(NULL);
}

/* Another one than it has, which is not 0 below nice(1) */
TASK(exec_beside_priority)
{
	int nice = getpriority(PRIO_PROCESS, 0);

	if (nice == 19)	/* There is none that an ordinary user may set. */
		return;
	start_exec("check_outside_if_user");
	CHECK_EQ(0, setpriority(PRIO_PROCESS, 0, nice + 1));
	pause();
}

TASK(check_personality)
{
	CHECK_EQ(ADDR_NO_RANDOMIZE, personality(~0UL));
	CHECK_EQ(pt_backend() == PVAS_BACKEND_USER, pvas_task_get_index() < 0);
}

static void *exec_with_personality(void *arg)
{
	CHECK(personality(ADDR_NO_RANDOMIZE) >= 0);
	pt_exec_as("check_personality", NULL);
	return arg;
}

TASK(exec_beside_personality)
{
	pause_beside(exec_with_personality);
}

/* It would be killed at the end of the thread that has made it. */
TASK(check_child)
{
	CHECK_EQ(7, pt_wait(-1));
	CHECK_EQ(pt_backend() == PVAS_BACKEND_USER, pvas_task_get_index() < 0);
}

static void *exec_with_child(void *arg)
{
	int ready[2];
	char c;

	CHECK_EQ(0, pipe(ready));
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (write(ready[1], "r", 1) == 1)
			usleep(300000);
		_exit(7);
	}
	CHECK_EQ(1, read(ready[0], &c, 1));
	pt_exec_as("check_child", NULL);
	return arg;
}

TASK(exec_by_parent)
{
	pause_beside(exec_with_child);
}

/* by a thread, while the first one waits, runs, or has ended; or has other settings */
PVAS_TEST(by_thread)
{
	EXPECT_EQ(0, pt_run_task("exec_beside_read"));
	EXPECT_EQ(0, pt_run_task("exec_beside_loop"));
	EXPECT_EQ(0, pt_run_task("exec_beside_calls"));
	EXPECT_EQ(0, pt_run_task("exec_beside_end"));
	EXPECT_EQ(0, pt_run_task("exec_beside_priority"));
	EXPECT_EQ(0, pt_run_task("exec_beside_personality"));
	EXPECT_EQ(0, pt_run_task("exec_by_parent"));
}

TASK(check_thread)
{
	cpu_set_t set;
	sigset_t mask;

	CHECK(pvas_task_get_index() > 0);
	CHECK_EQ(0, sched_getaffinity(0, sizeof(set), &set));
	CHECK_EQ(1, CPU_COUNT(&set));
	CHECK_EQ(0, sigprocmask(SIG_BLOCK, NULL, &mask));
	CHECK_EQ(1, sigismember(&mask, SIGUSR2));
	CHECK_EQ(0, sigismember(&mask, SIGUSR1));
}

static void *exec_with_settings(void *arg)
{
	cpu_set_t set;
	sigset_t mask;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	CHECK_EQ(0, sched_setaffinity(0, sizeof(set), &set));
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	CHECK_EQ(0, pthread_sigmask(SIG_SETMASK, &mask, NULL));
	pt_exec_as("check_thread", NULL);
	return arg;
}

TASK(exec_with_threads_settings)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	CHECK_EQ(0, pthread_sigmask(SIG_SETMASK, &mask, NULL));
	pause_beside(exec_with_settings);
}

/* the program gets the mask and the processors of the thread that has called it */
PVAS_TEST(by_thread_with_settings)
{
	EXPECT_EQ(0, pt_run_task("exec_with_threads_settings"));
}

/* The thread's umask is 0123, the descriptor 100 is closed, and with groups it has one. */
TASK(check_own)
{
	gid_t group = 0;

	CHECK_EQ(0123, umask(0));
	CHECK_ERR(EBADF, fcntl(100, F_GETFD));
	if (atoi(pt_args[0])) {
		CHECK_EQ(1, getgroups(1, &group));
		CHECK_EQ(12345, group);
	}
}

static void *exec_with_own(void *arg)
{
	const gid_t group = 12345;
	int files = *(char *)arg == 'f', groups;

	CHECK_EQ(0, unshare(files ? CLONE_FILES : CLONE_FS));
	if (files)
		close(100);
	else
		umask(0123);
	/* glibc's function would do it in all threads. The module refuses it. */
	groups = *(char *)arg == 'g' && !syscall(SYS_setgroups, 1, &group);
	pt_exec_as("check_own", pt_number(groups));
	return NULL;
}

TASK(exec_with_own_things)
{
	pthread_t t;

	if (*pt_args[0] == 'f')
		umask(0123);
	if (*pt_args[0] == 'f')
		CHECK_EQ(100, dup2(0, 100));
	CHECK_EQ(0, pthread_create(&t, NULL, exec_with_own, pt_args[0]));
	pthread_join(t, NULL);
}

/* by a thread with descriptors, umask or groups of its own: the program has these */
PVAS_TEST(by_thread_with_own)
{
	const char *kinds[] = { "files", "umask", "groups" };
	size_t i;

	for (i = 0; i < PT_ARRAY_SIZE(kinds); i++) {
		EXPECT_EQ(0, pt_run_task_with("exec_with_own_things", kinds[i])) TH_LOG("%s", kinds[i]);
	}
}

static pthread_barrier_t barrier;

static void *race(void *arg)
{
	pthread_barrier_wait(&barrier);
	execv(pt_self(), arg);
	return NULL;
}

TASK(exec_twice)
{
	char pid[16], *argv[] = { (char *)pt_self(), "--task", "check_pid", pid, NULL };
	pthread_t t;

	snprintf(pid, sizeof(pid), "%d", getpid());
	pthread_barrier_init(&barrier, NULL, 2);
	CHECK_EQ(0, pthread_create(&t, NULL, race, argv));
	race(argv);
	CHECK(0);
}

TASK(check_pid)
{
	CHECK_EQ(atoi(pt_args[0]), getpid());
	CHECK_EQ(getpid(), syscall(SYS_gettid));
}

/* two threads at once: one of them becomes the program, and nothing is left of the other */
PVAS_TEST(by_two_threads)
{
	int i;

	for (i = 0; i < 10; i++)
		EXPECT_EQ(0, pt_run_task("exec_twice"));
}

PT_MAIN()
