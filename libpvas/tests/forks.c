// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The user backend: a partition counts as being copied until the thread that forks has done so,
 * and no longer, also if its number becomes another's. This process is the task; there is no
 * space. Needs root, to give a process a number.
 */
#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "helpers.h"
#include "user/worker.h"
#include "kselftest_harness.h"

#define SHIFT	32
#define FIRST	1	/* nothing is mapped there */

static struct user_part parts[FIRST + 2];
static struct pvas_space space = { .shift = SHIFT, .first = FIRST, .last = FIRST + 1 };
static struct user_space u = {
	.space = &space, .parts = parts, .fork_lock = PTHREAD_MUTEX_INITIALIZER,
};
static struct user_part *const mine = &parts[FIRST], *const peers = &parts[FIRST + 1];

static void __attribute__((noreturn)) spin(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		;
}

/* A process with that number, which is soon free. It spins, and is as large as this one. */
static pid_t start_as(pid_t number)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&number, .set_tid_size = 1,
	};
	int tries = 5000;
	pid_t pid;

	do {
		pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	} while (pid < 0 && errno == EEXIST && --tries && !usleep(1000));
	if (!pid)
		spin();
	return pid;
}

/* The peer forks: is our memory marked, so that its child gets none? */
static int is_kept_from_peers_fork(void)
{
	mine->marked = 0;
	user_fork_prepare(&u, peers, getpid());
	return mine->marked;
}

static pid_t forker;
static int forker_ends;

/* A thread in a fork runs. */
static void *run(void *unused)
{
	__atomic_store_n(&forker, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&forker_ends, __ATOMIC_ACQUIRE))
		;
	return unused;
}

static pid_t start_forker(pthread_t *thread)
{
	if (pthread_create(thread, NULL, run, NULL))
		return -1;
	while (!__atomic_load_n(&forker, __ATOMIC_ACQUIRE))
		;
	return forker;
}

static void end_forker(pthread_t thread)
{
	__atomic_store_n(&forker_ends, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
}

static int begin(void)
{
	mine->state = peers->state = PVAS_PART_RUNNING;
	mine->pid = getpid();
	peers->pid = 1;
	parts[FIRST].base = (uint64_t)FIRST << SHIFT;
	parts[FIRST + 1].base = (uint64_t)(FIRST + 1) << SHIFT;
	return user_proc_begin() ?: user_caller_begin();
}

/* It may still be forking, as long as it runs. */
TEST(a_thread_that_runs)
{
	pthread_t thread;

	ASSERT_EQ(begin(), 0);
	user_fork_prepare(&u, mine, start_forker(&thread));
	EXPECT_EQ(is_kept_from_peers_fork(), 0);
	end_forker(thread);
	EXPECT_EQ(is_kept_from_peers_fork(), 1);
}

TEST(a_number_that_is_anothers)
{
	pthread_t thread;
	pid_t tid, other;

	ASSERT_EQ(begin(), 0);
	tid = start_forker(&thread);
	user_fork_prepare(&u, mine, tid);
	EXPECT_EQ(mine->nr_forks, 1);
	end_forker(thread);
	other = start_as(tid);
	if (other < 0)
		SKIP(return, "can't choose a process' number: %s", strerror(errno));
	EXPECT_EQ(other, tid);
	usleep(50000);
	EXPECT_EQ(is_kept_from_peers_fork(), 1);
	EXPECT_EQ(mine->nr_forks, 0);
	kill(other, SIGKILL);
	end_of(other);
}

/* Of a process that shares a task's memory, and is none: its number says nothing. */
TEST(a_process_number_that_is_anothers)
{
	pid_t other;

	ASSERT_EQ(begin(), 0);
	other = fork();
	if (!other)
		spin();
	user_fork_prepare(&u, mine, other);
	EXPECT_EQ(mine->nr_forks, 1);
	usleep(50000);
	EXPECT_EQ(is_kept_from_peers_fork(), 0);
	mine->forks[0].until = 0;
	EXPECT_EQ(is_kept_from_peers_fork(), 1);
	kill(other, SIGKILL);
	end_of(other);
}

TEST_HARNESS_MAIN
