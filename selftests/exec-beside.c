// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exec of a task beside what else goes on in it: other threads, children with its memory, a
 * tracer; and by all calls that there are for it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "program.h"

#define AT_EXECVE_CHECK_FLAG 0x10000	/* AT_EXECVE_CHECK, 6.14 */
#define LIBRARY_SIGNAL	33	/* glibc's SIGSETXID: see libpvas/user/stay.h */

TASK(check_outside)
{
	CHECK_EQ(-ESRCH, pvas_task_get_index());
}

/* ---- other calls ---- */

TASK(exec_by_descriptor)
{
	int fd = open(pt_self(), O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	fexecve(fd, pt_argv_as("check_inside", pt_number(getpid())), environ);
	CHECK_EQ(0, errno);
}

TASK(exec_in_directory)
{
	char *dir = strdup(pt_self()), *name = strrchr(dir, '/');
	int fd;

	*name++ = 0;
	fd = open(dir, O_PATH | O_DIRECTORY);
	CHECK(fd >= 0);
	CHECK_ERR(ENOENT, syscall(SYS_execveat, fd, "", pt_argv_as("x", NULL), environ, 0));
	CHECK_ERR(EBADF, syscall(SYS_execveat, 999, name, pt_argv_as("x", NULL), environ, 0));
	CHECK_ERR(EBADF, syscall(SYS_execveat, -5, name, pt_argv_as("x", NULL), environ, 0));
	CHECK_ERR(EINVAL, syscall(SYS_execveat, fd, name, pt_argv_as("x", NULL), environ, 0x80000));
	syscall(SYS_execveat, fd, name, pt_argv_as("check_inside", pt_number(getpid())), environ,
		0);
	CHECK_EQ(0, errno);
}

/* The interpreter would get the name of a descriptor that is closed. */
TASK(exec_lost_script)
{
	int fd = open(pt_args[0], O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	fexecve(fd, pt_argv_as("x", NULL), environ);
	CHECK_EQ(ENOENT, errno);
	pt_exec_as("check_inside", pt_number(getpid()));
}

/* In another root there is another program at the descriptor's name. */
TASK(exec_in_root)
{
	int fd = open(pt_self(), O_RDONLY);

	CHECK_EQ(60, dup2(fd, 60));
	CHECK_EQ(0, chroot(pt_args[0]));
	fexecve(60, pt_argv_as("check_root", NULL), environ);
	/* There is no dynamic linker in that root. */
	CHECK_EQ(ENOENT, errno);
}

/* Exit status of the task function @name with an argument, or -errno */
static int run_with(const char *name, const char *arg)
{
	char *argv[] = { (char *)pt_self(), "--task", (char *)name, (char *)arg, NULL };
	struct pvas_space *space;
	pid_t pid;
	int ret = pt_create(&space, 0, 0);

	if (ret)
		return ret;
	ret = pvas_task_spawn(space, 1, argv[0], argv, environ, NULL, &pid);
	if (ret > 0)
		ret = pt_wait(pid);
	pvas_space_destroy(space);
	return ret;
}

/* execveat() with a descriptor of the program, or of its directory */
PVAS_TEST(by_descriptor)
{
	EXPECT_EQ(0, pt_run_task("exec_by_descriptor"));
	EXPECT_EQ(0, pt_run_task("exec_in_directory"));
	EXPECT_EQ(0, run_with("exec_lost_script",
			      strdup(pt_put_file("script", "#!/bin/sh\n", 10, 0755))));
}

/* ... whatever has its name in another root */
PVAS_TEST(by_descriptor_in_root)
{
	char root[256], path[300];

	PT_NEED_ROOT();
	snprintf(root, sizeof(root), "%s", pt_tmp("root"));
	snprintf(path, sizeof(path), "%s/dev/fd", root);
	ASSERT_EQ(0, mkdir(root, 0755) || mkdir(strcat(strcpy(path, root), "/dev"), 0755) ||
		  mkdir(strcat(path, "/fd"), 0755));
	ASSERT_NE(NULL, pt_copy_file("root/dev/fd/60", pt_beside("nopie"), 0755));
	EXPECT_EQ(0, run_with("exec_in_root", root));
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

/* Does the kernel tell the user backend whether it would execute a file? */
static int can_ask(void)
{
	char *argv[] = { (char *)"", NULL };

	return pt_backend() != PVAS_BACKEND_USER ||
	       !syscall(SYS_execveat, AT_FDCWD, pt_self(), argv, environ, AT_EXECVE_CHECK_FLAG);
}

TASK(exec_written)
{
	int fd = open(pt_args[0], O_WRONLY);

	CHECK(fd >= 0);
	CHECK_ERR(ETXTBSY, execv(pt_args[0], pt_argv_as("succeed", NULL)));
	close(fd);
	if (!pt_failed)
		execv(pt_args[0], pt_argv_as("check_inside", pt_number(getpid())));
}

/* a file that is open for writing is refused, before Linux 6.14 not by the user backend */
PVAS_TEST(of_open_file)
{
	if (!can_ask())
		SKIP(return, "before Linux 6.14");
	EXPECT_EQ(0, run_with("exec_written", strdup(pt_copy_file("copy", pt_self(), 0755))));
}

static int allow(int rules, const char *path)
{
	struct landlock_path_beneath_attr attr = {
		.allowed_access = LANDLOCK_ACCESS_FS_EXECUTE,
		.parent_fd = open(path, O_PATH | O_CLOEXEC),
	};
	int err = (int)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &attr, 0);

	close(attr.parent_fd);
	return err;
}

/* Only /usr, this program and @path may be executed. -1: there is no Landlock. */
static int confine(const char *path)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE };
	int rules = (int)syscall(SYS_landlock_create_ruleset, &attr, 8, 0);

	if (rules < 0 || allow(rules, "/usr") || allow(rules, pt_self()) || allow(rules, path))
		return -1;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(SYS_landlock_restrict_self, rules, 0);
}

TASK(exec_forbidden)
{
	char script[256];

	CHECK_ERR(EACCES, execv(pt_args[0], pt_argv_as("succeed", NULL)));
	/* It may be executed, but its interpreter may not. */
	snprintf(script, sizeof(script), "%s.script", pt_args[0]);
	CHECK_ERR(EACCES, execv(script, pt_argv_as("succeed", NULL)));
	if (!pt_failed)
		pt_exec_as("check_inside", pt_number(getpid()));
}

/* one that the job's Landlock domain forbids to execute, too */
PVAS_TEST(of_forbidden_file)
{
	const char *copy = strdup(pt_copy_file("copy", pt_self(), 0755));
	char line[300];
	int len = snprintf(line, sizeof(line), "#!%s\n", copy);
	const char *script = pt_put_file("copy.script", line, len, 0755);

	if (!can_ask())
		SKIP(return, "before Linux 6.14");
	if (confine(script))
		SKIP(return, "no Landlock");
	EXPECT_EQ(0, run_with("exec_forbidden", copy));
}

/* ---- other threads ---- */

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

TASK(exec_beside_priority)
{
	start_exec("check_outside_if_user");
	CHECK_EQ(0, setpriority(PRIO_PROCESS, 0, 5));
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
	pthread_t t;

	CHECK_EQ(0, pthread_create(&t, NULL, exec_with_personality, NULL));
	pause();
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
	pthread_t t;

	CHECK_EQ(0, pthread_create(&t, NULL, exec_with_child, NULL));
	pause();
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
		EXPECT_EQ(0, run_with("exec_with_own_things", kinds[i])) TH_LOG("%s", kinds[i]);
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
	pt_exec_as("exec_beside_spawns", pt_number(left - 1));
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
	pt_exec_as("wait_for_child", NULL);
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
	pt_exec_as("check_inside", pt_number(getpid()));
}

TASK(hear_and_leave)
{
	CHECK_EQ('g', pt_hear(atoi(pt_args[0])));
	pt_exec_as("check_outside_if_user", NULL);
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
