// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exec of a task beside what else goes on in it: signals, their handlers, other threads,
 * children with its memory, a tracer; and by all calls that there are for it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "program.h"

#define LIBRARY_SIGNAL	33	/* glibc's SIGSETXID: see libpvas/user/stay.h */

static char *const *argv_of(const char *name, const char *arg)
{
	static char *argv[5];

	argv[0] = (char *)pt_self();
	argv[1] = (char *)"--task";
	argv[2] = (char *)name;
	argv[3] = (char *)arg;
	return argv;
}

static void exec_as(const char *name, const char *arg)
{
	execv(pt_self(), argv_of(name, arg));
	CHECK_EQ(0, errno);
}

static const char *number(long n)
{
	static char text[24];

	snprintf(text, sizeof(text), "%ld", n);
	return text;
}

/* The first argument, if any, is the pid that it has to have. */
TASK(check_inside)
{
	CHECK(pvas_task_get_index() > 0);
	CHECK(pt_inside(malloc(100), 100));
	CHECK_EQ(getpid(), syscall(SYS_gettid));
	if (pt_args[0])
		CHECK_EQ(atoi(pt_args[0]), getpid());
}

TASK(check_outside)
{
	CHECK_EQ(-ESRCH, pvas_task_get_index());
}

/* With the module it stays. */
TASK(check_outside_if_user)
{
	CHECK_EQ(pt_backend() == PVAS_BACKEND_USER, pvas_task_get_index() < 0);
}

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
	exec_as("check_by_handler", NULL);
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
	exec_as("exec_by_handler", "stack");
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
	exec_as("exec_under_timer", number(left - 1));
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
	CHECK_EQ(0, sigprocmask(SIG_BLOCK, &set, NULL));
	for (i = 0; i < 3; i++)
		CHECK_EQ(0, sigqueue(getpid(), SIGRTMIN + 1, (union sigval){ .sival_int = i }));
	CHECK_EQ(0, timer_create(CLOCK_MONOTONIC, &event, &timer));
	CHECK_EQ(0, timer_settime(timer, 0, &soon, NULL));
	usleep(10000);
	exec_as("check_queue", NULL);
}

/* pending signals stay, with their values and in their order */
PVAS_TEST(keeps_queue)
{
	EXPECT_EQ(0, pt_run_task("queue_and_exec"));
}

/* ---- the signal that the C library uses within ---- */

static void *idle_thread(void *arg)
{
	pause();
	return arg;
}

static void start_threads(int n)
{
	pthread_t t;

	while (n--)
		CHECK_EQ(0, pthread_create(&t, NULL, idle_thread, NULL));
}

TASK(set_ids_and_exec)
{
	start_threads(3);
	/* glibc has each thread do it, by this signal. */
	CHECK_EQ(0, setgid(getgid()));
	CHECK_EQ(0, setresuid(-1, getuid(), -1));
	exec_as("check_inside", number(getpid()));
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

	start_threads(1);
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
	exec_as("check_outside_if_user", NULL);
}

TASK(block_and_exec)
{
	unsigned long set = 1UL << (LIBRARY_SIGNAL - 1);

	CHECK_EQ(0, syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, 8));
	exec_as("check_outside_if_user", NULL);
}

TASK(exec_without_queue)
{
	struct rlimit none = { 0, 0 };

	CHECK_EQ(0, setrlimit(RLIMIT_SIGPENDING, &none));
	exec_as("check_outside_if_user", NULL);
}

/* Calls of code elsewhere become SIGSYS: with the user backend those of the launcher's. */
TASK(exec_dispatched)
{
	uintptr_t self = (uintptr_t)&exec_as & ~(uintptr_t)(pt_size() - 1);
	char block = SYSCALL_DISPATCH_FILTER_ALLOW;

	CHECK_EQ(0, prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, self, pt_size(),
			  &block));
	block = SYSCALL_DISPATCH_FILTER_BLOCK;
	exec_as("check_outside_if_user", NULL);
}

/* without that signal the user backend has the program leave */
PVAS_TEST(without_library_signal)
{
	EXPECT_EQ(0, pt_run_task("ignore_and_exec"));
	EXPECT_EQ(0, pt_run_task("block_and_exec"));
	EXPECT_EQ(0, pt_run_task("exec_without_queue"));
	EXPECT_EQ(0, pt_run_task("exec_dispatched"));
}

/* ---- other calls ---- */

TASK(exec_by_descriptor)
{
	int fd = open(pt_self(), O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	fexecve(fd, argv_of("check_inside", number(getpid())), environ);
	CHECK_EQ(0, errno);
}

TASK(exec_in_directory)
{
	char *dir = strdup(pt_self()), *name = strrchr(dir, '/');
	int fd;

	*name++ = 0;
	fd = open(dir, O_PATH | O_DIRECTORY);
	CHECK(fd >= 0);
	CHECK_ERR(ENOENT, syscall(SYS_execveat, fd, "", argv_of("x", NULL), environ, 0));
	CHECK_ERR(EBADF, syscall(SYS_execveat, 999, name, argv_of("x", NULL), environ, 0));
	CHECK_ERR(EBADF, syscall(SYS_execveat, -5, name, argv_of("x", NULL), environ, 0));
	CHECK_ERR(EINVAL, syscall(SYS_execveat, fd, name, argv_of("x", NULL), environ, 0x80000));
	syscall(SYS_execveat, fd, name, argv_of("check_inside", number(getpid())), environ, 0);
	CHECK_EQ(0, errno);
}

/* The interpreter would get the name of a descriptor that is closed. */
TASK(exec_lost_script)
{
	int fd = open(pt_args[0], O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	fexecve(fd, argv_of("x", NULL), environ);
	CHECK_EQ(ENOENT, errno);
	exec_as("check_inside", number(getpid()));
}

/* execveat() with a descriptor of the program, or of its directory */
PVAS_TEST(by_descriptor)
{
	char *argv[] = { (char *)pt_self(), "--task", "exec_lost_script",
			 strdup(pt_put_file("script", "#!/bin/sh\n", 10, 0755)), NULL };
	struct pvas_space *space;
	pid_t pid;

	EXPECT_EQ(0, pt_run_task("exec_by_descriptor"));
	EXPECT_EQ(0, pt_run_task("exec_in_directory"));
	space = PT_SPACE();
	ASSERT_EQ(1, pvas_task_spawn(space, 1, argv[0], argv, environ, NULL, &pid));
	EXPECT_EQ(0, pt_wait(pid));
	pvas_space_destroy(space);
}

/* An execve() that fails, with a number in the upper half of a vector register */
static long fail_with(uint64_t *upper)
{
	uint64_t v[4] = { 1, 2, 3, *upper };
	long ret = SYS_execve;

	__asm__ volatile("vmovdqu (%[v]), %%ymm9\n\t"
			 "syscall\n\t"
			 "vmovdqu %%ymm9, (%[v])"
			 : "+a"(ret)
			 : "D"("/nonexistent"), "S"(0), "d"(0), [v] "r"(v)
			 : "rcx", "r11", "xmm9", "memory");
	*upper = v[3];
	return ret;
}

/* one that fails changes no register */
TASK_TEST(fails_with_registers)
{
	uint64_t upper = 0x123456789abcdef;

	if (!__builtin_cpu_supports("avx"))
		return;
	CHECK_EQ(-ENOENT, fail_with(&upper));
	CHECK_EQ(0x123456789abcdef, upper);
}

/* ---- other threads ---- */

static int a_pipe[2];

static void *exec_by_thread(void *arg)
{
	usleep(20000);
	exec_as(arg, number(getpid()));
	return NULL;
}

static void start_exec(const char *name)
{
	pthread_t t;

	start_threads(2);
	CHECK_EQ(0, pthread_create(&t, NULL, exec_by_thread, (void *)name));
}

TASK(exec_beside_read)
{
	CHECK_EQ(0, pipe(a_pipe));
	start_exec("check_inside");
	CHECK_EQ(0, read(a_pipe[0], a_pipe, 1));
}

TASK(exec_beside_loop)
{
	start_exec("check_inside");
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

TASK(exec_beside_priority)
{
	start_exec("check_outside_if_user");
	CHECK_EQ(0, setpriority(PRIO_PROCESS, 0, 5));
	pause();
}

/* by a thread, while the first one waits, runs, or has ended; or has another priority */
PVAS_TEST(by_thread)
{
	EXPECT_EQ(0, pt_run_task("exec_beside_read"));
	EXPECT_EQ(0, pt_run_task("exec_beside_loop"));
	EXPECT_EQ(0, pt_run_task("exec_beside_calls"));
	EXPECT_EQ(0, pt_run_task("exec_beside_end"));
	EXPECT_EQ(0, pt_run_task("exec_beside_priority"));
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
	exec_as("check_thread", NULL);
	return arg;
}

TASK(exec_with_threads_settings)
{
	sigset_t mask;
	pthread_t t;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	CHECK_EQ(0, pthread_sigmask(SIG_SETMASK, &mask, NULL));
	CHECK_EQ(0, pthread_create(&t, NULL, exec_with_settings, NULL));
	pause();
}

/* the program gets the mask and the processors of the thread that has called it */
PVAS_TEST(by_thread_with_settings)
{
	EXPECT_EQ(0, pt_run_task("exec_with_threads_settings"));
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

/* ---- children with the task's memory ---- */

static void *spawn_for_ever(void *arg)
{
	char *argv[] = { (char *)arg, NULL };
	pid_t pid;

	for (;;)
		if (!posix_spawn(&pid, argv[0], NULL, NULL, argv, environ))
			waitpid(pid, NULL, 0);
	return NULL;
}

/* They make the same calls, from the same instructions, as the task. */
TASK(exec_beside_spawns)
{
	int left = pt_args[0] ? atoi(pt_args[0]) : 20;
	pthread_t t;

	CHECK(pvas_task_get_index() > 0);
	if (!left || pt_failed)
		return;
	CHECK_EQ(0, pthread_create(&t, NULL, spawn_for_ever, "/bin/true"));
	CHECK_EQ(0, pthread_create(&t, NULL, spawn_for_ever, "/nonexistent"));
	usleep(5000);
	exec_as("exec_beside_spawns", number(left - 1));
}

/* while other threads start programs, by vfork children that share the memory */
PVAS_TEST(beside_spawns)
{
	EXPECT_EQ(0, pt_run_task("exec_beside_spawns"));
}

static int exec_in_child(void *arg)
{
	char *argv[] = { (char *)pt_self(), "--task", (char *)arg, NULL };

	execv(argv[0], argv);
	_exit(99);
}

static char child_stack[1 << 16] __attribute__((aligned(16)));

TASK(children_exec)
{
	int flags = SIGCHLD;
	pid_t pid = vfork();

	if (!pid)
		exec_in_child("check_outside");
	CHECK_EQ(0, pt_wait(pid));
	pid = fork();
	if (!pid)
		exec_in_child("check_outside");
	CHECK_EQ(0, pt_wait(pid));
	pid = clone(exec_in_child, child_stack + sizeof(child_stack), CLONE_VM | flags,
		    "check_outside");
	CHECK_EQ(0, pt_wait(pid));
	CHECK(pvas_task_get_index() > 0);
}

/* a child by fork(), vfork() or clone() that execs is an ordinary process */
PVAS_TEST(of_children)
{
	EXPECT_EQ(0, pt_run_task("children_exec"));
}

static int sleep_in_child(void *arg)
{
	struct timespec t = { 3, 0 };

	syscall(SYS_nanosleep, &t, NULL);
	_exit(*(volatile char *)arg);
}

TASK(exec_beside_child)
{
	CHECK(clone(sleep_in_child, child_stack + sizeof(child_stack), CLONE_VM | SIGCHLD,
		    child_stack) > 0);
	exec_as("wait_for_child", NULL);
}

TASK(wait_for_child)
{
	int status = pt_wait(-1);

	CHECK_EQ(-ESRCH, pvas_task_get_index());
	/* The user backend frees it when the program has left. */
	CHECK_EQ(pt_backend() == PVAS_BACKEND_USER ? 256 + SIGSEGV : 0, status);
}

/* a program leaves while such a child still uses the memory */
PVAS_TEST(beside_child)
{
	EXPECT_EQ(0, pt_run_task("exec_beside_child"));
}

/* ---- a tracer ---- */

/* Runs @name under a tracer that keeps the library's signal from it, or not. Exit status */
static int run_traced(struct pvas_space *space, const char *name, int keeps)
{
	int go[2], status = 0, sig;
	pid_t pid;

	if (pipe(go))
		return -errno;
	pid = pt_start_task_fd(space, 1, name, go[0]);
	if (pid < 0 || ptrace(PTRACE_SEIZE, pid, NULL, NULL))
		return -errno;
	if (write(go[1], "g", 1) != 1)
		return -errno;
	close(go[0]);
	close(go[1]);
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		sig = WSTOPSIG(status);
		if (status >> 16 || (keeps && sig == LIBRARY_SIGNAL))
			sig = 0;
		ptrace(PTRACE_CONT, pid, NULL, sig);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

TASK(hear_and_exec)
{
	CHECK_EQ('g', pt_hear(atoi(pt_args[0])));
	exec_as("check_inside", number(getpid()));
}

TASK(hear_and_leave)
{
	CHECK_EQ('g', pt_hear(atoi(pt_args[0])));
	exec_as("check_outside_if_user", NULL);
}

/* under a tracer: if that keeps the signal from it, the program leaves */
PVAS_TEST(traced)
{
	struct pvas_space *space = PT_SPACE();

	EXPECT_EQ(0, run_traced(space, "hear_and_exec", 0));
	EXPECT_EQ(0, run_traced(space, "hear_and_leave", 1));
	pvas_space_destroy(space);
}

PT_MAIN()
