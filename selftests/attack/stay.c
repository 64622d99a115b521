// SPDX-License-Identifier: GPL-2.0-only
/*
 * libstay.so - fork(), turned around
 *
 *	LD_PRELOAD=libstay.so STAY_FORKS=N program...
 *
 * Fuzzers and stressors do their work in children that they fork, and a fork
 * child of a task is an ordinary process, outside of the space. With this in
 * front, at each of the first N forks (1, if STAY_FORKS is not set) of the
 * program it is the calling process that goes on as the child, and the new one
 * that goes on as the parent. So the work is done by the task.
 *
 * The new process acts as the caller: its getpid() returns the caller's pid. Its
 * child's pid is the same number, so kill() reaches the right process. The process
 * that it waits for is not its own child, so waitpid() uses a pidfd. When the task
 * has ended, the parents exit instead of forking again: the new process would not be
 * a task.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PUBLIC	__attribute__((visibility("default")))

/* Seen by both sides of a fork that was turned around. */
struct shared {
	int ended;	/* by exit: then the status is right */
	int status;
};

static int forks_left = -1;
static pid_t task;		/* whose pid the parents believe to have; 0: all is as usual */
static pid_t parent;		/* in the task: who plays the parent */
static int task_fd = -1;	/* in a parent: a pidfd of the task */
static struct shared *shared;

static void *next(const char *name)
{
	void *fn = dlsym(RTLD_NEXT, name);

	if (!fn)
		abort();
	return fn;
}

static int task_is_over(int ms)
{
	struct pollfd p = { .fd = task_fd, .events = POLLIN };

	return poll(&p, 1, ms);
}

static pid_t fork_turned(pid_t (*real)(void))
{
	pid_t me = syscall(SYS_getpid), pid;
	int fd = syscall(SYS_pidfd_open, me, 0);

	if (!shared)
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || shared == MAP_FAILED)
		abort();
	pid = real();
	if (pid < 0) {
		close(fd);
		return pid;
	}
	task = me;
	if (pid) {
		close(fd);
		parent = pid;
		return 0;
	}
	parent = 0;
	task_fd = fd;
	return task;
}

PUBLIC pid_t fork(void)
{
	pid_t (*real)(void) = next("fork");

	if (forks_left < 0) {
		const char *n = getenv("STAY_FORKS");

		forks_left = n ? atoi(n) : 1;
	}
	if (task_fd >= 0) {
		if (task_is_over(0) > 0)
			_exit(0);
		return real();
	}
	if (forks_left == 0)
		return real();
	forks_left--;
	return fork_turned(real);
}

PUBLIC pid_t getpid(void)
{
	return task_fd >= 0 ? task : syscall(SYS_getpid);
}

PUBLIC pid_t getppid(void)
{
	pid_t (*real)(void) = next("getppid");

	if (!parent)
		return real();
	/* Without its parent the program is to see that it was adopted. */
	return syscall(SYS_kill, parent, 0) ? 1 : task;
}

PUBLIC pid_t waitpid(pid_t pid, int *status, int options)
{
	pid_t (*real)(pid_t, int *, int) = next("waitpid");
	int ret;

	if (task_fd < 0 || pid != task)
		return real(pid, status, options);
	ret = task_is_over(options & WNOHANG ? 0 : -1);
	if (ret <= 0)
		return ret;
	if (status)
		*status = shared->ended ? (shared->status & 0xff) << 8 : SIGKILL;
	return pid;
}

/*
 * Dumpable or not is the whole space's: with one task that is not, the parents
 * of all others can't read their child's /proc files any more, and break down.
 */
PUBLIC int prctl(int option, ...)
{
	int (*real)(int, unsigned long, unsigned long, unsigned long, unsigned long);
	unsigned long arg[4];
	va_list ap;
	int i;

	va_start(ap, option);
	for (i = 0; i < 4; i++)
		arg[i] = va_arg(ap, unsigned long);
	va_end(ap);
	if (option == PR_SET_DUMPABLE)
		return 0;
	real = next("prctl");
	return real(option, arg[0], arg[1], arg[2], arg[3]);
}

static void note_end(int status)
{
	if (parent && syscall(SYS_getpid) == task) {
		shared->status = status;
		shared->ended = 1;
	}
}

PUBLIC void _exit(int status)
{
	note_end(status);
	for (;;)
		syscall(SYS_exit_group, status);
}

PUBLIC void exit(int status)
{
	void (*real)(int) = next("exit");

	note_end(status);
	real(status);
	abort();	/* never, but the compiler can't know */
}
