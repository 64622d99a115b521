// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exec of a task and signals: handlers, timers, pending ones; and the signal by which the
 * user backend reaches a thread that calls execve().
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"

#define LIBRARY_SIGNAL	33	/* glibc's SIGSETXID: see libpvas/user/stay.h */

/* ---- signals ---- */

TASK(check_by_handler)
{
	sigset_t set;

	CHECK(pvas_task_get_index() > 0);
	/* As in the handler */
	CHECK_EQ(0, sigprocmask(SIG_BLOCK, NULL, &set));
	CHECK_EQ(1, sigismember(&set, SIGUSR1));
	CHECK_EQ(0, sigismember(&set, SIGUSR2));
}

static void exec_in_handler(int sig)
{
	(void)sig;
	pt_exec_as("check_by_handler", NULL);
}

TASK(exec_by_handler)
{
	struct sigaction sa = { .sa_handler = exec_in_handler };
	stack_t stack = { .ss_size = 1 << 16 };

	if (pt_args[0]) {
		stack.ss_sp = malloc(stack.ss_size);
		CHECK_EQ(0, sigaltstack(&stack, NULL));
		sa.sa_flags = SA_ONSTACK;
	}
	CHECK_EQ(0, sigaction(SIGUSR1, &sa, NULL));
	raise(SIGUSR1);
}

TASK(exec_by_handler_on_stack)
{
	pt_exec_as("exec_by_handler", "stack");
}

/* by a signal handler, also on a stack of its own */
PVAS_TEST(by_handler)
{
	EXPECT_EQ(0, pt_run_task("exec_by_handler"));
	EXPECT_EQ(0, pt_run_task("exec_by_handler_on_stack"));
}

static volatile unsigned int nr_ticks;

static void tick(int sig)
{
	(void)sig;
	nr_ticks++;
}

/* A timer whose signals the handlers take; the exec deletes it, with what is pending. */
TASK(exec_under_timer)
{
	struct itimerspec often = { { 0, 200000 }, { 0, 1000 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	int left = pt_args[0] ? atoi(pt_args[0]) : 100;
	timer_t timer;

	CHECK(pvas_task_get_index() > 0);
	if (!left)
		return;
	signal(SIGRTMIN, tick);
	CHECK_EQ(0, timer_create(CLOCK_MONOTONIC, &event, &timer));
	CHECK_EQ(0, timer_settime(timer, 0, &often, NULL));
	while (!nr_ticks)
		;
	pt_exec_as("exec_under_timer", pt_number(left - 1));
}

/* while signals arrive that have handlers: no program meets one that the one before asked for */
PVAS_TEST(under_timer)
{
	EXPECT_EQ(0, pt_run_task("exec_under_timer"));
}

TASK(check_queue)
{
	siginfo_t info;
	sigset_t set;
	int i;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(SIGRTMIN + 1, sigwaitinfo(&set, &info));
		CHECK_EQ(i, info.si_value.sival_int);
		CHECK_EQ(SI_QUEUE, info.si_code);
	}
	/* By default it is ignored. */
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	CHECK_EQ(SIGCHLD, sigtimedwait(&set, &info, &(struct timespec){ 5, 0 }));
	CHECK_EQ(CLD_EXITED, info.si_code);
	CHECK(pvas_task_get_index() > 0);
}

TASK(queue_and_exec)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 2 };
	struct itimerspec soon = { .it_value = { 0, 1000 } };
	timer_t timer;
	sigset_t set;
	int i;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	sigaddset(&set, SIGRTMIN + 2);
	sigaddset(&set, SIGCHLD);
	CHECK_EQ(0, sigprocmask(SIG_BLOCK, &set, NULL));
	signal(SIGCHLD, tick);
	if (!fork())
		_exit(0);
	for (i = 0; i < 3; i++)
		CHECK_EQ(0, sigqueue(getpid(), SIGRTMIN + 1, (union sigval){ .sival_int = i }));
	CHECK_EQ(0, timer_create(CLOCK_MONOTONIC, &event, &timer));
	CHECK_EQ(0, timer_settime(timer, 0, &soon, NULL));
	usleep(10000);
	pt_exec_as("check_queue", NULL);
}

/* pending signals stay, with their values and in their order */
PVAS_TEST(keeps_queue)
{
	EXPECT_EQ(0, pt_run_task("queue_and_exec"));
}

/* ---- the signal that the C library uses within ---- */

/* In a task, or in a fork child of one */
static int set_ids(void)
{
	pt_start_threads(3);
	/* glibc has each thread do it, by this signal. */
	return setgid(getgid()) || setresuid(-1, getuid(), -1);
}

TASK(set_ids_and_exec)
{
	if (!fork())
		_exit(set_ids());
	CHECK_EQ(0, pt_wait(-1));
	CHECK_EQ(0, set_ids());
	pt_exec_as("check_inside", pt_number(getpid()));
}

/* it serves the library as before */
PVAS_TEST(library_signal)
{
	EXPECT_EQ(0, pt_run_task("set_ids_and_exec"));
}

/* As the kernel has it */
struct action {
	unsigned long handler, flags, restorer, mask;
};

static long set_action(const struct action *act, struct action *old)
{
	return syscall(SYS_rt_sigaction, LIBRARY_SIGNAL, act, old, 8);
}

TASK_TEST(library_action)
{
	struct action mine = { 4096, SA_RESTART | 0x04000000, 8192, 5 }, none = { 0, 0, 0, 0 }, old;

	CHECK_EQ(0, set_action(NULL, &old));
	CHECK_EQ(0, old.handler);
	CHECK_EQ(0, set_action(&mine, &old));
	CHECK_EQ(0, old.handler);
	CHECK_EQ(0, set_action(NULL, &old));
	CHECK_EQ(0, memcmp(&mine, &old, sizeof(old)));
	CHECK_ERR(EFAULT, set_action((void *)8, NULL));
	CHECK_ERR(EINVAL, syscall(SYS_rt_sigaction, LIBRARY_SIGNAL, NULL, &old, 4));
	if (!fork())
		_exit(set_action(&none, &old) || old.handler != 4096 ||
		      set_action(NULL, &old) || old.handler);
	CHECK_EQ(0, pt_wait(-1));
	CHECK_EQ(0, set_action(NULL, &old));
	CHECK_EQ(4096, old.handler);
}

TASK(die_of_library_signal)
{
	struct action none = { .handler = 0 };

	pt_start_threads(1);
	set_action(&none, NULL);
	kill(getpid(), LIBRARY_SIGNAL);
	pause();
}

/* and kills who has no handler for it, as any signal */
PVAS_TEST(library_signal_kills)
{
	EXPECT_EQ(256 + LIBRARY_SIGNAL, pt_run_task("die_of_library_signal"));
}

TASK(ignore_and_exec)
{
	struct action act = { .handler = (unsigned long)SIG_IGN };

	CHECK_EQ(0, set_action(&act, NULL));
	CHECK_EQ(0, set_action(NULL, &act));
	CHECK_EQ(1, act.handler);
	kill(getpid(), LIBRARY_SIGNAL);
	pt_exec_as("check_outside_if_user", NULL);
}

TASK(block_and_exec)
{
	unsigned long set = 1UL << (LIBRARY_SIGNAL - 1);

	CHECK_EQ(0, syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, 8));
	pt_exec_as("check_outside_if_user", NULL);
}

TASK(exec_without_queue)
{
	struct rlimit none = { 0, 0 };

	CHECK_EQ(0, setrlimit(RLIMIT_SIGPENDING, &none));
	pt_exec_as("check_outside_if_user", NULL);
}

/* Calls of code elsewhere become SIGSYS: with the user backend those of the launcher's. */
TASK(exec_dispatched)
{
	uintptr_t self = (uintptr_t)&pt_exec_as & ~(uintptr_t)(pt_size() - 1);
	char block = SYSCALL_DISPATCH_FILTER_ALLOW;

	CHECK_EQ(0, prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, self, pt_size(),
			  &block));
	block = SYSCALL_DISPATCH_FILTER_BLOCK;
	pt_exec_as("check_outside_if_user", NULL);
}

/* 8 KiB have always been enough. */
TASK(exec_with_stack)
{
	size_t size = pt_args[0] ? 8192 : 2048;
	stack_t stack = { .ss_sp = malloc(size), .ss_size = size };

	CHECK_EQ(0, sigaltstack(&stack, NULL));
	if (pt_args[0])
		pt_exec_as("check_inside", pt_number(getpid()));
	pt_exec_as("check_outside_if_user", NULL);
}

static ucontext_t coroutine;

static void exec_in_coroutine(void)
{
	pt_exec_as("check_outside_if_user", NULL);
}

/* There is nothing below it. */
static void *run_on_small_stack(void *function)
{
	char *p = mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK_EQ(0, mprotect(p + 8192, 4096, PROT_READ | PROT_WRITE));
	getcontext(&coroutine);
	coroutine.uc_stack = (stack_t){ .ss_sp = p + 8192, .ss_size = 4096 };
	coroutine.uc_link = NULL;
	makecontext(&coroutine, (void (*)(void))function, 0);
	setcontext(&coroutine);
	return NULL;
}

TASK(exec_on_small_stack)
{
	run_on_small_stack(exec_in_coroutine);
}

static volatile int in_coroutine;

static void wait_in_coroutine(void)
{
	in_coroutine = 1;
	while (!pt_args[0])
		__asm__ volatile("pause" ::: "memory");
	syscall(SYS_pause);
}

/* The argument, if any, has the thread wait. */
TASK(exec_beside_small_stack)
{
	pthread_t t;

	CHECK_EQ(0, pthread_create(&t, NULL, run_on_small_stack, wait_in_coroutine));
	while (!in_coroutine)
		usleep(1000);
	pt_exec_as("check_outside_if_user", NULL);
}

TASK(exec_beside_small_stack_that_waits)
{
	pt_exec_as("exec_beside_small_stack", "waits");
}

TASK(exec_with_large_stack)
{
	pt_exec_as("exec_with_stack", "large");
}

/* nor does a stack end the task that is too small for the backend's handler, of any thread */
PVAS_TEST(with_stack)
{
	EXPECT_EQ(0, pt_run_task("exec_with_stack"));
	EXPECT_EQ(0, pt_run_task("exec_with_large_stack"));
	EXPECT_EQ(0, pt_run_task("exec_on_small_stack"));
	EXPECT_EQ(0, pt_run_task("exec_beside_small_stack"));
	EXPECT_EQ(0, pt_run_task("exec_beside_small_stack_that_waits"));
}

/* Its program gets what is pending, and unblocks it. */
TASK(check_unblocked)
{
	unsigned long none = 0;

	CHECK_EQ(0, syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, 8));
}

/* As runtimes that do without the library, it blocks all signals, and for long. */
static void *exec_blocking(void *arg)
{
	unsigned long all = ~0UL;

	CHECK_EQ(0, syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8));
	*(volatile int *)arg = 1;
	usleep(200000);
	pt_exec_as("check_unblocked", "of the blocking thread");
	return NULL;
}

TASK(exec_beside_blocking)
{
	volatile int begun = 0;
	pthread_t t;

	CHECK_EQ(0, pthread_create(&t, NULL, exec_blocking, (void *)&begun));
	while (!begun)
		usleep(1000);
	pt_exec_as("check_unblocked", NULL);
}

/* nor does another thread's program get it that leaves meanwhile */
PVAS_TEST(by_blocking_thread)
{
	EXPECT_EQ(0, pt_run_task("exec_beside_blocking"));
}

/* ---- children with another exit signal ---- */

TASK(rest)
{
	sleep(2);
}

static void end_soon(void)
{
	usleep(500000);
	_exit(0);
}

TASK(exec_beside_signalling_child)
{
	struct { uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack[3]; } a = {
		.exit_signal = SIGUSR2,
	};

	if (!syscall(SYS_clone, SIGUSR1, 0, 0, 0, 0))
		end_soon();
	if (!syscall(SYS_clone3, &a, sizeof(a)))
		end_soon();
	pt_exec_as("rest", NULL);
}

/* an execve changes it to SIGCHLD, which ends no program */
PVAS_TEST(of_children)
{
	EXPECT_EQ(0, pt_run_task("exec_beside_signalling_child"));
}

/* without that signal the user backend has the program leave */
PVAS_TEST(without_library_signal)
{
	EXPECT_EQ(0, pt_run_task("ignore_and_exec"));
	EXPECT_EQ(0, pt_run_task("block_and_exec"));
	EXPECT_EQ(0, pt_run_task("exec_without_queue"));
	EXPECT_EQ(0, pt_run_task("exec_dispatched"));
}

PT_MAIN()
