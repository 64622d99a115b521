// SPDX-License-Identifier: GPL-2.0-only
/* The exec of a task that holds mutexes for which others wait, or has timers. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

static pthread_mutex_t *shared_mutex(int fd)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Makes a robust one there, and takes it. */
static pthread_mutex_t *hold_mutex(int protocol)
{
	pthread_mutex_t *m = shared_mutex(atoi(pt_args[0]));
	pthread_mutexattr_t attr;

	CHECK(m);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setprotocol(&attr, protocol);
	CHECK_EQ(0, pthread_mutex_init(m, &attr));
	CHECK_EQ(0, pthread_mutex_lock(m));
	return m;
}

TASK(check_timers)
{
	pthread_mutex_t *m = shared_mutex(atoi(pt_args[0]));
	char line[64];

	/* No line: no timer. This kernel may have no such file. */
	CHECK(pt_read_file("/proc/self/timers", line, sizeof(line)) || !line[0]);
	usleep(300000);
	CHECK(m && pthread_mutex_lock(m) == EOWNERDEAD);
}

TASK(lock_and_exec)
{
	struct itimerspec soon = { .it_value = { .tv_nsec = 100000000 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	timer_t timer;

	hold_mutex(PTHREAD_PRIO_NONE);
	/* It would kill the new program. */
	CHECK_EQ(0, timer_create(CLOCK_MONOTONIC, &event, &timer));
	CHECK_EQ(0, timer_settime(timer, 0, &soon, NULL));
	pt_exec_as("check_timers", pt_args[0]);
}

/* POSIX timers are gone, and the owner of a robust mutex has died */
PVAS_TEST(stays_without_timers_and_locks)
{
	EXPECT_EQ(0, pt_run_task_with_page("lock_and_exec"));
}

TASK(hold_and_sleep)
{
	pthread_mutex_t *m = hold_mutex(PTHREAD_PRIO_INHERIT);

	__atomic_store_n((int *)(m + 1), 1, __ATOMIC_RELEASE);
	usleep(300000);
	execl("/bin/sleep", "sleep", "20", NULL);
}

/* who waits for a mutex with priority inheritance gets it when its holder execs */
PVAS_TEST(holding_mutex)
{
	struct pvas_space *space = PT_SPACE();
	int fd = memfd_create("mutex", 0), tries = 1000;
	struct timespec until;
	pthread_mutex_t *m;
	pid_t pid;

	ASSERT_EQ(0, ftruncate(fd, 4096));
	m = shared_mutex(fd);
	pid = pt_start_task_fd(space, 1, "hold_and_sleep", fd);
	ASSERT_LT(0, pid);
	while (!__atomic_load_n((int *)(m + 1), __ATOMIC_ACQUIRE) && tries--)
		usleep(10000);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 10;
	EXPECT_EQ(EOWNERDEAD, pthread_mutex_timedlock(m, &until));
	pt_kill(pid);
	close(fd);
	pvas_space_destroy(space);
}

/* In memory that both programs have: a mutex, as the kernel sees it */
struct bare_mutex {
	struct robust_list list;
	uint32_t word;
};

TASK(check_pending_mutex)
{
	struct bare_mutex *m = (void *)shared_mutex(atoi(pt_args[0]));

	CHECK(m && (m->word & FUTEX_OWNER_DIED));
}

/* As in the middle of pthread_mutex_lock(), when a handler or another thread makes the exec */
TASK(exec_in_operation)
{
	static struct robust_list_head head;
	struct bare_mutex *m = (void *)shared_mutex(atoi(pt_args[0]));

	CHECK(m);
	head.list.next = &head.list;
	head.futex_offset = offsetof(struct bare_mutex, word) - offsetof(struct bare_mutex, list);
	head.list_op_pending = &m->list;
	CHECK_EQ(0, syscall(SYS_set_robust_list, &head, sizeof(head)));
	m->word = getpid();
	pt_exec_as("check_pending_mutex", pt_args[0]);
}

/* a mutex that the thread was about to take or release is given up, too */
PVAS_TEST(in_operation_on_mutex)
{
	EXPECT_EQ(0, pt_run_task_with_page("exec_in_operation"));
}

PT_MAIN()
