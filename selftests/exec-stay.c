// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exec of a task: it stays in its partition, and has what an exec leaves to a process;
 * or it leaves the space, if the new program can't be a task or wants to.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pvas_test.h"
#include "program.h"

/* In a task: become the task function @name of this program, with two arguments. */
static void exec_with(const char *path, const char *name, const char *a, const char *b)
{
	char *argv[] = { (char *)path, (char *)"--task", (char *)name, (char *)a, (char *)b, NULL };

	execv(path, argv);
	CHECK_EQ(0, errno);
}

static void exec_as(const char *name, const char *a, const char *b)
{
	exec_with(pt_self(), name, a, b);
}

static const char *number(unsigned long n)
{
	static char text[2][24];
	static int i;

	i = !i;
	snprintf(text[i], sizeof(text[i]), "%lu", n);
	return text[i];
}

/* ---- what stays, and what goes ---- */

static void handler(int sig)
{
	(void)sig;
}

TASK(check_kept)
{
	int fd = atoi(pt_args[0]);
	struct sigaction sa;
	char name[16] = "";
	sigset_t set;

	CHECK_EQ(3, pvas_task_get_index());
	CHECK(pt_inside(malloc(100), 100));
	CHECK(pt_inside(&fd, sizeof(fd)));
	CHECK_EQ(getppid(), strtol(pt_args[1], NULL, 10));
	CHECK_EQ(0, fcntl(fd, F_GETFD));
	CHECK_ERR(EBADF, fcntl(fd + 1, F_GETFD));
	CHECK_EQ(0, sigaction(SIGUSR1, NULL, &sa));
	CHECK(sa.sa_handler == SIG_DFL);
	CHECK_EQ(0, sigaction(SIGUSR2, NULL, &sa));
	CHECK(sa.sa_handler == SIG_IGN);
	CHECK_EQ(0, sigprocmask(SIG_BLOCK, NULL, &set));
	CHECK_EQ(1, sigismember(&set, SIGTERM));
	CHECK_EQ(0, sigpending(&set));
	CHECK_EQ(1, sigismember(&set, SIGTERM));
	CHECK_EQ(0, prctl(PR_GET_NAME, name));
	CHECK_EQ(0, strcmp(name, "exec-stay"));
}

TASK(set_and_exec)
{
	int fd = fcntl(0, F_DUPFD, 100);
	sigset_t set;

	CHECK_EQ(fd + 1, fcntl(0, F_DUPFD_CLOEXEC, fd + 1));
	signal(SIGUSR1, handler);
	signal(SIGUSR2, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGTERM);
	prctl(PR_SET_NAME, "other");
	exec_as("check_kept", number(fd), number(getppid()));
}

/* pid, descriptors and what POSIX keeps; handlers, close-on-exec files and the name are new */
PVAS_TEST(stays_as_posix_says)
{
	struct pvas_space *space = PT_SPACE();
	struct pvas_task_info info;
	pid_t pid;

	pid = pt_start_task(space, 3, "set_and_exec");
	ASSERT_LT(0, pid);
	EXPECT_EQ(0, pt_wait(pid));
	EXPECT_EQ(0, pvas_task_list(space, &info, 1));
	pvas_space_destroy(space);
}

/* ---- timers, and mutexes that others wait for ---- */

static pthread_mutex_t *shared_mutex(int fd)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
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
	pthread_mutex_t *m = shared_mutex(atoi(pt_args[0]));
	pthread_mutexattr_t attr;
	timer_t timer;

	CHECK(m);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	CHECK_EQ(0, pthread_mutex_init(m, &attr));
	CHECK_EQ(0, pthread_mutex_lock(m));
	/* It would kill the new program. */
	CHECK_EQ(0, timer_create(CLOCK_MONOTONIC, &event, &timer));
	CHECK_EQ(0, timer_settime(timer, 0, &soon, NULL));
	exec_as("check_timers", pt_args[0], NULL);
}

/* POSIX timers are gone, and the owner of a robust mutex has died */
PVAS_TEST(stays_without_timers_and_locks)
{
	EXPECT_EQ(0, pt_run_task_with_page("lock_and_exec"));
}

/* ---- memory ---- */

TASK(check_memory)
{
	unsigned long heap = strtoul(pt_args[0], NULL, 10), gen = strtoul(pt_args[1], NULL, 10);
	struct pvas_task_info info[2];
	unsigned char there;

	/* The old program's mappings are gone. */
	CHECK_ERR(ENOMEM, mincore((void *)heap, 4096, &there));
	CHECK_EQ(1, pvas_task_list(NULL, info, 2));
	CHECK_EQ(getpid(), info[0].pid);
	CHECK_EQ(PVAS_TASK_RUNNING, info[0].state);
	CHECK(info[0].gen != gen);
}

TASK(map_and_exec)
{
	char *p = mmap((void *)(pt_base() + pt_size() / 4), 1 << 20, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	struct pvas_task_info info;

	CHECK(p != MAP_FAILED);
	memset(p, 1, 1 << 20);
	CHECK_EQ(1, pvas_task_list(NULL, &info, 1));
	exec_as("check_memory", number((unsigned long)p), number(info.gen));
}

/* the old program's memory is gone, and peers can tell the new one from the old */
PVAS_TEST(stays_with_new_memory)
{
	EXPECT_EQ(0, pt_run_task("map_and_exec"));
}

/* ---- threads ---- */

TASK(check_pid)
{
	CHECK_EQ(5, pvas_task_get_index());
	CHECK_EQ(atoi(pt_args[0]), getpid());
	CHECK_EQ(getpid(), syscall(SYS_gettid));
}

static void *exec_by_thread(void *arg)
{
	exec_as("check_pid", number(getpid()), NULL);
	return arg;
}

TASK(threads_and_exec)
{
	pthread_t t;
	int i;

	for (i = 0; i < 8; i++)
		CHECK_EQ(0, pthread_create(&t, NULL, pt_idle_thread, NULL));
	if (getenv("BY_THREAD")) {
		CHECK_EQ(0, pthread_create(&t, NULL, exec_by_thread, NULL));
		pause();
	}
	exec_by_thread(NULL);
}

/* with threads, by the first or another one */
PVAS_TEST(stays_with_threads)
{
	struct pvas_space *space = PT_SPACE();
	pid_t pid;

	for (int by_thread = 0; by_thread < 2; by_thread++) {
		if (by_thread)
			setenv("BY_THREAD", "1", 1);
		pid = pt_start_task(space, 5, "threads_and_exec");
		ASSERT_LT(0, pid);
		EXPECT_EQ(0, pt_wait(pid)) TH_LOG("by_thread %d", by_thread);
	}
	pvas_space_destroy(space);
}

/* ---- Debian's wrappers, scripts ---- */

TASK(succeed_by_shell)
{
	/* $0 is this program, run by the interpreter of Debian's wrappers. */
	CHECK_EQ(0, system("true"));
	CHECK_EQ(7, pvas_task_get_index());
}

static int run_at(struct pvas_space *space, unsigned int index, char **argv)
{
	pid_t pid;
	int ret = pvas_task_spawn(space, index, argv[0], argv, environ, NULL, &pid);

	return ret < 0 ? ret : pt_wait(pid);
}

#define WRAPPED (char *)pt_self(), (char *)"--task", (char *)"succeed_by_shell", NULL

/* env, nice, taskset, a shell's exec, also just after a command of its own, and a script */
PVAS_TEST(wrappers)
{
	struct pvas_space *space = PT_SPACE();
	char script[512], text[64];
	char *with[][10] = {
		{ "/usr/bin/env", "A=1", WRAPPED },
		{ "/usr/bin/env", "nice", "-n", "1", WRAPPED },
		{ "/usr/bin/taskset", "1", WRAPPED },
		{ "/bin/sh", "-c", "exec \"$0\" \"$@\"", WRAPPED },
		{ "/bin/sh", "-c", "/bin/true; exec \"$0\" \"$@\"", WRAPPED },
		{ "/usr/bin/env", script, WRAPPED },
	};
	size_t n = snprintf(text, sizeof(text), "#!/bin/sh\nexec \"$@\"\n");
	size_t i;

	strcpy(script, pt_put_file("script", text, n, 0755));
	for (i = 0; i < PT_ARRAY_SIZE(with); i++)
		EXPECT_EQ(0, run_at(space, 7, with[i])) TH_LOG("wrapper %zu", i);
	pvas_space_destroy(space);
}

/* ---- leaving ---- */

TASK(check_left)
{
	CHECK_EQ(-ESRCH, pvas_task_get_index());
}

TASK(leave_by_variable)
{
	setenv("PVAS_EXEC", "leave", 1);
	exec_as("check_left", NULL, NULL);
}

TASK(leave_by_call)
{
	CHECK(pvas_task_get_index() > 0);
	CHECK_EQ(0, pvas_exec_leave(1));
	if (pt_args[0])
		exec_as("check_left", NULL, NULL);
	CHECK_EQ(0, pvas_exec_leave(0));
	CHECK(!strcmp(getenv("PVAS_EXEC"), "stay"));
	exec_as("leave_by_call", "again", NULL);
}

/* PVAS_EXEC=leave, also by the call, which can be taken back */
PVAS_TEST(leaves_by_variable)
{
	EXPECT_EQ(0, pt_run_task("leave_by_variable"));
	EXPECT_EQ(0, pt_run_task("leave_by_call"));
}

TASK(leave_by_rights)
{
	CHECK_EQ(0, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	exec_as("check_left", NULL, NULL);
}

/* a program that would have other rights than the tasks */
MODULE_TEST(leaves_by_rights, "a task has no_new_privs anyway")
{
	EXPECT_EQ(0, pt_run_task("leave_by_rights"));
}

TASK(leave_by_capabilities)
{
	CHECK_EQ(0, prctl(PR_CAPBSET_DROP, 20, 0, 0, 0));
	exec_as("check_left", NULL, NULL);
}

/* ... or fewer */
PVAS_TEST(leaves_by_capabilities)
{
	PT_NEED_ROOT();
	EXPECT_EQ(0, pt_run_task("leave_by_capabilities"));
}

/* Its status in /proc becomes long. */
TASK(leave_by_filter)
{
	struct sock_filter allow = { .code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW };
	struct sock_fprog program = { 1, &allow };
	gid_t groups[2000];
	gid_t i;

	for (i = 0; i < 2000; i++)
		groups[i] = 100000 + i;
	setgroups(2000, groups);	/* which the module refuses, and ordinary users may not */
	CHECK_EQ(0, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_EQ(0, syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
	exec_as("check_left", NULL, NULL);
}

/* a program with a filter that its peers don't have */
PVAS_TEST(leaves_by_filter)
{
	EXPECT_EQ(0, pt_run_task("leave_by_filter"));
}

TASK(exec_nopie)
{
	execl(pt_beside("nopie"), "nopie", (char *)NULL);
	CHECK_EQ(0, errno);
}

/* a program that is not position-independent runs outside */
PVAS_TEST(leaves_if_not_pie)
{
	int status;

	ASSERT_EQ(0, access(pt_beside("nopie"), X_OK));
	status = pt_wait(fork() ?: (execl(pt_beside("nopie"), "nopie", (char *)NULL), 0));
	EXPECT_EQ(status, pt_run_task("exec_nopie"));
}

TASK(exec_file)
{
	exec_with(pt_args[0], "check_left", NULL, NULL);
}

/* nor one that is set-uid, whether or not the kernel heeds that */
PVAS_TEST(leaves_if_set_uid)
{
	struct pvas_space *space = PT_SPACE();
	char *argv[] = { (char *)pt_self(), (char *)"--task", (char *)"exec_file",
			 strdup(pt_copy_file("suid", pt_self(), 04755)), NULL };

	EXPECT_EQ(0, run_at(space, 1, argv));
	pvas_space_destroy(space);
}

TASK(check_locked)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	pid_t self = getpid(), pid;

	CHECK_EQ(-ESRCH, pvas_task_get_index());
	pid = fork();
	if (!pid) {
		fcntl(atoi(pt_args[0]), F_GETLK, &lock);
		_exit(lock.l_pid != self);
	}
	CHECK_EQ(0, pt_wait(pid));
}

TASK(lock_own_and_exec)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	int fd = open(pt_self(), O_RDONLY);

	CHECK_EQ(0, fcntl(fd, F_SETLK, &lock));
	exec_as("check_locked", number(fd), NULL);
}

/* a program that has locked its own file keeps the lock */
PVAS_TEST(leaves_with_locks)
{
	if (strcmp(getenv("PVAS_TEST_BACKEND") ?: "", "user"))
		SKIP(return, "the module's loader releases them");
	EXPECT_EQ(0, pt_run_task("lock_own_and_exec"));
}

/* ---- guests ---- */

TASK(check_stayed)
{
	CHECK_EQ(atoi(pt_args[0]), pvas_task_get_index());
}

TASK(spawn_and_exec)
{
	char *argv[] = { (char *)"sleep", (char *)"0.1", NULL };
	pid_t pid;

	CHECK_EQ(0, posix_spawn(&pid, "/bin/sleep", NULL, NULL, argv, environ));
	exec_as("check_stayed", "2", NULL);
}

/* children that have begun a program of their own do not hold the exec */
PVAS_TEST(stays_beside_children)
{
	struct pvas_space *space = PT_SPACE();
	int round;
	pid_t pid;

	for (round = 0; round < 10; round++) {
		pid = pt_start_task(space, 2, "spawn_and_exec");
		ASSERT_LT(0, pid);
		EXPECT_EQ(0, pt_wait(pid));
	}
	pvas_space_destroy(space);
}

static void *vfork_thread(void *arg)
{
	/* A process with the task's memory: it sleeps for 3 s. */
	if (!vfork()) {
		struct timespec t = { 3, 0 };

		syscall(SYS_nanosleep, &t, NULL);
		_exit(0);
	}
	return arg;
}

TASK(vfork_and_exec)
{
	pthread_t t;

	CHECK_EQ(0, pthread_create(&t, NULL, vfork_thread, NULL));
	usleep(300000);
	exec_as("check_left", NULL, NULL);
}

/* memory that a vfork child still uses stays for it: then the exec leaves the space */
PVAS_TEST(leaves_a_guest_alone)
{
	EXPECT_EQ(0, pt_run_task("vfork_and_exec"));
}

/* ---- failures ---- */

TASK(fail_to_exec)
{
	char *large = malloc(4 << 20), *argv[] = { (char *)"x", large, NULL };

	memset(large, 'x', 4 << 20);
	large[(4 << 20) - 1] = 0;
	CHECK_ERR(E2BIG, execv(pt_self(), argv));
	CHECK_ERR(EFAULT, syscall(SYS_execve, pt_self(), 8, NULL));
	CHECK_ERR(EFAULT, syscall(SYS_execve, 8, argv, NULL));
	argv[1] = NULL;
	CHECK_ERR(ENOENT, execv("/nonexistent", argv));
	CHECK_ERR(EACCES, execv("/tmp", argv));
	CHECK_ERR(ENOEXEC, execv(pt_args[0], argv));
	if (!pt_failed)
		exec_as("check_stayed", "4", NULL);
}

/* an exec that fails changes nothing: a later one stays */
PVAS_TEST(fails_before)
{
	struct pvas_space *space = PT_SPACE();
	char *argv[] = { (char *)pt_self(), (char *)"--task", (char *)"fail_to_exec",
			 strdup(pt_put_file("junk", "\1\2\3\4", 4, 0755)), NULL };

	EXPECT_EQ(0, run_at(space, 4, argv));
	pvas_space_destroy(space);
}

TASK(exec_without_files)
{
	struct rlimit none = { 0, 0 };

	/* The program's own descriptor comes after the point of no return. */
	CHECK_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	exec_as("check_stayed", "1", NULL);
}

/* one that fails after the point of no return kills the task, and the partition is free */
MODULE_TEST(fails_after, "all that can fail comes before")
{
	struct pvas_space *space = PT_SPACE();
	pid_t pid = pt_start_task(space, 1, "exec_without_files");

	ASSERT_LT(0, pid);
	EXPECT_LT(256, pt_wait(pid));
	EXPECT_EQ(0, pvas_task_list(space, NULL, 0));
	pid = pt_start_task(space, 1, "dirty");
	ASSERT_LT(0, pid);
	EXPECT_EQ(0, pt_wait(pid));
	pvas_space_destroy(space);
}

PT_MAIN()
